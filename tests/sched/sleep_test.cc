// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/sleep.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"

namespace bobbin {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

BOBBIN_TEST(SleepTest, NoSleepEndsEarly) {
  TaskGroup group;
  for (int i = 0; i < 200; ++i) {
    const nanoseconds delay = microseconds(random().Between(1, 30'000));
    group.Spawn({.placement = Placement::kSpread}, [delay] {
      const MonotonicTime start = MonotonicNow();
      const absl::Status slept = SleepFor(delay);
      EXPECT_GE(MonotonicNow() - start, delay);
      return slept;
    });
  }
  ASSERT_OK(group.Wait());
}

// Between carriers there is no order: one of them may stand still for a while.
TEST(SleepTest, OnOneCarrierSleepsEndInTheOrderOfTheirTimes) {
  Runtime runtime({.carriers = 1});
  const auto sleep = []() -> absl::Status {
    bool all_slept = false;
    // Where the machine stood still while they began, it proves nothing: once more, then.
    while (!all_slept) {
      const MonotonicTime first = MonotonicNow() + milliseconds(50);
      std::vector<int> ends;
      TaskGroup group;
      for (const int index : {4, 1, 3, 0, 2}) {
        group.Spawn([index, first, &ends] {
          // More than a tick apart.
          absl::Status slept = SleepUntil(Deadline::At(first + milliseconds(20 * index)));
          ends.push_back(index);
          return slept;
        });
      }
      Yield();
      all_slept = MonotonicNow() < first && ends.empty();
      BOBBIN_RETURN_IF_ERROR(group.Wait());
      if (all_slept) {
        EXPECT_THAT(ends, testing::ElementsAre(0, 1, 2, 3, 4));
      }
    }
    return absl::OkStatus();
  };
  EXPECT_OK(runtime.Spawn(sleep).Join());
}

BOBBIN_TEST(SleepTest, AnEarlierDeadlineEndsItWithThatAnswer) {
  const DeadlineScope scope(milliseconds(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(SleepFor(hours(1))));
}

BOBBIN_TEST(SleepTest, ALaterDeadlineChangesNothing) {
  const DeadlineScope scope(hours(1));
  EXPECT_OK(SleepFor(milliseconds(2)));
  EXPECT_OK(SleepFor(milliseconds(15)));
}

BOBBIN_TEST(SleepTest, ASleepThatIsOverReturnsAtOnce) {
  EXPECT_OK(SleepFor(nanoseconds(0)));
  EXPECT_OK(SleepFor(nanoseconds(-5)));
  EXPECT_OK(SleepUntil(Deadline::After(nanoseconds(-1))));
}

BOBBIN_TEST(SleepTest, SleepingForeverEndsByCancelOnly) {
  VirtualThread sleeper = Spawn([] { return SleepUntil(Deadline::Never()); });
  Yield();
  sleeper.Cancel();
  EXPECT_TRUE(absl::IsCancelled(sleeper.Join()));
}

BOBBIN_FOREIGN_TEST(SleepTest, AForeignThreadSleepsToo) {
  const MonotonicTime start = MonotonicNow();
  EXPECT_OK(SleepFor(milliseconds(3)));
  EXPECT_GE(MonotonicNow() - start, milliseconds(3));
  const DeadlineScope scope(milliseconds(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(SleepFor(hours(1))));
  Yield();
}

// A carrier that sleeps for long must notice a nearer timer that another thread brings.
BOBBIN_FOREIGN_TEST(SleepTest, ANearerTimerEndsTheSleepOfAnIdleCarrier) {
  VirtualThread far = runtime().Spawn([] { return SleepFor(hours(1)); });
  for (int round = 0; round < 20; ++round) {
    VirtualThread near = runtime().Spawn({.placement = Placement::kSpread},
                                         [] { return SleepFor(milliseconds(2)); });
    ASSERT_OK(near.Join());
  }
  far.Cancel();
  EXPECT_TRUE(absl::IsCancelled(far.Join()));
}

BOBBIN_TEST(SleepTest, TimersThatAreNotNeededAnyMoreAreGone) {
  for (int round = 0; round < test::Rounds(10'000); ++round) {
    const DeadlineScope scope(std::chrono::minutes(1));
    ASSERT_OK(SleepFor(microseconds(1)));
  }
  Yield();
  EXPECT_LE(runtime().Statistics().timers, 1u);
}

BOBBIN_TEST(YieldTest, EveryReadyThreadRunsBeforeTheCallerGoesOn) {
  if (carriers() != 1) return;
  int begun = 0;
  int turns = 0;
  bool is_over = false;
  TaskGroup group;
  for (int i = 0; i < 5; ++i) {
    group.Spawn([&] {
      ++begun;
      while (!is_over) {
        ++turns;
        Yield();
      }
    });
  }
  while (begun < 5) Yield();
  for (int round = 0; round < 100; ++round) {
    turns = 0;
    Yield();
    EXPECT_EQ(turns, 5);
  }
  is_over = true;
  ASSERT_OK(group.Wait());
}

}  // namespace
}  // namespace bobbin
