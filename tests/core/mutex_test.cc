// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

// These tests lock and unlock as no program should: the compiler's analysis has nothing to say
// here.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

BOBBIN_TEST(MutexTest, OneThreadIsInsideAtATime) {
  Mutex mutex;
  int inside = 0;
  int64_t entries = 0;
  constexpr int kThreads = 8;
  const int rounds = Rounds(1000);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < kThreads; ++i) {
    group.Spawn([&] {
      for (int round = 0; round < rounds; ++round) {
        const MutexLock lock(mutex);
        EXPECT_EQ(++inside, 1);
        ++entries;
        if (round % 8 == 0) Yield();
        --inside;
      }
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(entries, int64_t{kThreads} * rounds);
}

BOBBIN_TEST(MutexTest, WaitersOfACarrierGetItInTheOrderOfTheirArrival) {
  Mutex mutex;
  Log<int> order;
  TaskGroup group({.placement = Placement::kSpread});
  ThreadProbe probes[4];
  mutex.lock();
  for (int i = 0; i < 4; ++i) {
    group.Spawn([&, i] {
      probes[i].Attach();
      const MutexLock lock(mutex);
      order.Add(i);
    });
    probes[i].AwaitParked();
  }
  mutex.unlock();
  ASSERT_OK(group.Wait());
  if (carriers() == 1) {
    EXPECT_THAT(order.Take(), testing::ElementsAre(0, 1, 2, 3));
  } else {
    EXPECT_THAT(order.Take(), testing::UnorderedElementsAre(0, 1, 2, 3));
  }
}

BOBBIN_TEST(MutexTest, ASectionThatSuspendedHandsItOverAndLeavesNoGap) {
  Mutex mutex;
  ThreadProbe probe;
  mutex.lock();
  VirtualThread waiter = Spawn([&] {
    probe.Attach();
    const MutexLock lock(mutex);
  });
  probe.AwaitParked();
  mutex.unlock();
  // The waiter owns it already, although it has not run yet; on another carrier it may be on its
  // way, or through.
  if (mutex.try_lock()) {
    EXPECT_GT(carriers(), 1);
    mutex.unlock();
  }
  ASSERT_OK(waiter.Join());
}

BOBBIN_TEST(MutexTest, ASectionThatDidNotSuspendLeavesItToWhoeverRuns) {
  Mutex mutex;
  ThreadProbe first_probe;
  ThreadProbe second_probe;
  mutex.lock();
  VirtualThread first = Spawn([&] {
    first_probe.Attach();
    mutex.lock();
    mutex.unlock();
    // The second one has been woken and has not run: it must not be in the way.
    if (carriers() == 1) {
      EXPECT_TRUE(mutex.try_lock());
      mutex.unlock();
      EXPECT_OK(mutex.LockUntil(Deadline::After(milliseconds(-1))));
      mutex.unlock();
      mutex.lock();
      mutex.unlock();
    }
  });
  first_probe.AwaitParked();
  VirtualThread second = Spawn([&] {
    second_probe.Attach();
    const MutexLock lock(mutex);
  });
  second_probe.AwaitParked();
  mutex.unlock();
  ASSERT_OK(first.Join());
  ASSERT_OK(second.Join());
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// Everybody locks as often as possible, until the last one has got it often enough.
template <typename Section>
void LockUntilAllHadTheirTurns(int carriers, int turns, Section section) {
  Mutex mutex;
  std::atomic<int> hungry{0};
  TaskGroup group({.placement = Placement::kSpread});
  std::vector<int> entries(static_cast<size_t>(3 * carriers));
  hungry = static_cast<int>(entries.size());
  for (int& own : entries) {
    group.Spawn([&, turns] {
      for (int round = 0; hungry > 0; ++round) {
        {
          const MutexLock lock(mutex);
          section();
          if (++own == turns) --hungry;
        }
        if (round % 64 == 0) Yield();
      }
    });
  }
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(MutexTest, NobodyStarvesWhereSectionsSuspend) {
  LockUntilAllHadTheirTurns(carriers(), Rounds(50), [] { Yield(); });
}

BOBBIN_TEST(MutexTest, NobodyStarvesWhereSectionsDoNotSuspend) {
  LockUntilAllHadTheirTurns(carriers(), Rounds(200), [] {});
}

// A contender that gives up on its way leaves the mutex to the next one.
BOBBIN_TEST(MutexTest, ThoseWhoGiveUpLeaveNobodyBehind) {
  Mutex mutex;
  const int rounds = Rounds(300);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 2 * carriers() + 2; ++i) {
    group.Spawn([&, impatient = i % 2 == 0, random = random().Fork()]() mutable {
      for (int round = 0; round < rounds; ++round) {
        if (!impatient) {
          const MutexLock lock(mutex);
          if (round % 4 == 0) Yield();
        } else if (mutex.LockUntil(Deadline::After(microseconds(random.Between(1, 300)))).ok()) {
          if (round % 8 == 0) Yield();
          mutex.unlock();
        }
      }
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

BOBBIN_TEST(MutexTest, TryLockSucceedsOnlyWhenNobodyHoldsIt) {
  Mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_TRUE(mutex.IsHeldByCurrent());
  bool other_got_it = true;
  bool other_holds_it = true;
  ASSERT_OK(Spawn([&] {
              other_holds_it = mutex.IsHeldByCurrent();
              other_got_it = mutex.try_lock();
            }).Join());
  EXPECT_FALSE(other_holds_it);
  EXPECT_FALSE(other_got_it);
  EXPECT_FALSE(mutex.try_lock());  // Not even its holder gets it twice.
  mutex.unlock();
  EXPECT_FALSE(mutex.IsHeldByCurrent());
}

BOBBIN_TEST(MutexTest, DeadlineWhileQueuedHoldsNothing) {
  Mutex mutex;
  const MutexLock lock(mutex);
  VirtualThread other = Spawn([&] {
    absl::Status status = mutex.LockUntil(Deadline::After(milliseconds(1)));
    EXPECT_FALSE(mutex.IsHeldByCurrent());
    return status;
  });
  EXPECT_THAT(other.Join(), StatusIs(kDeadlineExceeded));
}

BOBBIN_TEST(MutexTest, CancelWhileQueuedHoldsNothing) {
  Mutex mutex;
  ThreadProbe probe;
  mutex.lock();
  VirtualThread other = Spawn([&] {
    probe.Attach();
    absl::Status status = mutex.LockUntil(Deadline::Never());
    EXPECT_FALSE(mutex.IsHeldByCurrent());
    return status;
  });
  probe.AwaitParked();
  other.Cancel();
  EXPECT_THAT(other.Join(), StatusIs(kCancelled));
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

BOBBIN_TEST(MutexTest, AThreadThatIsToStopTakesAFreeMutexButDoesNotWaitForIt) {
  Mutex free_mutex;
  Mutex held_mutex;
  held_mutex.lock();
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_OK(free_mutex.LockUntil(Deadline::Never()));
    free_mutex.unlock();
    EXPECT_THAT(held_mutex.LockUntil(Deadline::Never()), StatusIs(kCancelled));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
  held_mutex.unlock();
}

BOBBIN_TEST(MutexTest, LockIgnoresCancelAndDeadline) {
  Mutex mutex;
  ThreadProbe probe;
  mutex.lock();
  VirtualThread other = Spawn([&] {
    const DeadlineScope scope(milliseconds(1));
    probe.Attach();
    const MutexLock lock(mutex);
    EXPECT_TRUE(mutex.IsHeldByCurrent());
  });
  probe.AwaitParked();
  other.Cancel();
  ASSERT_OK(SleepFor(milliseconds(3)));
  EXPECT_TRUE(probe.IsParked());
  mutex.unlock();
  ASSERT_OK(other.Join());
}

BOBBIN_TEST(MutexTest, AfterAnInterruptedWaiterTheNextInLineGetsIt) {
  Mutex mutex;
  ThreadProbe first_probe;
  ThreadProbe second_probe;
  mutex.lock();
  VirtualThread first = Spawn([&] {
    first_probe.Attach();
    return mutex.LockUntil(Deadline::Never());
  });
  first_probe.AwaitParked();
  VirtualThread second = Spawn([&] {
    second_probe.Attach();
    const MutexLock lock(mutex);
  });
  second_probe.AwaitParked();
  first.Cancel();
  EXPECT_THAT(first.Join(), StatusIs(kCancelled));
  mutex.unlock();
  ASSERT_OK(second.Join());
}

// One winner, and nobody is left over.
BOBBIN_TEST(MutexTest, DeadlineAndUnlockRaceLeavesExactlyOneOwner) {
  Mutex mutex;
  int64_t got = 0;
  int64_t gave_up = 0;
  const int rounds = Rounds(400);
  for (int round = 0; round < rounds; ++round) {
    mutex.lock();
    VirtualThread other = Spawn({.placement = Placement::kSpread}, [&] {
      absl::Status status = mutex.LockUntil(Deadline::After(microseconds(100)));
      EXPECT_EQ(status.ok(), mutex.IsHeldByCurrent());
      if (status.ok()) mutex.unlock();
      ++(status.ok() ? got : gave_up);
    });
    ASSERT_OK(SleepFor(microseconds(random().Between(50, 250))));
    mutex.unlock();
    ASSERT_OK(other.Join());
    ASSERT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
  EXPECT_EQ(got + gave_up, rounds);
}

// An unlock does not touch what the next holder may destroy.
BOBBIN_FOREIGN_TEST(MutexTest, ItsLastHolderMayDestroyIt) {
  struct Shared {
    Mutex mutex;
    int users = 4;
  };
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    auto* const shared = new Shared;
    const auto use = [shared] {
      shared->mutex.lock();
      const bool is_last = --shared->users == 0;
      shared->mutex.unlock();
      if (is_last) delete shared;
    };
    Crew crew(runtime());
    for (int i = 0; i < 3; ++i) crew.Start(Kind::kVirtual, use);
    use();
  }
}

// Threads of all kinds meet at one mutex.
BOBBIN_FOREIGN_TEST(MutexTest, VirtualAndForeignThreadsExcludeEachOther) {
  Mutex mutex;
  int64_t entries = 0;
  const int rounds = Rounds(20'000);
  {
    Crew crew(runtime());
    for (const Kind kind : {Kind::kVirtual, Kind::kForeign, Kind::kVirtual, Kind::kForeign}) {
      crew.Start(kind, [&] {
        for (int round = 0; round < rounds; ++round) {
          const MutexLock lock(mutex);
          ++entries;
        }
      });
    }
  }
  EXPECT_EQ(entries, int64_t{4} * rounds);
}

BOBBIN_FOREIGN_TEST(MutexTest, AForeignThreadWaitsNoLongerThanItsDeadline) {
  Mutex mutex;
  ThreadProbe probe;
  VirtualThread holder = runtime().Spawn([&] {
    const MutexLock lock(mutex);
    probe.Attach();
    return SleepFor(std::chrono::hours(1));
  });
  probe.AwaitParked();
  EXPECT_THAT(mutex.LockUntil(Deadline::After(milliseconds(2))), StatusIs(kDeadlineExceeded));
  holder.Cancel();
  EXPECT_THAT(holder.Join(), StatusIs(kCancelled));
  ASSERT_OK(mutex.LockUntil(Deadline::After(milliseconds(2))));
  mutex.unlock();
}

TEST(MutexDeathTest, LockingItTwiceAborts) {
  Mutex mutex;
  mutex.lock();
  EXPECT_DEATH(mutex.lock(), "a thread locks a mutex that it holds");
  mutex.unlock();
}

TEST(MutexDeathTest, UnlockingItByAStrangerAborts) {
  Mutex mutex;
  EXPECT_DEATH(mutex.unlock(), "a thread unlocks a mutex that it does not hold");
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        mutex.lock();
        static_cast<void>(runtime.Spawn([&] { mutex.unlock(); }).Join());
      },
      "a thread unlocks a mutex that it does not hold");
}

TEST(MutexDeathTest, AssertHeldAbortsUnlessTheThreadHoldsIt) {
  Mutex mutex;
  EXPECT_DEATH(mutex.AssertHeld(), "the thread does not hold the mutex");
  mutex.lock();
  mutex.AssertHeld();
  EXPECT_DEATH(std::thread([&] { mutex.AssertHeld(); }).join(),
               "the thread does not hold the mutex");
  mutex.unlock();
}

TEST(MutexDeathTest, DestroyingItWhileItIsHeldAborts) {
  EXPECT_DEATH(
      {
        Mutex mutex;
        mutex.lock();
      },
      "a mutex is destroyed while it is held");
}

TEST(MutexDeathTest, WaitingForItWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        Mutex mutex;
        mutex.lock();
        static_cast<void>(runtime
                              .Spawn([&] {
                                const NoSuspendScope scope;
                                mutex.lock();
                              })
                              .Join());
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
