// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/schedule.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/cron/zone.h>
#include <bobbin/sched/sleep.h>

#include "tests/cron/manual_clock.h"
#include "tests/cron/oracle.h"
#include "tests/cron/zones.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/seed.h"

namespace bobbin::cron {
namespace {

using namespace std::chrono_literals;
using test::HoldingRunner;
using test::InlineRunner;
using test::ManualClock;
using test::ZoneNamed;
using testing::ElementsAre;
using testing::HasSubstr;

const absl::Time kBegin = absl::FromCivil(absl::CivilSecond(2026, 1, 1), absl::UTCTimeZone());

// A scheduler that a test drives, its clock, and what was run when.
struct Bench {
  explicit Bench(JobRunner* with = nullptr)
      : scheduler({.runner = with != nullptr ? with : &inline_runner,
                   .clock = &clock,
                   .property = [this](std::string_view key) -> std::optional<std::string> {
                     const auto found = properties.find(std::string(key));
                     if (found == properties.end()) return std::nullopt;
                     return found->second;
                   },
                   .drive = SchedulerOptions::Drive::kByHand}) {}

  // Lets time go by, stopping at whatever is due.
  void Advance(absl::Duration duration) {
    const absl::Time end = clock.Now().wall + duration;
    while (true) {
      const absl::Time next = scheduler.StartDue();
      const absl::Time now = clock.Now().wall;
      if (next > end) {
        clock.Advance(end - now);
        return;
      }
      clock.Advance(next - now);
    }
  }
  // A body that notes the seconds since the begin at which it runs.
  auto Note() {
    return [this] { starts.push_back(absl::ToInt64Seconds(clock.Now().wall - kBegin)); };
  }
  JobInfo Info(const std::string& name) {
    for (JobInfo& job : scheduler.Jobs()) {
      if (job.name == name) return std::move(job);
    }
    ADD_FAILURE() << name;
    return {};
  }

  ManualClock clock{kBegin};
  InlineRunner inline_runner;
  std::map<std::string, std::string> properties;
  std::vector<int64_t> starts;
  Scheduler scheduler;
};

TEST(SchedulerTest, ACronJobRunsWhenItsExpressionSays) {
  Bench bench;
  std::vector<absl::Time> scheduled;
  ASSERT_OK(
      bench.scheduler.Add({.name = "job", .when = "0 30 2 * * *"_cron}, [&](const JobRun& run) {
        EXPECT_EQ(run.name, "job");
        EXPECT_EQ(run.scheduled, bench.clock.Now().wall);
        scheduled.push_back(run.scheduled);
      }));
  EXPECT_EQ(bench.Info("job").next, kBegin + absl::Minutes(150));
  bench.Advance(absl::Hours(48));
  EXPECT_THAT(scheduled,
              ElementsAre(kBegin + absl::Minutes(150), kBegin + absl::Minutes(150 + 1440)));
}

TEST(SchedulerTest, AFixedRateKeepsItsGridAndMakesNoBurst) {
  Bench bench;
  ASSERT_OK(
      bench.scheduler.Add({.name = "rate", .fixed_rate = 10s, .initial_delay = 3s}, bench.Note()));
  bench.Advance(absl::Seconds(24));
  bench.clock.Advance(absl::Seconds(3600));  // Nobody looks for an hour.
  bench.Advance(absl::Seconds(10));
  EXPECT_THAT(bench.starts, ElementsAre(3, 13, 23, 3624, 3633));
  EXPECT_EQ(bench.Info("rate").missed, 359u);
}

TEST(SchedulerTest, ADelayCountsFromTheEnd) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "delay", .fixed_delay = 10s}, [&] {
    bench.Note()();
    bench.clock.Advance(absl::Seconds(5));
    return absl::InternalError("it fails, and is run again all the same");
  }));
  bench.Advance(absl::Seconds(40));
  EXPECT_THAT(bench.starts, ElementsAre(0, 15, 30));
  const JobInfo info = bench.Info("delay");
  EXPECT_EQ(info.runs, 3u);
  EXPECT_EQ(info.failures, 3u);
  EXPECT_THAT(info.last_error, HasSubstr("it fails"));
  EXPECT_EQ(info.last_success, std::nullopt);
}

TEST(SchedulerTest, TheWallClockDoesNotMoveRatesAndDelays) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "rate", .fixed_rate = 10s}, bench.Note()));
  bench.Advance(absl::Seconds(15));
  bench.clock.SetWall(kBegin - absl::Hours(5));
  bench.Advance(absl::Seconds(10));
  EXPECT_EQ(bench.Info("rate").runs, 3u);
}

TEST(SchedulerTest, RunsOfAJobDoNotOverlap) {
  HoldingRunner runner;
  Bench bench(&runner);
  ASSERT_OK(bench.scheduler.Add({.name = "slow", .when = "0 * * * * *"_cron}, bench.Note()));
  ASSERT_OK(bench.scheduler.Add({.name = "z", .when = "0 3 * * * *"_cron}, bench.Note()));
  bench.Advance(absl::Minutes(3));
  EXPECT_TRUE(bench.Info("slow").is_running);
  ASSERT_EQ(runner.held.size(), 2u) << "a slow job does not hold up another one";
  EXPECT_EQ(bench.Info("slow").overlap_skips, 2u);
  runner.RunOne();
  EXPECT_FALSE(bench.Info("slow").is_running);
  EXPECT_EQ(bench.Info("slow").start_lag, absl::Minutes(2));
  bench.Advance(absl::Minutes(1));
  EXPECT_TRUE(bench.Info("slow").is_running);
  EXPECT_EQ(bench.Info("slow").overlap_skips, 2u);
  while (!runner.held.empty()) runner.RunOne();
}

TEST(SchedulerTest, WhatWasSleptThroughRunsOnceUnlessItIsToldOtherwise) {
  Bench bench;
  std::map<std::string, std::vector<int64_t>> scheduled;
  const auto note = [&](const JobRun& run) {
    scheduled[std::string(run.name)].push_back(absl::ToInt64Minutes(run.scheduled - kBegin));
  };
  ASSERT_OK(bench.scheduler.Add({.name = "once", .when = "0 * * * * *"_cron}, note));
  ASSERT_OK(bench.scheduler.Add(
      {.name = "skip", .when = "0 0 * * * *"_cron, .missed = Missed::kSkip}, note));
  ASSERT_OK(bench.scheduler.Add(
      {.name = "all", .when = "0 * * * * *"_cron, .missed = Missed::kRunAll, .missed_max = 3},
      note));
  ASSERT_OK(bench.scheduler.Add(
      {.name = "rate", .fixed_rate = 1min, .missed = Missed::kRunAll, .missed_max = 2}, note));
  bench.clock.Advance(absl::Minutes(90) + absl::Seconds(30));
  bench.scheduler.StartDue();
  EXPECT_THAT(scheduled["once"], ElementsAre(90));
  EXPECT_EQ(bench.Info("once").missed, 89u);
  EXPECT_THAT(scheduled["skip"], ElementsAre());
  EXPECT_EQ(bench.Info("skip").missed, 1u);
  EXPECT_THAT(scheduled["all"], ElementsAre(88, 89, 90));
  EXPECT_EQ(bench.Info("all").missed, 87u);
  EXPECT_THAT(scheduled["rate"], ElementsAre(89, 90));
  // A little late is not missed.
  bench.clock.SetWall(kBegin + absl::Minutes(120) + absl::Seconds(59));
  bench.scheduler.StartDue();
  EXPECT_THAT(scheduled["skip"], ElementsAre(120));
}

TEST(SchedulerTest, ALongSleepOfADenseJobIsNoLongLook) {
  Bench bench;
  std::vector<absl::Time> scheduled;
  ASSERT_OK(bench.scheduler.Add({.name = "dense", .when = "* * * * * *"_cron},
                                [&](const JobRun& run) { scheduled.push_back(run.scheduled); }));
  bench.clock.Advance(absl::Hours(24 * 365 * 100));
  bench.scheduler.StartDue();
  EXPECT_THAT(scheduled, ElementsAre(bench.clock.Now().wall));
  bench.Advance(absl::Seconds(1));
  EXPECT_EQ(scheduled.size(), 2u);
}

TEST(SchedulerTest, AClockThatIsPutBackRunsNothingTwice) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "hourly", .when = "@hourly"}, bench.Note()));
  bench.Advance(absl::Hours(5));
  bench.scheduler.StartDue();
  ASSERT_EQ(bench.starts.size(), 5u);
  bench.clock.SetWall(kBegin + absl::Hours(2));
  bench.Advance(absl::Hours(3) + absl::Minutes(30));
  EXPECT_EQ(bench.starts.size(), 5u);
  bench.Advance(absl::Hours(1));
  EXPECT_EQ(bench.starts.size(), 6u);
  // By days: it was wrong before.
  bench.clock.SetWall(kBegin - absl::Hours(24 * 100));
  bench.scheduler.StartDue();
  EXPECT_EQ(bench.Info("hourly").next, kBegin - absl::Hours(24 * 100) + absl::Hours(1));
}

TEST(SchedulerTest, JobsComeAndGoAtAnyTime) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "a", .fixed_rate = 10s}, bench.Note()));
  ASSERT_OK(bench.scheduler.Pause("a"));
  bench.Advance(absl::Seconds(25));
  EXPECT_THAT(bench.starts, ElementsAre());
  EXPECT_TRUE(bench.Info("a").is_paused);
  ASSERT_OK(bench.scheduler.RunNow("a"));
  ASSERT_OK(bench.scheduler.Resume("a"));
  bench.Advance(absl::Seconds(10));
  EXPECT_THAT(bench.starts, ElementsAre(25, 30));
  ASSERT_OK(bench.scheduler.Remove("a"));
  bench.Advance(absl::Hours(1));
  EXPECT_EQ(bench.starts.size(), 2u);
  EXPECT_TRUE(bench.scheduler.Jobs().empty());
  EXPECT_EQ(bench.scheduler.StartDue(), absl::InfiniteFuture());
  for (const absl::Status& status : {bench.scheduler.Remove("a"), bench.scheduler.Pause("a"),
                                     bench.scheduler.Resume("a"), bench.scheduler.RunNow("a")}) {
    EXPECT_THAT(status, test::StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST(SchedulerTest, APausedDelayGoesOn) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "a", .fixed_delay = 10s}, bench.Note()));
  ASSERT_OK(bench.scheduler.Pause("a"));
  bench.Advance(absl::Seconds(15));
  ASSERT_OK(bench.scheduler.Resume("a"));
  bench.Advance(absl::Seconds(20));
  EXPECT_THAT(bench.starts, ElementsAre(20, 30));
}

TEST(SchedulerTest, ARunThatIsRefusedOrDroppedIsAFailure) {
  HoldingRunner runner;
  Bench bench(&runner);
  ASSERT_OK(bench.scheduler.Add({.name = "a", .fixed_delay = 10s}, bench.Note()));
  runner.refuses = true;
  bench.scheduler.StartDue();
  EXPECT_EQ(bench.Info("a").failures, 1u);
  EXPECT_THAT(bench.Info("a").last_error, HasSubstr("it is full"));
  runner.refuses = false;
  bench.Advance(absl::Seconds(15));
  ASSERT_EQ(runner.held.size(), 1u);
  runner.held.clear();
  EXPECT_EQ(bench.Info("a").failures, 2u);
  EXPECT_THAT(bench.Info("a").last_error, HasSubstr("dropped"));
  EXPECT_EQ(bench.Info("a").runs, 0u);
  EXPECT_FALSE(bench.Info("a").is_running);
}

TEST(SchedulerTest, AnExceptionIsAFailureToo) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "a", .fixed_rate = 10s}, [] { throw 7; }));
  bench.Advance(absl::Seconds(15));
  EXPECT_EQ(bench.Info("a").failures, 2u);
  EXPECT_THAT(bench.Info("a").last_error, HasSubstr("exception"));
}

TEST(SchedulerTest, JitterIsTheNamesOwn) {
  Bench bench;
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_OK(
        bench.scheduler.Add({.name = name, .when = "@hourly", .jitter = absl::Minutes(10)}, [] {}));
  }
  std::vector<absl::Duration> delays;
  for (const JobInfo& job : bench.scheduler.Jobs()) delays.push_back(*job.next - kBegin);
  for (absl::Duration delay : delays) {
    EXPECT_GE(delay, absl::Hours(1));
    EXPECT_LT(delay, absl::Hours(1) + absl::Minutes(10));
  }
  std::sort(delays.begin(), delays.end());
  EXPECT_EQ(std::adjacent_find(delays.begin(), delays.end()), delays.end());
  const absl::Time next = *bench.Info("a").next;
  bench.Advance(absl::Hours(2));
  EXPECT_EQ(bench.Info("a").runs, 1u);
  EXPECT_EQ(bench.Info("a").next, next + absl::Hours(1));
}

TEST(SchedulerTest, TextsMayNameProperties) {
  Bench bench;
  bench.properties = {{"when", "0 0 9 * * *"}, {"zone", "+05:30"}, {"off", "-"}, {"rate", "PT90S"}};
  ASSERT_OK(bench.scheduler.Add({.name = "cron", .when = "${when}", .zone = "${zone:UTC}"}, [] {}));
  ASSERT_OK(bench.scheduler.Add({.name = "fallback", .when = "0 ${minute:30} 2 * * *"}, [] {}));
  ASSERT_OK(bench.scheduler.Add({.name = "off", .when = "${off:@daily}"}, [] {}));
  ASSERT_OK(bench.scheduler.Add({.name = "rate", .fixed_rate = "${rate}"}, [] {}));
  EXPECT_EQ(bench.Info("cron").schedule, "cron 0 0 9 * * * (+05:30)");
  EXPECT_EQ(bench.Info("fallback").schedule, "cron 0 30 2 * * *");
  EXPECT_EQ(bench.Info("rate").schedule, "every 1m30s");
  EXPECT_TRUE(bench.Info("off").is_disabled);
  EXPECT_EQ(bench.Info("off").next, std::nullopt);
}

TEST(SchedulerTest, WhatIsWrongWithAJobIsSaid) {
  Bench bench;
  const auto error = [&](JobOptions options) {
    const absl::Status status = bench.scheduler.Add(std::move(options), [] {});
    EXPECT_FALSE(status.ok());
    return std::string(MessageOf(status));
  };
  EXPECT_THAT(error({.when = "@daily"}), HasSubstr("it has no name"));
  EXPECT_EQ(error({.name = "x"}),
            "add job \"x\": exactly one of when, fixed_rate and fixed_delay is needed, not 0");
  EXPECT_THAT(error({.name = "x", .when = "@daily", .fixed_rate = 1s}), HasSubstr("not 2"));
  EXPECT_THAT(error({.name = "x", .fixed_rate = 1s, .zone = "UTC"}), HasSubstr("a zone is for"));
  EXPECT_THAT(error({.name = "x", .when = "@daily", .initial_delay = 1s}),
              HasSubstr("an initial delay is for"));
  EXPECT_EQ(error({.name = "x", .fixed_rate = 0s}),
            "add job \"x\": fixed_rate must be positive, not 0");
  EXPECT_THAT(error({.name = "x", .fixed_delay = "-5s"}),
              HasSubstr("fixed_delay must be positive"));
  EXPECT_THAT(error({.name = "x", .fixed_delay = "soon"}), HasSubstr("is no length of time"));
  EXPECT_THAT(error({.name = "x", .when = "0 61 * * * *"}), HasSubstr("minute, column 3"));
  EXPECT_THAT(error({.name = "x", .when = "@daily", .zone = "Europe/Berlim"}),
              HasSubstr("is it Europe/Berlin?"));
  EXPECT_THAT(error({.name = "x", .when = "${none}"}),
              HasSubstr("the property \"none\" has no value"));
  EXPECT_THAT(error({.name = "x", .when = "${none"}), HasSubstr("is not closed"));
  EXPECT_THAT(error({.name = "x", .when = "@daily", .jitter = absl::Seconds(-1)}),
              HasSubstr("negative"));
  EXPECT_THAT(bench.scheduler.Jobs(), testing::IsEmpty());
  ASSERT_OK(bench.scheduler.Add({.name = "x", .when = "@daily"}, [] {}));
  EXPECT_THAT(bench.scheduler.Add({.name = "x", .when = "@daily"}, [] {}),
              test::StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_OK(bench.scheduler.Stop());
  EXPECT_THAT(bench.scheduler.Add({.name = "y", .when = "@daily"}, [] {}),
              test::StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(bench.scheduler.RunNow("x"), test::StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(SchedulerTest, TheListingIsJsonToo) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "b", .fixed_rate = 10s},
                                [] { return absl::InternalError("\xff\n"); }));
  ASSERT_OK(bench.scheduler.Add({.name = "a", .when = "-"}, [] {}));
  bench.Advance(absl::Seconds(1));
  const std::string json = bench.scheduler.JobsJson();
  EXPECT_THAT(
      json, testing::StartsWith("[{\"name\":\"a\",\"schedule\":\"cron -\",\"executor\":\"inline\","
                                "\"running\":false,\"runs\":0,\"failures\":0,\"skipped\":0,"));
  EXPECT_THAT(json, HasSubstr("\"nextRunEpochMillis\":1767225610000,"
                              "\"lastRunEpochMillis\":1767225600000,\"lastDurationMillis\":0,"
                              "\"lastError\":\"INTERNAL: "));
  EXPECT_EQ(json.find('\n'), json.npos);
}

TEST(SchedulerTest, RecentRunsAreRemembered) {
  Bench bench;
  ASSERT_OK(bench.scheduler.Add({.name = "a", .fixed_rate = 10s},
                                [&] { bench.clock.Advance(absl::Milliseconds(1)); }));
  bench.Advance(absl::Seconds(1000));
  const JobInfo info = bench.Info("a");
  ASSERT_EQ(info.recent.size(), 16u);
  EXPECT_EQ(info.recent[0].duration, absl::Milliseconds(1));
  EXPECT_EQ(info.recent[0].scheduled - info.recent[1].scheduled, absl::Seconds(10));
  EXPECT_EQ(info.recent[0].outcome, JobOutcome::kSuccess);
}

// What happens to the clocks of a year.
struct Jump {
  absl::Time from;
  absl::Time to;
};

TEST(SchedulerTest, AYearOfAHundredJobsFiresExactlyWhenItShould) {
  test::Random random(test::Seed());
  const absl::Time end = kBegin + absl::Hours(24 * 365);
  // Suspends, and steps in both directions, some of them over a change of the clocks.
  std::vector<Jump> jumps;
  for (int i = 0; i < 40; ++i) {
    const absl::Time from = kBegin + absl::Hours(24 * 9 * i) + absl::Seconds(random.Below(86'400));
    const absl::Duration by = absl::Seconds(random.Between(-20 * 3600, 30 * 3600));
    jumps.push_back({from, from + by});
  }

  const std::vector<std::string> zones = {
      "UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "+05:30"};
  struct Planned {
    std::string name;
    Schedule schedule;
  };
  Bench bench;
  std::vector<Planned> planned;
  std::vector<std::pair<absl::Time, std::string>> fired;  // When, and who.
  for (int i = 0; i < 100; ++i) {
    const std::string name = "job" + std::to_string(1000 + i);
    const std::string expression = test::RandomExpression(random, "0");
    // Not every minute: a year of those is half a million.
    const std::string rarely = "0 " + std::to_string(random.Below(60)) + " " +
                               std::to_string(random.Below(24)) +
                               expression.substr(expression.find(' ', expression.find(' ', 2) + 1));
    const std::string zone = zones[random.Below(zones.size())];
    const JobOptions options = {
        .name = name,
        .when = FindMistake(rarely) ? "0 30 2 * * *" : rarely,
        .zone = zone,
        .repeated = random.OneIn(2) ? Repeated::kFirst : Repeated::kBoth,
        .skipped = random.OneIn(2) ? Skipped::kSkip : Skipped::kFirstInstantAfter};
    planned.push_back({name, Schedule({.expression = *Expression::Parse(*options.when.text()),
                                       .zone = *FindZone(zone),
                                       .repeated = options.repeated,
                                       .skipped = options.skipped})});
    ASSERT_OK(bench.scheduler.Add(
        options, [&fired, &bench, name] { fired.emplace_back(bench.clock.Now().wall, name); }));
  }

  for (const Jump& jump : jumps) {
    if (jump.from > bench.clock.Now().wall) bench.Advance(jump.from - bench.clock.Now().wall);
    bench.scheduler.StartDue();
    bench.clock.SetWall(jump.to);
  }
  bench.Advance(end - bench.clock.Now().wall);

  // What was due and not jumped over, each at its time; of what a jump left out, the latest, where
  // the jump has led to. The clock never goes further than it has been without a look.
  std::vector<std::pair<absl::Time, std::string>> expected;
  for (const Planned& job : planned) {
    absl::Time reached = kBegin;
    const auto walk_to = [&](absl::Time to) {
      for (const Occurrence& due :
           job.schedule.Between(reached + absl::Nanoseconds(1), to + absl::Nanoseconds(1))) {
        expected.emplace_back(due.time, job.name);
      }
      reached = std::max(reached, to);
    };
    for (const Jump& jump : jumps) {
      walk_to(jump.from);
      if (jump.to <= reached) continue;
      const std::optional<Occurrence> latest =
          job.schedule.Previous(jump.to + absl::Nanoseconds(1));
      if (latest && latest->time > reached) expected.emplace_back(jump.to, job.name);
      reached = jump.to;
    }
    walk_to(end);
  }
  std::sort(expected.begin(), expected.end());
  std::stable_sort(fired.begin(), fired.end());
  ASSERT_GT(fired.size(), 1000u);
  for (size_t i = 0; i < std::min(fired.size(), expected.size()); ++i) {
    ASSERT_EQ(fired[i], expected[i]) << fired[i].second << " at " << fired[i].first << ", not "
                                     << expected[i].second << " at " << expected[i].first;
  }
  ASSERT_EQ(fired.size(), expected.size());
}

BOBBIN_TEST(SchedulerTest, ItsThreadStartsRunsOnVirtualThreads) {
  VirtualThreadRunner runner(runtime());
  Scheduler scheduler({.runner = &runner});
  Event third;
  int runs = 0;
  ASSERT_OK(scheduler.Add({.name = "often", .fixed_rate = 1ms}, [&] {
    EXPECT_EQ(this_vthread::Name(), "often");
    if (++runs == 3) third.Set();
  }));
  ASSERT_OK(third.Wait());
  ASSERT_OK(scheduler.Stop());
  EXPECT_GE(scheduler.Jobs()[0].runs, 3u);
}

BOBBIN_TEST(SchedulerTest, StopAsksThoseThatRunToStop) {
  VirtualThreadRunner virtual_threads(runtime());
  PlatformPool pool({.name = "jobs", .threads = 1});
  PoolRunner on_pool(pool);
  Scheduler scheduler({.runner = &virtual_threads});
  Event both[2];
  absl::Status ends[2];
  ASSERT_OK(scheduler.Add({.name = "virtual", .fixed_delay = 1h}, [&] {
    both[0].Set();
    ends[0] = SleepFor(1h);
    return ends[0];
  }));
  ASSERT_OK(scheduler.Add({.name = "platform", .fixed_delay = 1h, .runner = &on_pool},
                          [&](const JobRun& run) {
                            both[1].Set();
                            ends[1] = run.stop.Wait();
                          }));
  for (Event& started : both) ASSERT_OK(started.Wait());
  ASSERT_OK(scheduler.Stop());
  EXPECT_THAT(ends[0], test::StatusIs(test::kCancelled));
  EXPECT_OK(ends[1]);
}

BOBBIN_TEST(SchedulerTest, StopNamesWhoDoesNotEnd) {
  VirtualThreadRunner runner(runtime());
  Event started;
  Event release;
  Scheduler scheduler({.runner = &runner, .stop_budget = 20ms});
  ASSERT_OK(scheduler.Add({.name = "stubborn", .fixed_delay = 1h}, [&] {
    const CancelShield shield;
    started.Set();
    static_cast<void>(release.Wait());
  }));
  ASSERT_OK(started.Wait());
  const absl::Status stopped = scheduler.Stop();
  EXPECT_THAT(stopped, test::StatusIs(test::kDeadlineExceeded));
  EXPECT_EQ(MessageOf(stopped), "stop scheduler: still running: stubborn");
  release.Set();
  while (scheduler.Jobs()[0].is_running) ASSERT_OK(SleepFor(1ms));
  EXPECT_OK(scheduler.Stop());
}

BOBBIN_TEST(SchedulerTest, AddRemoveRunAndStopRace) {
  VirtualThreadRunner runner(runtime());
  for (int round = 0; round < test::Rounds(40); ++round) {
    Scheduler scheduler({.runner = &runner});
    for (int i = 0; i < 8; ++i) {
      ASSERT_OK(scheduler.Add({.name = std::to_string(i), .fixed_delay = 10us},
                              [] { return SleepFor(5us); }));
    }
    for (int i = 0; i < 8; ++i) {
      const std::string name = std::to_string(random().Below(8));
      switch (random().Below(4)) {
        case 0:
          scheduler.Remove(name).IgnoreError();
          break;
        case 1:
          scheduler.RunNow(name).IgnoreError();
          break;
        case 2:
          scheduler.Pause(name).IgnoreError();
          break;
        default:
          scheduler.Resume(name).IgnoreError();
      }
    }
    if (round % 2 == 0) {
      ASSERT_OK(SleepFor(200us));
    }
    ASSERT_OK(scheduler.Stop());
    for (const JobInfo& job : scheduler.Jobs()) EXPECT_FALSE(job.is_running);
  }
}

}  // namespace
}  // namespace bobbin::cron
