// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>
#include <bobbin/testing/atomic.h>
#include <bobbin/testing/clock.h>
#include <bobbin/testing/os_thread.h>
#include <bobbin/testing/plain.h>
#include <bobbin/testing/simulate.h>

namespace bobbin::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Stands before those in which a run fails, for they leave things behind.
TEST(SimulateTest, TheSameSeedMakesTheSameRun) {
  std::set<uint64_t> runs;
  const auto body = [&runs] {
    runs.insert(PresentRun());
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 3; ++i) group.Spawn([] { Yield(); });
    BOBBIN_CHECK(group.Wait().ok(), "nobody fails");
  };
  const auto all = Simulate({.seeds = 20, .carriers = 2}, body);
  const auto again = Simulate({.seeds = 20, .carriers = 2}, body);
  EXPECT_TRUE(all.ok() && again.ok());
  EXPECT_EQ(again.steps, all.steps);

  runs.clear();
  setenv("BOBBIN_SIM_SEED", "13", 1);
  const auto only = Simulate({.seeds = 20, .carriers = 2}, body);
  unsetenv("BOBBIN_SIM_SEED");
  EXPECT_TRUE(only.ok());
  EXPECT_EQ(runs, std::set<uint64_t>{13});
}

TEST(SimulateTest, RunsTheBodyOnceForEachSeed) {
  std::set<uint64_t> runs;
  const SimulationReport report = Simulate({.seeds = 100, .first_seed = 7, .carriers = 2}, [&] {
    runs.insert(PresentRun());
    Mutex mutex;
    Plain<int> sum(0);
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 4; ++i) {
      group.Spawn([&] {
        const MutexLock lock(mutex);
        sum.Write(sum.Read() + 1);
      });
    }
    BOBBIN_CHECK(group.Wait().ok() && sum.Read() == 4, "an addition got lost");
  });
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.runs, 100);
  EXPECT_EQ(runs.size(), 100);
  EXPECT_EQ(*runs.begin(), 7);
}

TEST(SimulateTest, SleepsTakeNoTime) {
  const auto report = Simulate({.seeds = 10, .carriers = 1}, [&] {
    const MonotonicTime before = MonotonicNow();
    BOBBIN_CHECK(SleepFor(hours(24)).ok(), "nobody stops the sleep");
    BOBBIN_CHECK(MonotonicNow() - before >= hours(24), "never early");
  });
  EXPECT_TRUE(report.ok());
}

TEST(SimulateTest, BlockingCallsRunOnSimulatedThreads) {
  const auto report = Simulate({.seeds = 100, .carriers = 1}, [] {
    const int answer = RunBlocking([] { return 42; }).value_or(0);
    BOBBIN_CHECK(answer == 42, "the answer");
  });
  EXPECT_TRUE(report.ok());
}

TEST(SimulateTest, TheWallClockMayBeSet) {
  const auto report = Simulate({.seeds = 3, .carriers = 0}, [] {
    const WallTime begin = WallNow();
    StepWallClock(hours(-1));
    const MonotonicTime before = MonotonicNow();
    BOBBIN_CHECK(WallNow() < begin, "an hour back");
    AdvanceTime(hours(2));
    BOBBIN_CHECK(WallNow() > begin + milliseconds(3'599'999), "and two forward");
    BOBBIN_CHECK(MonotonicNow() - before >= hours(2), "as the other clock");
  });
  EXPECT_TRUE(report.ok());
}

// --- What a run fails by.

TEST(SimulateTest, ADeadlockIsReportedWithWhoWaits) {
  const auto report = Simulate({.seeds = 100, .carriers = 2, .is_quiet = true}, [] {
    Mutex first;
    Mutex second;
    TaskGroup group({.placement = Placement::kSpread});
    group.Spawn([&] {
      const MutexLock outer(first);
      Yield();
      const MutexLock inner(second);
    });
    group.Spawn([&] {
      const MutexLock outer(second);
      Yield();
      const MutexLock inner(first);
    });
    BOBBIN_CHECK(group.Wait().ok(), "nobody fails");
  });
  EXPECT_THAT(report.failure, HasSubstr("a deadlock"));
  EXPECT_THAT(report.failure, HasSubstr("\"carrier-1\": waits"));
  EXPECT_THAT(report.failure, HasSubstr("2 waiting: mutex"));
}

TEST(SimulateTest, AFailedCheckEndsTheRunAndNotTheProcess) {
  const auto report = Simulate({.seeds = 5, .is_quiet = true},
                               [] { BOBBIN_CHECK(PresentRun() != 3, "the third run is bad"); });
  EXPECT_EQ(report.seed, 3);
  EXPECT_EQ(report.runs, 3);
  EXPECT_THAT(report.failure, HasSubstr("check failed: the third run is bad"));
}

TEST(SimulateTest, AnErrorOfTheBodyIsAFailure) {
  const auto report =
      Simulate({.seeds = 5, .is_quiet = true}, [] { return absl::NotFoundError("nothing here"); });
  EXPECT_THAT(report.failure, HasSubstr("nothing here"));
}

bool is_bad = false;

TEST(SimulateTest, SomebodyElseMaySayThatARunHasFailed) {
  is_bad = false;
  const auto report = Simulate({.seeds = 5, .has_failed = [] { return is_bad; }, .is_quiet = true},
                               [] { is_bad = PresentRun() == 2; });
  EXPECT_EQ(report.seed, 2);
}

TEST(SimulateTest, ARunWithoutAnEndIsReported) {
  const auto report =
      Simulate({.seeds = 1, .carriers = 0, .steps_max = 10'000, .is_quiet = true}, [] {
        while (true) Yield();
      });
  EXPECT_THAT(report.failure, HasSubstr("no end after 10000 steps"));
}

TEST(SimulateTest, ADataRaceIsReportedWithBothPlaces) {
  const auto report = Simulate({.seeds = 10, .carriers = 0, .is_quiet = true}, [] {
    Plain<int> value(0);
    OsThread other([&] { value.Write(1); });
    value.Write(2);
  });
  EXPECT_THAT(report.failure, HasSubstr("a data race: "));
  EXPECT_THAT(report.failure, HasSubstr("simulate_test.cc"));
}

TEST(SimulateTest, AnAccessAfterTheEndIsReported) {
  const auto report = Simulate({.seeds = 100, .carriers = 0, .is_quiet = true}, [] {
    auto event = std::make_unique<Event>();
    OsThread other([&event = *event] { event.Set(); });
    event = nullptr;  // Nobody has waited.
  });
  EXPECT_THAT(report.failure, HasSubstr("life"));
}

TEST(SimulateTest, WhatIsLeftOverIsReported) {
  const auto report = Simulate({.seeds = 1, .carriers = 1, .is_quiet = true}, [] {
    Spawn({.name = "left"}, [] { return Event().Wait(); }).Detach();
  });
  EXPECT_THAT(report.failure, HasSubstr("\"left\""));
}

// --- Memory.

// Two threads each store, then load what the other one stores.
SimulationReport StoreThenLoad(std::memory_order store, std::memory_order load) {
  return Explore({.is_quiet = true}, [=] {
    Atomic<int> a{0};
    Atomic<int> b{0};
    int other_saw = 0;
    OsThread other([&] {
      b.store(1, store);
      other_saw = a.load(load);
    });
    a.store(1, store);
    const int saw = b.load(load);
    other.Join();
    BOBBIN_CHECK(saw == 1 || other_saw == 1, "both loads came before both stores");
  });
}

TEST(SimulateTest, OnlySequentialConsistencyOrdersAStoreBeforeALoad) {
  EXPECT_FALSE(StoreThenLoad(std::memory_order_release, std::memory_order_acquire).ok());
  const auto report = StoreThenLoad(std::memory_order_seq_cst, std::memory_order_seq_cst);
  EXPECT_TRUE(report.ok() && report.is_complete) << report.failure;
}

// One thread publishes data with a flag.
SimulationReport Publish(std::memory_order store, std::memory_order load) {
  return Explore({.is_quiet = true}, [=] {
    Plain<int> data(0);
    Atomic<bool> is_there{false};
    OsThread publisher([&] {
      data.Write(1);
      is_there.store(true, store);
    });
    if (is_there.load(load)) BOBBIN_CHECK(data.Read() == 1, "the data");
  });
}

TEST(SimulateTest, DataIsPublishedByAReleaseAndAnAcquire) {
  EXPECT_TRUE(Publish(std::memory_order_release, std::memory_order_acquire).ok());
  EXPECT_THAT(Publish(std::memory_order_relaxed, std::memory_order_acquire).failure,
              HasSubstr("a data race"));
  EXPECT_THAT(Publish(std::memory_order_release, std::memory_order_relaxed).failure,
              HasSubstr("a data race"));
}

TEST(SimulateTest, FencesOrderRelaxedAccesses) {
  const auto report = Explore({.is_quiet = true}, [] {
    Plain<int> data(0);
    Atomic<bool> is_there{false};
    OsThread publisher([&] {
      data.Write(1);
      bobbin::internal::AtomicThreadFence(std::memory_order_release);
      is_there.store(true, std::memory_order_relaxed);
    });
    if (is_there.load(std::memory_order_relaxed)) {
      bobbin::internal::AtomicThreadFence(std::memory_order_acquire);
      BOBBIN_CHECK(data.Read() == 1, "the data");
    }
  });
  EXPECT_TRUE(report.ok() && report.is_complete) << report.failure;
}

TEST(SimulateTest, AThreadNeverSeesAWordGoBack) {
  const auto report = Explore({.old_reads_max = 3}, [] {
    Atomic<int> word{0};
    OsThread writer([&] {
      for (int i = 1; i < 4; ++i) word.store(i, std::memory_order_relaxed);
    });
    int last = 0;
    for (int i = 0; i < 3; ++i) {
      const int seen = word.load(std::memory_order_relaxed);
      BOBBIN_CHECK(seen >= last, "back in time");
      last = seen;
    }
  });
  EXPECT_TRUE(report.ok() && report.is_complete);
}

// --- Exploring.

TEST(ExploreTest, FindsWhatOnePreemptionDoes) {
  const auto explore = [](int preemptions) {
    return Explore({.preemptions_max = preemptions, .old_reads_max = 0, .is_quiet = true}, [] {
      Atomic<int> count{0};
      OsThread other([&] { count.store(count.load() + 1); });
      count.store(count.load() + 1);
      other.Join();
      BOBBIN_CHECK(count.load() == 2, "an addition got lost");
    });
  };
  const auto none = explore(0);
  EXPECT_TRUE(none.ok() && none.is_complete);
  const auto one = explore(1);
  EXPECT_THAT(one.failure, HasSubstr("an addition got lost"));
}

TEST(ExploreTest, SaysWhenItsRunsWereNotEnough) {
  const auto report = Explore({.preemptions_max = 3, .runs_max = 10}, [] {
    Mutex mutex;
    OsThread other([&] { const MutexLock lock(mutex); });
    const MutexLock lock(mutex);
  });
  EXPECT_TRUE(report.ok());
  EXPECT_FALSE(report.is_complete);
  EXPECT_EQ(report.runs, 10);
}

}  // namespace
}  // namespace bobbin::testing
