// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/cron/expression.h>
#include <bobbin/cron/mistake.h>

#include "tests/cron/tsv.h"
#include "tests/support/status_matchers.h"

namespace bobbin::cron {
namespace {

using test::ReadTsv;
using test::TsvRow;
using testing::HasSubstr;

std::string TextOf(std::string_view text) {
  const std::optional<Mistake> mistake = FindMistake(text);
  return mistake ? mistake->Text(text) : "no mistake";
}

TEST(MistakeTest, EveryRowOfTheTableIsRefusedForItsField) {
  const std::vector<TsvRow> rows = ReadTsv("invalid.tsv");
  EXPECT_GT(rows.size(), 300u);
  for (const TsvRow& row : rows) {
    const std::string& text = row[0];
    const std::string& field = row[1];
    const std::optional<Mistake> mistake = FindMistake(text);
    ASSERT_TRUE(mistake) << "line " << row.line << ": " << text;
    EXPECT_EQ(mistake->field_name(), field == "count-of-fields" ? "count" : field)
        << "line " << row.line << ": " << text << ": " << mistake->Text(text);
    EXPECT_LE(mistake->column + mistake->length, text.size() + 1) << text;
    EXPECT_THAT(Expression::Parse(text), test::StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(MistakeTest, EveryDisputedRowIsDecided) {
  const std::vector<TsvRow> rows = ReadTsv("decided.tsv");
  EXPECT_GT(rows.size(), 60u);
  for (const TsvRow& row : rows) {
    const std::optional<Mistake> mistake = FindMistake(row[0]);
    EXPECT_EQ(mistake ? mistake->field_name() : "ok", row[1])
        << "line " << row.line << ": " << row[0] << ": " << TextOf(row[0]);
  }
  // These cannot be written in a table.
  EXPECT_FALSE(FindMistake("*\t*\t*\t*\t*\t*"));
  EXPECT_EQ(FindMistake("\xef\xbc\x91 * * * * *")->field, Field::kSecond) << "a full-width 1";
}

TEST(MistakeTest, EachKindSaysWhereWhatAndWhatIsAllowed) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"0 61 * * * *", "minute, column 3: \"61\" is out of range; allowed is 0-59"},
           {"0 0 25 * * *", "hour, column 5: \"25\" is out of range; allowed is 0-23"},
           {"0 0 0 32W * *", "day-of-month, column 7: \"32\" is out of range; allowed is 1-31"},
           {"0 0 0 L-31 * *",
            "day-of-month, column 9: \"31\" is out of range; allowed is 1-31, behind L- 1-30"},
           {"0 0 0 * JAN,13 *",
            "month, column 13: \"13\" is out of range; allowed is 1-12 or JAN-DEC"},
           {"0 0 0 * * FRI#0",
            "day-of-week, column 15: \"0\" is out of range; allowed is 0-7 or SUN-SAT, behind # "
            "1-5"},
           {"0 0 0 * * 5#6,1",
            "day-of-week, column 11: \"5#6\": no weekday comes six times in a month; allowed "
            "behind # is 1-5"},
           {"x * * * * *",
            "second, column 1: \"x\" is not understood; allowed is 0-59, with * - / and commas"},
           {"0 0 0 15L * *",
            "day-of-month, column 7: \"15L\" is not understood; allowed is 1-31, with * - / and "
            "commas, and ? L L-3 LW 15W"},
           {"0 0 0 * * L",
            "day-of-week, column 11: \"L\" is not understood; allowed is 0-7 or SUN-SAT, with * - "
            "/ and commas, and ? FRIL FRI#2"},
           {"1,,2 * * * * *", "second, column 3: a part of the list is empty; allowed is 0-59"},
           {"0 0 22-2 * * *",
            "hour, column 5: the range \"22-2\" goes backwards; around the end write "
            "\"22-23,0-2\""},
           {"0 0 0 * NOV-FEB *",
            "month, column 9: the range \"NOV-FEB\" goes backwards; around the end write "
            "\"NOV-DEC,JAN-FEB\""},
           {"0 0 0 * * FRI-MON",
            "day-of-week, column 11: the range \"FRI-MON\" goes backwards; around the end write "
            "\"FRI-SUN,MON-MON\""},
           {"0 */0 * * * *",
            "minute, column 3: the step in \"*/0\" must be a number from 1; allowed before it is "
            "0-59"},
           {"0 0 0 31 2,4 *",
            "day-of-month, column 7: \"31\" never comes: February has at most 29 days and April "
            "has 30 days"},
           {"@fortnightly",
            "column 1: \"@fortnightly\" is no macro; there are @yearly @annually @monthly @weekly "
            "@daily @midnight @hourly"},
       }) {
    EXPECT_EQ(TextOf(text), message);
  }
}

TEST(MistakeTest, AHintIsProposedWhereItIsRight) {
  // What is written "around the end" is taken.
  EXPECT_OK(Expression::Parse("0 0 22-23,0-2 * NOV-DEC,JAN-FEB FRI-SUN,MON-MON"));
}

TEST(MistakeTest, FiveFieldsAreTakenForUnix) {
  EXPECT_EQ(TextOf(" */5 * * * *"),
            "there are 5 fields where 6 are needed: second minute hour day-of-month month "
            "day-of-week; if it is a five-field expression of Unix, write \"0 */5 * * * *\"");
  EXPECT_THAT(TextOf("* * *"), testing::Not(HasSubstr("Unix")));
  EXPECT_THAT(TextOf("0 15 10 * * ? 2005"), HasSubstr("no field for the year"));
  EXPECT_EQ(FindMistake("")->fields_found, 0u);
  EXPECT_THAT(TextOf("-"), HasSubstr("switches a job off"));
}

TEST(MistakeTest, TheStatusHasTheExpressionToo) {
  EXPECT_EQ(MessageOf(Expression::Parse("0 61 * * * *").status()),
            "parse cron expression \"0 61 * * * *\": minute, column 3: \"61\" is out of range; "
            "allowed is 0-59");
}

TEST(MistakeTest, AMessageIsOneShortLineWhateverTheText) {
  const std::string text = "* * * * * " + std::string(100'000, '\n');
  const std::string message(MessageOf(Expression::Parse(text).status()));
  EXPECT_LT(message.size(), 1200u);
  EXPECT_EQ(message.find('\n'), message.npos);
}

TEST(MistakeTest, WhyADayNeverComesIsSaid) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"0 0 0 30 2 *", "February has at most 29 days"},
           {"0 0 0 31 6 *", "June has 30 days"},
           {"0 0 0 31 2,4,6 *", "February has at most 29 days and April and June have 30 days"},
           {"0 0 0 L-30 11 *", "November has 30 days"},
           {"0 0 0 30W 2 *", "February has at most 29 days"},
           {"* * * 28 * SUN#5", "day 28 of the month is never the fifth Sunday of the month"},
           {"* * * 1W * SUN", "the weekday nearest day 1 of the month is never Sunday"},
           {"* * * ? * 1#6", "no weekday comes six times in a month"},
       }) {
    EXPECT_EQ(WhyNever(text), why) << text;
  }
  EXPECT_EQ(WhyNever("0 0 0 29 2 MON"), std::nullopt);
  EXPECT_EQ(WhyNever("0 0 0 31 4,5 *"), std::nullopt);
  EXPECT_EQ(WhyNever("no expression"), std::nullopt);
}

}  // namespace
}  // namespace bobbin::cron
