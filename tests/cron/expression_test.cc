// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/cron/expression.h>

#include "tests/cron/oracle.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace bobbin::cron {
namespace {

using absl::CivilDay;
using absl::CivilSecond;
using test::Oracle;
using test::Random;
using test::RandomExpression;
using test::Seed;

constexpr CivilSecond kNewYear(2024, 1, 1);

// What the compiler knows.
static_assert("0 */15 * * * *"_cron == "0 0/15 * * * ?"_cron);
static_assert("0 0 0 * * SUN"_cron == "@Weekly"_cron);
static_assert("0 0,30 * * * *"_cron != "0 */30 * * * *"_cron, "one is an interval");
static_assert(*"0 0 0 29 2 *"_cron.Next(CivilSecond(2023, 3, 1)) == CivilSecond(2024, 2, 29));
static_assert(*"0 0 0 29 2 *"_cron.Previous(CivilSecond(2023, 3, 1)) == CivilSecond(2020, 2, 29));
static_assert("0 0 0 13 * FRI"_cron.Matches(CivilSecond(2026, 11, 13)));
static_assert(FindMistake("0 61 * * * *")->field == Field::kMinute);
static_assert(FindMistake("0 61 * * * *")->column == 3);

Expression Parsed(const std::string& text) {
  const absl::StatusOr<Expression> expression = Expression::Parse(text);
  EXPECT_OK(expression) << text;
  return expression.value_or("* * * * * *"_cron);
}

CivilSecond RandomTime(Random& random) {
  return CivilSecond(random.Between(1890, 2110), random.Between(1, 12), random.Between(1, 31),
                     random.Between(0, 23), random.Between(0, 59), random.Between(0, 59));
}

TEST(ExpressionTest, EveryFieldTakesItsForms) {
  struct Case {
    const char* text;
    CivilSecond next;  // From new year 2024, a Monday.
  };
  for (const Case& c : std::vector<Case>{
           {"* * * * * *", CivilSecond(2024, 1, 1, 0, 0, 1)},
           {"5,10 * * * * *", CivilSecond(2024, 1, 1, 0, 0, 5)},
           {"0 50-55/2 * * * *", CivilSecond(2024, 1, 1, 0, 50, 0)},
           {"0 0 23/5 * * *", CivilSecond(2024, 1, 1, 23, 0, 0)},
           {"0 0 0 ? * TUE", CivilSecond(2024, 1, 2)},
           {"0 0 0 L * ?", CivilSecond(2024, 1, 31)},
           {"0 0 0 L-3 * ?", CivilSecond(2024, 1, 28)},
           {"0 0 0 LW 6 ?", CivilSecond(2024, 6, 28)},
           {"0 0 0 1W 6 ?", CivilSecond(2024, 6, 3)},
           {"0 0 0 15W 6 ?", CivilSecond(2024, 6, 14)},
           {"0 0 0 16w 6 ?", CivilSecond(2024, 6, 17)},
           {"0 0 0 ? * FRIL", CivilSecond(2024, 1, 26)},
           {"0 0 0 ? * 5l", CivilSecond(2024, 1, 26)},
           {"0 0 0 ? * fri#5", CivilSecond(2024, 3, 29)},
           {"0 0 0 ? feb,MAR-apr *", CivilSecond(2024, 2, 1)},
           {"0 0 0 * * 7", CivilSecond(2024, 1, 7)},
           {"0 0 0 * * 0", CivilSecond(2024, 1, 7)},
           {"0 0 0 * * SAT-SUN", CivilSecond(2024, 1, 6)},
           {"0 0 0 29 2 MON", CivilSecond(2044, 2, 29)},
           {"\t0  0 0\t1 1 *  ", CivilSecond(2025, 1, 1)},
           {"@hourly", CivilSecond(2024, 1, 1, 1, 0, 0)},
           {"@DAILY", CivilSecond(2024, 1, 2)},
           {"@midnight", CivilSecond(2024, 1, 2)},
           {"@weekly", CivilSecond(2024, 1, 7)},
           {"@monthly", CivilSecond(2024, 2, 1)},
           {"@yearly", CivilSecond(2025, 1, 1)},
           {" @annually ", CivilSecond(2025, 1, 1)},
       }) {
    EXPECT_EQ(Parsed(c.text).Next(kNewYear), c.next) << c.text;
  }
}

TEST(ExpressionTest, BothDayFieldsMustMatch) {
  EXPECT_EQ(Parsed("0 0 0 13 * FRI").Next(kNewYear), CivilSecond(2024, 9, 13));
  EXPECT_EQ(Parsed("0 0 0 1 1 1").Next(CivilSecond(2020, 10, 8)), kNewYear);
}

TEST(ExpressionTest, ANearestWeekdayStaysInItsMonth) {
  // The 31st of May 2020 and of January 2021 are Sundays: those months have none.
  EXPECT_EQ(Parsed("0 0 0 31W * ?").Next(CivilSecond(2020, 5, 1)), CivilSecond(2020, 7, 31));
  EXPECT_EQ(Parsed("0 0 0 1W * ?").Next(CivilSecond(2017, 4, 2, 12, 0, 0)),
            CivilSecond(2017, 4, 3));
}

TEST(ExpressionTest, WeekdaysStepFromMonday) {
  const std::string days = Parsed("0 0 0 * * */2").ToString();
  EXPECT_EQ(days, Parsed("0 0 0 * * MON,WED,FRI,SUN").ToString());
  EXPECT_EQ(Parsed("0 0 0 * * 0/2"), Parsed("0 0 0 * * SUN,TUE,THU,SAT"));
  EXPECT_EQ(Parsed("0 0 0 * * 1/3"), Parsed("0 0 0 * * MON,THU,SUN"));
  EXPECT_EQ(Parsed("0 0 0 * * SUN-FRI"), Parsed("0 0 0 * * 0-5"));
}

TEST(ExpressionTest, EveryDayAgreesWithTheOracle) {
  Random random(Seed());
  for (int round = 0; round < test::Rounds(300); ++round) {
    const std::string text = RandomExpression(random, "0");
    const Expression expression = Parsed(text);
    const Oracle oracle(text);
    CivilDay day(RandomTime(random));
    for (int i = 0; i < 800; ++i, ++day) {
      // A day is meant if there is a time on it after the last second of the day before.
      const std::optional<CivilSecond> next = expression.Next(CivilSecond(day) - 1);
      ASSERT_TRUE(next) << text;
      ASSERT_EQ(CivilDay(*next) == day, oracle.MatchesDay(day)) << text << " on " << day;
    }
  }
}

TEST(ExpressionTest, EveryTimeAgreesWithTheOracle) {
  Random random(Seed());
  for (int round = 0; round < test::Rounds(2000); ++round) {
    const std::string text = RandomExpression(random);
    const Expression expression = Parsed(text);
    const Oracle oracle(text);
    for (int i = 0; i < 20; ++i) {
      const CivilSecond time = RandomTime(random);
      ASSERT_EQ(expression.Matches(time), oracle.Matches(time)) << text << " at " << time;
      const std::optional<CivilSecond> next = expression.Next(time);
      ASSERT_TRUE(next) << text;
      ASSERT_GT(*next, time) << text;
      ASSERT_TRUE(oracle.Matches(*next)) << text << " after " << time;
    }
  }
}

TEST(ExpressionTest, NextIsTheSameFromWherever) {
  Random random(Seed());
  for (int round = 0; round < test::Rounds(20000); ++round) {
    const std::string text = RandomExpression(random);
    const Expression expression = Parsed(text);
    const CivilSecond time = RandomTime(random);
    const CivilSecond next = *expression.Next(time);
    const CivilSecond between = time + random.Between(0, next - time - 1);
    ASSERT_EQ(expression.Next(between), next) << text << " from " << time << " and " << between;
    ASSERT_EQ(expression.Next(next - 1), next) << text;
    ASSERT_EQ(expression.Previous(next + 1), next) << text;
    // Between the two there is none.
    ASSERT_LE(*expression.Previous(next), time) << text;
    ASSERT_EQ(*expression.Next(*expression.Previous(next)), next) << text;
  }
}

TEST(ExpressionTest, TheCalendarIsAsFarAsOneLikes) {
  EXPECT_EQ(Parsed("0 0 0 29 2 *").Next(CivilSecond(2096, 3, 1)), CivilSecond(2104, 2, 29));
  EXPECT_EQ(Parsed("0 0 0 29 2 MON").Next(CivilSecond(2072, 3, 1)), CivilSecond(2112, 2, 29));
  EXPECT_EQ(Parsed("0 0 0 29 2 *").Previous(CivilSecond(1, 1, 1)), CivilSecond(0, 2, 29));
  EXPECT_EQ(Parsed("* * * * * *").Next(CivilSecond(2'000'000'000, 1, 1)), std::nullopt);
  EXPECT_EQ(Parsed("* * * * * *").Next(CivilSecond::max()), std::nullopt);
  EXPECT_EQ(Parsed("* * * * * *").Previous(CivilSecond::min()), std::nullopt);
}

TEST(ExpressionTest, ItsTextMeansTheSame) {
  Random random(Seed());
  for (int round = 0; round < test::Rounds(20000); ++round) {
    const std::string text = RandomExpression(random);
    const Expression expression = Parsed(text);
    const std::string again = expression.ToString();
    ASSERT_EQ(Parsed(again), expression) << text << " became " << again;
    ASSERT_EQ(Parsed(again).ToString(), again) << text;
  }
}

TEST(ExpressionTest, ItsTextIsHowPeopleWriteIt) {
  for (const char* text :
       {"0 30 2 * * MON-FRI", "*/5 * * * * *", "0 0 0 L * *", "0 0 6 25 DEC SAT", "0 0 9-17 * * *",
        "0 15,45 8 1,15 JAN-MAR *", "5 5 5 LW * *", "0 0 0 * * FRI#2", "0 0 0 L-3 * FRIL"}) {
    EXPECT_EQ(Parsed(text).ToString(), text);
  }
}

TEST(ExpressionTest, AnIntervalIsWrittenAsOne) {
  EXPECT_TRUE(Parsed("* 0 0 * * *").IsInterval());
  EXPECT_TRUE(Parsed("0 */30 1 * * *").IsInterval());
  EXPECT_TRUE(Parsed("0 0 9-17 * * *").IsInterval());
  EXPECT_FALSE(Parsed("0 0,30 1 * * *").IsInterval());
  EXPECT_FALSE(Parsed("0 0 0 */2 1-6 MON-FRI").IsInterval());
  EXPECT_FALSE(Parsed("@daily").IsInterval());
  EXPECT_TRUE(Parsed("@hourly").IsInterval());
}

TEST(ExpressionTest, ADashDisablesWhereThatIsPossible) {
  EXPECT_THAT(Expression::ParseUnlessDisabled("-"), test::IsOkAndHolds(std::nullopt));
  EXPECT_THAT(Expression::ParseUnlessDisabled("@daily"), test::IsOkAndHolds(Parsed("@daily")));
  EXPECT_THAT(Expression::ParseUnlessDisabled("--"),
              test::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Expression::Parse("-"), test::StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ExpressionTest, ItIsDescribedInEnglish) {
  for (const auto& [text, english] : std::vector<std::pair<std::string, std::string>>{
           {"* * * * * *", "every second"},
           {"*/10 * * * * *", "every 10 seconds"},
           {"30 * * * * *", "at second 30 of every minute"},
           {"0 * * * * *", "every minute"},
           {"0 */15 * * * *", "every 15 minutes"},
           {"0 5,35 * * * *", "at minutes 5 and 35 of every hour"},
           {"0 0 * * * *", "every hour"},
           {"0 0 */2 * * *", "every 2 hours from 00:00"},
           {"0 0 9-17 * * MON-FRI", "on the hour from 09:00 to 17:59, Monday to Friday"},
           {"0 */5 9-17 * * MON-FRI", "every 5 minutes from 09:00 to 17:59, Monday to Friday"},
           {"*/10 0 8,20 * * *", "every 10 seconds during minute 0 during hours 8 and 20"},
           {"0 30 2 * * *", "at 02:30 every day"},
           {"15 30 2,14 * * *", "at 02:30:15 and 14:30:15 every day"},
           {"0 30 2 * * MON-FRI", "at 02:30, Monday to Friday"},
           {"0 30 2 * * MON,FRI", "at 02:30, on Monday and Friday"},
           {"0 0 0 1,15 * *", "at 00:00, on days 1 and 15 of the month"},
           {"0 0 0 13 * FRI", "at 00:00, on day 13 of the month, if it is Friday"},
           {"0 0 0 L * *", "at 00:00, on the last day of the month"},
           {"0 0 0 L-1 * *", "at 00:00, on the day 1 day before the last of the month"},
           {"0 0 0 LW,15W * *",
            "at 00:00, on the weekday nearest day 15 of the month and the last weekday of the "
            "month"},
           {"0 0 0 ? * FRI#2", "at 00:00, on the second Friday of the month"},
           {"0 0 0 ? * FRIL", "at 00:00, on the last Friday of the month"},
           {"0 0 6 25 DEC SAT", "at 06:00, on day 25 of the month, if it is Saturday, in December"},
           {"0 0 0 * 6-8 *", "at 00:00 every day, in June to August"},
       }) {
    EXPECT_EQ(Parsed(text).Describe(), english) << text;
  }
}

TEST(ExpressionTest, AnyCanBeDescribed) {
  Random random(Seed());
  for (int round = 0; round < test::Rounds(5000); ++round) {
    const std::string text = RandomExpression(random);
    EXPECT_THAT(Parsed(text).Describe(), testing::Not(testing::IsEmpty())) << text;
  }
}

}  // namespace
}  // namespace bobbin::cron
