// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/cron/schedule.h>

#include "tests/cron/oracle.h"
#include "tests/cron/tsv.h"
#include "tests/cron/zones.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace bobbin::cron {
namespace {

using test::Oracle;
using test::Random;
using test::RandomExpression;
using test::ReadTsv;
using test::Seed;
using test::TsvRow;
using test::ZoneNamed;

using Pass = Occurrence::Pass;

Schedule Make(const std::string& expression, const std::string& zone,
              Repeated repeated = Repeated::kFirst, Skipped skipped = Skipped::kSkip) {
  return Schedule({.expression = *Expression::Parse(expression),
                   .zone = ZoneNamed(zone),
                   .repeated = repeated,
                   .skipped = skipped});
}

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << text << ": " << error;
  return time;
}

std::string Shown(absl::Time time, absl::TimeZone zone) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%S%Ez", time, zone);
}

std::string NextText(const Schedule& schedule, const std::string& after) {
  const std::optional<Occurrence> next = schedule.Next(At(after));
  return next ? Shown(next->time, schedule.zone()) : "none";
}

std::vector<absl::Time> RunsBetween(const Schedule& schedule, absl::Time from, absl::Time to) {
  std::vector<absl::Time> runs;
  for (const Occurrence& run : schedule.Between(from, to)) runs.push_back(run.time);
  return runs;
}

std::vector<std::string> RunTexts(const Schedule& schedule, const std::string& from,
                                  const std::string& to) {
  std::vector<std::string> texts;
  for (absl::Time time : RunsBetween(schedule, At(from), At(to))) {
    texts.push_back(Shown(time, schedule.zone()));
  }
  return texts;
}

TEST(ScheduleTest, EveryRowOfTheTableHasItsNextRun) {
  const std::vector<TsvRow> rows = ReadTsv("vectors.tsv");
  EXPECT_GT(rows.size(), 1300u);
  for (const TsvRow& row : rows) {
    const std::string& text = row[0];
    if (row[3] == "none") {
      // What never runs is no expression, and the reason is known.
      const std::optional<Mistake> mistake = FindMistake(text);
      ASSERT_TRUE(mistake) << "line " << row.line << ": " << text;
      EXPECT_EQ(mistake->kind, Mistake::Kind::kNever) << "line " << row.line << ": " << text;
      EXPECT_TRUE(WhyNever(text)) << text;
      continue;
    }
    EXPECT_EQ(NextText(Make(text, row[1]), row[2]), row[3])
        << "line " << row.line << ": " << text << " in " << row[1] << " from " << row[2];
  }
}

TEST(ScheduleTest, OtherPoliciesHaveTheirOwnTable) {
  const std::vector<TsvRow> rows = ReadTsv("dst_alternatives.tsv");
  EXPECT_GT(rows.size(), 70u);
  for (const TsvRow& row : rows) {
    const std::string where =
        "line " + std::to_string(row.line) + ": " + row[0] + " in " + row[1] + " from " + row[2];
    EXPECT_EQ(NextText(Make(row[0], row[1]), row[2]), row[3]) << where;
    if (row[6].starts_with("HangfireIO/Cronos")) {
      EXPECT_EQ(
          NextText(Make(row[0], row[1], Repeated::kIntervalsInBoth, Skipped::kFirstInstantAfter),
                   row[2]),
          row[5])
          << where;
    }
  }
}

TEST(ScheduleTest, ARepeatedTimeRunsOnceTheFirstTime) {
  EXPECT_THAT(RunTexts(Make("0 30 1 * * *", "America/New_York"), "2026-10-31T12:00:00Z",
                       "2026-11-03T00:00:00Z"),
              testing::ElementsAre("2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"));
  // Asked from the second pass, the day's run is spent.
  EXPECT_EQ(NextText(Make("0 30 1 * * *", "America/New_York"), "2026-11-01T06:10:00Z"),
            "2026-11-02T01:30:00-05:00");
  EXPECT_EQ(NextText(Make("0 */30 * * * *", "America/New_York"), "2026-11-01T06:10:00Z"),
            "2026-11-01T02:00:00-05:00");
}

TEST(ScheduleTest, ARepeatedTimeMayRunTwice) {
  const Schedule both = Make("0 30 1 * * *", "America/New_York", Repeated::kBoth);
  EXPECT_THAT(RunTexts(both, "2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z"),
              testing::ElementsAre("2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00",
                                   "2026-11-02T01:30:00-05:00"));
  std::vector<Pass> passes;
  for (const Occurrence& run :
       both.Between(At("2026-11-01T00:00:00Z"), At("2026-11-03T00:00:00Z"))) {
    passes.push_back(run.pass);
    EXPECT_EQ(run.local, both.zone().At(run.time).cs);
  }
  EXPECT_THAT(passes, testing::ElementsAre(Pass::kFirst, Pass::kSecond, Pass::kOnly));
}

TEST(ScheduleTest, IntervalsMayRunInBothPasses) {
  const std::string from = "2026-11-01T04:59:59Z";
  const std::string to = "2026-11-01T07:30:00Z";
  EXPECT_THAT(
      RunTexts(Make("0 */30 * * * *", "America/New_York", Repeated::kIntervalsInBoth), from, to),
      testing::ElementsAre("2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00",
                           "2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00",
                           "2026-11-01T02:00:00-05:00"));
  EXPECT_THAT(
      RunTexts(Make("0 30 1 * * *", "America/New_York", Repeated::kIntervalsInBoth), from, to),
      testing::ElementsAre("2026-11-01T01:30:00-04:00"));
}

TEST(ScheduleTest, ASkippedTimeDoesNotRunUnlessItIsToldTo) {
  const std::string from = "2026-03-28T12:00:00Z";
  const std::string to = "2026-03-30T12:00:00Z";
  EXPECT_THAT(RunTexts(Make("0 30 2 * * *", "Europe/Berlin"), from, to),
              testing::ElementsAre("2026-03-30T02:30:00+02:00"));
  const Schedule moved =
      Make("0 30 2 * * *", "Europe/Berlin", Repeated::kFirst, Skipped::kFirstInstantAfter);
  EXPECT_THAT(RunTexts(moved, from, to),
              testing::ElementsAre("2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"));
  EXPECT_EQ(moved.Next(At(from))->pass, Pass::kAfterGap);
  // However many times were skipped, there is one run in their place.
  EXPECT_THAT(RunTexts(Make("0 */10 2,3 29 3 *", "Europe/Berlin", Repeated::kFirst,
                            Skipped::kFirstInstantAfter),
                       from, "2026-03-29T01:15:00Z"),
              testing::ElementsAre("2026-03-29T03:00:00+02:00", "2026-03-29T03:10:00+02:00"));
}

TEST(ScheduleTest, WhatIsAlwaysSkippedNeverRuns) {
  // Clocks are put forward on the second Sunday in March, at two.
  const Schedule never = Make("0 30 2 ? 3 SUN#2", "America/New_York");
  EXPECT_EQ(never.Next(At("2026-01-01T00:00:00Z")), std::nullopt);
  EXPECT_EQ(
      Make("0 30 2 ? 3 SUN#2", "America/New_York", Repeated::kFirst, Skipped::kFirstInstantAfter)
          .Next(At("2026-01-01T00:00:00Z"))
          ->time,
      At("2026-03-08T03:00:00-04:00"));
}

TEST(ScheduleTest, InfinityIsNoTime) {
  const Schedule every = Make("* * * * * *", "Europe/Berlin", Repeated::kBoth);
  const Schedule in_utc = Make("* * * * * *", "UTC");
  for (const Schedule* schedule : {&every, &in_utc}) {
    for (absl::Time time : {absl::InfinitePast(), absl::InfiniteFuture()}) {
      EXPECT_EQ(schedule->Next(time), std::nullopt);
      EXPECT_EQ(schedule->Previous(time), std::nullopt);
    }
    EXPECT_TRUE(schedule->Between(absl::InfinitePast(), absl::InfiniteFuture()).begin() ==
                schedule->Between(absl::InfinitePast(), absl::InfiniteFuture()).end());
  }
}

TEST(ScheduleTest, BetweenBeginsWithItsBeginAndEndsBeforeItsEnd) {
  const Schedule minutes = Make("0 * * * * *", "UTC");
  const absl::Time noon = At("2026-06-01T12:00:00Z");
  EXPECT_THAT(RunsBetween(minutes, noon, noon + absl::Minutes(2)),
              testing::ElementsAre(noon, noon + absl::Minutes(1)));
  EXPECT_THAT(RunsBetween(minutes, noon + absl::Nanoseconds(1), noon + absl::Minutes(1)),
              testing::IsEmpty());
  EXPECT_THAT(RunsBetween(minutes, noon, noon), testing::IsEmpty());
  EXPECT_THAT(RunsBetween(minutes, noon + absl::Minutes(1), noon), testing::IsEmpty());
}

TEST(ScheduleTest, MatchesTheSecondOfARun) {
  const Schedule schedule = Make("0 30 1 * * *", "America/New_York");
  EXPECT_TRUE(schedule.Matches(At("2026-11-01T01:30:00-04:00")));
  EXPECT_TRUE(schedule.Matches(At("2026-11-01T01:30:00-04:00") + absl::Milliseconds(999)));
  EXPECT_FALSE(schedule.Matches(At("2026-11-01T01:30:00-05:00"))) << "the second pass";
  EXPECT_FALSE(schedule.Matches(At("2026-11-01T01:30:01-04:00")));
  EXPECT_TRUE(Make("0 30 1 * * *", "America/New_York", Repeated::kBoth)
                  .Matches(At("2026-11-01T01:30:00-05:00")));
}

constexpr Repeated kRepeated[] = {Repeated::kFirst, Repeated::kBoth, Repeated::kIntervalsInBoth};
constexpr Skipped kSkipped[] = {Skipped::kSkip, Skipped::kFirstInstantAfter};

Schedule RandomPolicy(Random& random, const std::string& expression, absl::TimeZone zone) {
  return Schedule({.expression = *Expression::Parse(expression),
                   .zone = zone,
                   .repeated = kRepeated[random.Below(3)],
                   .skipped = kSkipped[random.Below(2)]});
}

std::string Story(const Schedule& schedule, const std::string& text, absl::Time time) {
  return text + " in " + schedule.zone().name() + " at " + Shown(time, schedule.zone());
}

TEST(ScheduleTest, NextIsTheSameFromWhereverAndPreviousGoesBack) {
  Random random(Seed());
  const std::vector<std::string> names = test::ZoneNames();
  for (int round = 0; round < test::Rounds(20000); ++round) {
    const absl::TimeZone zone = ZoneNamed(names[random.Below(names.size())]);
    const std::string text = RandomExpression(random);
    const Schedule schedule = RandomPolicy(random, text, zone);
    const absl::Time time = test::TimeNearAChange(random, zone);
    const std::optional<Occurrence> next = schedule.Next(time);
    if (!next) continue;  // Always skipped.
    const std::string story = Story(schedule, text, time);
    ASSERT_GT(next->time, time) << story;
    ASSERT_EQ(zone.At(next->time).cs, next->local) << story;
    // From anywhere between, also within a second.
    const absl::Duration way = next->time - time;
    const absl::Time between =
        time + std::min(way - absl::Nanoseconds(1),
                        way * (static_cast<double>(random.Below(1'000'000)) / 1e6));
    ASSERT_EQ(schedule.Next(between), next) << story << " and " << between;
    ASSERT_EQ(schedule.Next(next->time - absl::Nanoseconds(1)), next) << story;
    // There and back.
    ASSERT_EQ(schedule.Previous(next->time + absl::Nanoseconds(1)), next) << story;
    const std::optional<Occurrence> previous = schedule.Previous(next->time);
    if (!previous) continue;
    ASSERT_LE(previous->time, time) << story;
    ASSERT_EQ(schedule.Next(previous->time), next) << story;
    ASSERT_EQ(schedule.Previous(between + absl::Nanoseconds(1)), previous) << story;
  }
}

TEST(ScheduleTest, EverySecondAroundAChangeAgreesWithTheOracle) {
  Random random(Seed());
  const std::vector<std::string> names = test::ZoneNames();
  for (int round = 0; round < test::Rounds(100); ++round) {
    const absl::TimeZone zone = ZoneNamed(names[random.Below(names.size())]);
    const std::string text = RandomExpression(random);
    const Schedule schedule = RandomPolicy(random, text, zone);
    const absl::Time from = test::TimeNearAChange(random, zone) - absl::Hours(2);
    const absl::Time to = from + absl::Hours(4);
    const std::vector<absl::Time> expected =
        test::OracleRuns(schedule, text, from, to, absl::Seconds(1));
    ASSERT_EQ(RunsBetween(schedule, from, to), expected) << Story(schedule, text, from);
  }
}

TEST(ScheduleTest, YearsInADozenZonesAgreeWithTheOracle) {
  Random random(Seed());
  for (const char* name :
       {"UTC", "America/New_York", "Europe/Berlin", "Europe/London", "Australia/Lord_Howe",
        "America/Santiago", "Africa/Casablanca", "Africa/Cairo", "Asia/Tehran", "Asia/Kathmandu",
        "Pacific/Apia", "America/Havana", "Europe/Dublin", "Antarctica/Troll"}) {
    const absl::TimeZone zone = ZoneNamed(name);
    for (int round = 0; round < test::Rounds(2); ++round) {
      const std::string text = RandomExpression(random, "0");
      const Schedule schedule = RandomPolicy(random, text, zone);
      const absl::Time from = absl::FromCivil(
          absl::CivilHour(random.Between(1972, 2040), random.Between(1, 12), 1), zone);
      const absl::Time to = from + absl::Hours(24 * 366);
      ASSERT_EQ(RunsBetween(schedule, from, to),
                test::OracleRuns(schedule, text, from, to, absl::Minutes(1)))
          << Story(schedule, text, from);
    }
  }
}

}  // namespace
}  // namespace bobbin::cron
