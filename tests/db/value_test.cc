// SPDX-License-Identifier: Apache-2.0
//
// Values as texts: times, dates, UUIDs and arrays.

#include <optional>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/db/internal/cell.h>
#include <bobbin/db/uuid.h>

#include "db/src/text.h"

namespace bobbin::db {
namespace {

using internal::ArrayReader;
using internal::CellKind;
using internal::CellView;
using internal::Decoder;
using internal::Fit;
using internal::ParseDay;
using internal::ParseTime;
using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

absl::Time At(int year, int month, int day, int hour = 0, int minute = 0, int second = 0) {
  return absl::FromCivil(absl::CivilSecond(year, month, day, hour, minute, second),
                         absl::UTCTimeZone());
}

TEST(TimeTextTest, IsReadWithAnyOffset) {
  EXPECT_THAT(ParseTime("2024-05-01 12:34:56+00"), Optional(At(2024, 5, 1, 12, 34, 56)));
  EXPECT_THAT(ParseTime("2024-05-01 12:34:56"), Optional(At(2024, 5, 1, 12, 34, 56)));
  EXPECT_THAT(ParseTime("2024-05-01T12:34:56Z"), Optional(At(2024, 5, 1, 12, 34, 56)));
  EXPECT_THAT(ParseTime("2024-05-01 12:34:56+05:30"), Optional(At(2024, 5, 1, 7, 4, 56)));
  EXPECT_THAT(ParseTime("1900-01-01 00:00:00-00:44:30"), Optional(At(1900, 1, 1, 0, 44, 30)));
  EXPECT_THAT(ParseTime("2024-05-01 12:34:56.000007+00"),
              Optional(At(2024, 5, 1, 12, 34, 56) + absl::Microseconds(7)));
  EXPECT_THAT(ParseTime("2024-05-01 12:34"), Optional(At(2024, 5, 1, 12, 34)));
  EXPECT_THAT(ParseTime("0044-03-15 12:00:00+00 BC"), Optional(At(-43, 3, 15, 12)));
  EXPECT_THAT(ParseTime("infinity"), Optional(absl::InfiniteFuture()));
}

TEST(TimeTextTest, WhatIsNoneIsRefused) {
  for (const char* const text :
       {"", "now", "2024-05-01", "2024-13-01 00:00:00", "2024-02-30 00:00:00",
        "2024-05-01 25:00:00", "2024-05-01 12:61:00", "2024-05-01 12:34:56+",
        "2024-05-01 12:34:56 more", "2024-05-01 12:34:56.", "24-05-01 00:00:00"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
  for (const char* const text : {"", "2024-5-1", "2023-02-29", "2024-05-01 ", "2024-05-01x"}) {
    EXPECT_EQ(ParseDay(text), std::nullopt) << text;
  }
}

TEST(TimeTextTest, IsReadAsItWasWritten) {
  for (const absl::Time time :
       {absl::UnixEpoch(), At(1, 1, 1), At(0, 12, 31), At(-4000, 2, 3, 4, 5, 6), At(290'000, 1, 1),
        At(2024, 2, 29) + absl::Microseconds(1), absl::InfinitePast()}) {
    EXPECT_THAT(ParseTime(internal::TimeText(time)), Optional(time)) << internal::TimeText(time);
  }
  for (const absl::CivilDay day : {absl::CivilDay(2024, 2, 29), absl::CivilDay(0, 1, 1)}) {
    EXPECT_THAT(ParseDay(internal::DayText(day)), Optional(day));
  }
  EXPECT_EQ(internal::TimeText(At(-43, 3, 15)), "0044-03-15 00:00:00.000000+00 BC");
}

TEST(UuidTest, IsReadAsItWasWritten) {
  const char kText[] = "0f8fad5b-d9cb-469f-a165-70867728950e";
  const auto uuid = Uuid::Parse(kText);
  ASSERT_TRUE(uuid.has_value());
  EXPECT_EQ(uuid->Text(), kText);
  EXPECT_EQ(uuid->bytes[0], std::byte{0x0f});
  for (const char* const text :
       {"", "0f8fad5b-d9cb-469f-a165-70867728950", "0f8fad5bd9cb469fa16570867728950e",
        "0f8fad5b-d9cb-469f-a165-70867728950g", "0f8fad5b-d9cb-469f-a165_70867728950e"}) {
    EXPECT_EQ(Uuid::Parse(text), std::nullopt) << text;
  }
}

CellView ArrayOf(CellKind kind, std::string_view text) {
  CellView cell;
  cell.kind = CellKind::kArray;
  cell.element_kind = kind;
  cell.bytes = text;
  return cell;
}

template <typename T>
std::optional<std::vector<T>> Read(CellKind kind, std::string_view text) {
  using Array = Decoder<std::vector<T>>;
  const CellView cell = ArrayOf(kind, text);
  if (Array::FitOf(cell) != Fit::kFits) return std::nullopt;
  return Array::Decode(cell);
}

TEST(ArrayTextTest, IsReadElementByElement) {
  EXPECT_THAT(Read<int>(CellKind::kInteger, "{1,-2,3}"), Optional(ElementsAre(1, -2, 3)));
  EXPECT_THAT(Read<int>(CellKind::kInteger, "{}"), Optional(ElementsAre()));
  EXPECT_THAT(Read<std::optional<int>>(CellKind::kInteger, "{NULL,1}"),
              Optional(ElementsAre(std::nullopt, Optional(1))));
  EXPECT_THAT(Read<std::string>(CellKind::kText, R"({a,"b,{c}","d\"e\\","NULL",""})"),
              Optional(ElementsAre("a", "b,{c}", "d\"e\\", "NULL", "")));
  EXPECT_THAT(Read<std::vector<std::string>>(CellKind::kText, R"({{a,"}\""},{b,"c,"}})"),
              Optional(ElementsAre(ElementsAre("a", "}\""), ElementsAre("b", "c,"))));
}

TEST(ArrayTextTest, WhatIsNoneIsRefused) {
  for (const char* const text :
       {"", "{", "1,2", "{1,2", "{1,,2}", "{1}2}", "{\"1}", "{1,x}", "{1,NULL}"}) {
    EXPECT_EQ(Read<int>(CellKind::kInteger, text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace bobbin::db
