// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/wait_group.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The way to a private function that the language leaves open: a thread that has looked once and
// found the count not zero is about to call it.
template <absl::Status (WaitGroup::*kWaitSlow)()>
struct AfterFirstLook {
  friend absl::Status WaitAfterFirstLook(WaitGroup& parts) { return (parts.*kWaitSlow)(); }
};
absl::Status WaitAfterFirstLook(WaitGroup& parts);
template struct AfterFirstLook<&WaitGroup::WaitSlow>;

// What a race would have to hit, step by step.
BOBBIN_TEST(WaitGroupTest, ADoneBetweenTheFirstLookAndTheQueueIsSeen) {
  WaitGroup parts;
  parts.Add();
  parts.Done();
  const DeadlineScope scope(std::chrono::seconds(10));
  EXPECT_OK(WaitAfterFirstLook(parts));
  EXPECT_OK(CheckStop());  // It was not the deadline that ended the wait.
}

BOBBIN_TEST(WaitGroupTest, AtZeroNobodyWaits) {
  WaitGroup parts;
  const NoSuspendScope scope;
  EXPECT_OK(parts.Wait());
  parts.Add(2);
  parts.Done();
  EXPECT_EQ(parts.count(), 1);
  parts.Done();
  EXPECT_OK(parts.Wait());
  EXPECT_OK(parts.WaitUntil(Deadline::Never()));
}

BOBBIN_TEST(WaitGroupTest, OnlyTheLastDoneUnparksTheWaiters) {
  WaitGroup parts;
  parts.Add(3);
  ThreadProbe probes[2];
  TaskGroup group({.placement = Placement::kSpread});
  for (ThreadProbe& probe : probes) {
    group.Spawn([&] {
      probe.Attach();
      return parts.Wait();
    });
    probe.AwaitParked();
  }
  parts.Done();
  parts.Add();
  parts.Done();
  parts.Done();
  EXPECT_EQ(parts.count(), 1);
  for (const ThreadProbe& probe : probes) EXPECT_TRUE(probe.IsParked());
  parts.Done();
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(WaitGroupTest, WaitReturnsAfterEveryPartIsDone) {
  const int rounds = Rounds(60);
  for (int round = 0; round < rounds; ++round) {
    WaitGroup parts;
    int results[32] = {};
    parts.Add(32);
    TaskGroup group({.placement = Placement::kSpread});
    for (int& result : results) {
      group.Spawn([&parts, &result] {
        result = 1;
        parts.Done();
      });
    }
    ASSERT_OK(parts.Wait());
    ASSERT_THAT(results, testing::Each(1));
    ASSERT_OK(group.Wait());
  }
}

BOBBIN_TEST(WaitGroupTest, ItCanBeUsedAgainAfterZero) {
  WaitGroup parts;
  for (int round = 0; round < Rounds(300); ++round) {
    parts.Add(2);
    VirtualThread first = Spawn({.placement = Placement::kSpread}, [&] { parts.Done(); });
    VirtualThread second = Spawn({.placement = Placement::kSpread}, [&] { parts.Done(); });
    ASSERT_OK(parts.Wait());
    ASSERT_OK(first.Join());
    ASSERT_OK(second.Join());
  }
}

BOBBIN_TEST(WaitGroupTest, DeadlineAndCancelEndTheWaitAndLeaveTheCount) {
  WaitGroup parts;
  parts.Add();
  EXPECT_THAT(parts.WaitUntil(Deadline::After(milliseconds(1))), StatusIs(kDeadlineExceeded));
  ThreadProbe probe;
  VirtualThread waiter = Spawn([&] {
    probe.Attach();
    EXPECT_THAT(parts.Wait(), StatusIs(kCancelled));
    EXPECT_THAT(parts.Wait(), StatusIs(kCancelled));
  });
  probe.AwaitParked();
  waiter.Cancel();
  ASSERT_OK(waiter.Join());
  EXPECT_EQ(parts.count(), 1);
  parts.Done();
}

BOBBIN_TEST(WaitGroupTest, AThreadThatIsToStopSeesZeroButDoesNotWaitForIt) {
  WaitGroup empty;
  WaitGroup busy;
  busy.Add();
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_OK(empty.Wait());
    EXPECT_THAT(busy.Wait(), StatusIs(kCancelled));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
  busy.Done();
}

BOBBIN_TEST(WaitGroupTest, DeadlineAndLastDoneRaceEndsEachWaitOnce) {
  const int rounds = Rounds(400);
  for (int round = 0; round < rounds; ++round) {
    WaitGroup parts;
    parts.Add();
    std::atomic<int> ended{0};
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 2; ++i) {
      group.Spawn([&, microseconds_left = random().Between(0, 150)] {
        const absl::Status status =
            parts.WaitUntil(Deadline::After(microseconds(microseconds_left)));
        EXPECT_THAT(status.code(), testing::AnyOf(kOk, kDeadlineExceeded));
        ++ended;
      });
    }
    ASSERT_OK(SleepFor(microseconds(random().Between(10, 150))));
    parts.Done();
    ASSERT_OK(group.Wait());
    ASSERT_EQ(ended, 2);
  }
}

// Between a waiter's first look and its place in the queue there is no gap to fall into.
BOBBIN_FOREIGN_TEST(WaitGroupTest, NoDoneIsMissedByAThreadThatBeginsToWait) {
  const int rounds = Rounds(3000);
  WaitGroup parts;
  std::atomic<int> begun{0};
  VirtualThread other = runtime().Spawn([&, own = random().Fork()]() mutable {
    for (int round = 1; round <= rounds; ++round) {
      AwaitTrue([&] { return begun == round; });
      Spin(own.Below(300));
      parts.Done();
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    parts.Add();
    begun = round;
    Spin(random().Below(300));
    const DeadlineScope scope(std::chrono::seconds(10));
    ASSERT_OK(parts.Wait());
    ASSERT_OK(CheckStop());
  }
  ASSERT_OK(other.Join());
}

// Done does not touch what it has let somebody destroy.
BOBBIN_FOREIGN_TEST(WaitGroupTest, WhoHasWaitedMayDestroyIt) {
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    auto* const parts = new WaitGroup;
    parts->Add(2);
    Crew crew(runtime());
    for (int i = 0; i < 2; ++i) crew.Start(Kind::kVirtual, [parts] { parts->Done(); });
    crew.Start(Kind::kVirtual, [parts] {
      EXPECT_OK(parts->Wait());
      delete parts;
    });
  }
}

BOBBIN_FOREIGN_TEST(WaitGroupTest, VirtualAndForeignThreadsCountTogether) {
  const int rounds = Rounds(100);
  for (int round = 0; round < rounds; ++round) {
    WaitGroup parts;
    parts.Add(4);
    Crew crew(runtime());
    for (const Kind kind : {Kind::kVirtual, Kind::kForeign}) {
      for (int i = 0; i < 2; ++i) crew.Start(kind, [&] { parts.Done(); });
      crew.Start(kind,
                 [&] { EXPECT_OK(parts.WaitUntil(Deadline::After(std::chrono::minutes(1)))); });
    }
  }
}

TEST(WaitGroupDeathTest, DoneAtZeroAborts) {
  WaitGroup parts;
  EXPECT_DEATH(parts.Done(), "Done of a wait group whose count is zero");
}

TEST(WaitGroupDeathTest, CountsOutsideItsRangeAbort) {
  WaitGroup parts;
  EXPECT_DEATH(parts.Add(0), "so much cannot be added to a wait group");
  EXPECT_DEATH(parts.Add(-1), "so much cannot be added to a wait group");
  EXPECT_DEATH(
      {
        parts.Add(WaitGroup::kCountMax);
        parts.Add();
      },
      "a wait group counts more than it can");
}

TEST(WaitGroupDeathTest, DestroyingItWithWaitersAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        auto parts = std::make_unique<WaitGroup>();
        parts->Add();
        ThreadProbe probe;
        VirtualThread waiter = runtime.Spawn([&] {
          probe.Attach();
          return parts->Wait();
        });
        probe.AwaitParked();
        parts.reset();
      },
      "a wait group is destroyed while threads wait for it");
}

}  // namespace
}  // namespace bobbin::test
