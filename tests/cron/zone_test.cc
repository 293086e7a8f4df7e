// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "absl/time/civil_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/cron/zone.h>

#include "tests/support/bobbin_test.h"

namespace bobbin::cron {
namespace {

using testing::HasSubstr;

int OffsetOf(const std::string& text) {
  const absl::StatusOr<absl::TimeZone> zone = FindZone(text);
  EXPECT_OK(zone) << text;
  return zone.ok() ? zone->At(absl::UnixEpoch()).offset : -1;
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<absl::TimeZone> zone = FindZone(text);
  EXPECT_THAT(zone, test::StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  return std::string(MessageOf(zone.status()));
}

TEST(FindZoneTest, UtcHasSeveralNames) {
  for (const char* text : {"", "UTC", "Z", "GMT", "+00:00", "-00:00"}) {
    EXPECT_EQ(OffsetOf(text), 0) << text;
  }
}

TEST(FindZoneTest, AnOffsetIsFixed) {
  EXPECT_EQ(OffsetOf("+05:30"), 19800);
  EXPECT_EQ(OffsetOf("-03:00"), -10800);
  EXPECT_EQ(OffsetOf("+18:59"), 18 * 3600 + 59 * 60);
  for (const char* text : {"+19:00", "+05:60", "+5:30", "+0530", "-", "+", "+05:3x", "+05:300"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("offset")) << text;
  }
}

TEST(FindZoneTest, ANameIsLookedUpInTheDatabase) {
  const absl::StatusOr<absl::TimeZone> zone = FindZone("America/New_York");
  ASSERT_OK(zone);
  EXPECT_EQ(absl::FromCivil(absl::CivilSecond(2026, 7, 1), *zone),
            absl::FromCivil(absl::CivilSecond(2026, 7, 1, 4, 0, 0), absl::UTCTimeZone()));
}

TEST(FindZoneTest, AMisspeltNameIsRefusedWithThoseThatAreLikeIt) {
  EXPECT_EQ(ErrorOf("Europe/Berlim"),
            "find time zone \"Europe/Berlim\": /usr/share/zoneinfo has no such name; is it "
            "Europe/Berlin?");
  EXPECT_THAT(ErrorOf("europe/berlin"), HasSubstr("is it Europe/Berlin?"));
  EXPECT_THAT(ErrorOf("Berlin"), HasSubstr("is it Europe/Berlin?"));
  EXPECT_THAT(ErrorOf("US/New_York"), HasSubstr("is it America/New_York?"));
  EXPECT_THAT(ErrorOf("Nowhere/At_All"), testing::Not(HasSubstr("is it")));
}

TEST(FindZoneTest, OnlyTheDatabaseIsLookedAt) {
  for (const char* text : {"/etc/passwd", "/usr/share/zoneinfo/UTC", "Europe/../UTC", "Europe",
                           "zone.tab", "posix/UTC", "localtime", "libc:localtime",
                           "Fixed/UTC+05:30:00", " UTC", "Europe/Berlin\n", "../zoneinfo/UTC"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("no such name")) << text;
  }
  EXPECT_THAT(ErrorOf(std::string(100'000, 'A')), HasSubstr("no such name"));
  EXPECT_THAT(ErrorOf(std::string("UTC\0", 4)), HasSubstr("no such name"));
}

BOBBIN_TEST(FindZoneTest, AVirtualThreadDoesNotBlockItsCarrier) {
  EXPECT_OK(FindZone("Asia/Tokyo"));
  EXPECT_THAT(FindZone("Asia/Tokio"), test::StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace bobbin::cron
