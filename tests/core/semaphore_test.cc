// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/semaphore.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The way to a private function that the language leaves open: a thread that has looked once and
// found too few permits is about to call it.
template <absl::Status (Semaphore::*kAcquireSlow)(int64_t)>
struct AfterFirstLook {
  friend absl::Status AcquireAfterFirstLook(Semaphore& slots) { return (slots.*kAcquireSlow)(1); }
};
absl::Status AcquireAfterFirstLook(Semaphore& slots);
template struct AfterFirstLook<&Semaphore::AcquireSlow>;

// What a race would have to hit, step by step.
BOBBIN_TEST(SemaphoreTest, AReleaseBetweenTheFirstLookAndTheQueueIsSeen) {
  Semaphore slots(0);
  slots.Release();
  const DeadlineScope scope(std::chrono::seconds(10));
  EXPECT_OK(AcquireAfterFirstLook(slots));
  EXPECT_EQ(slots.available(), 0);
}

BOBBIN_TEST(SemaphoreTest, PermitsThatAreFreeAreTakenWithoutWaiting) {
  Semaphore slots(3);
  const NoSuspendScope scope;
  EXPECT_OK(slots.Acquire());
  EXPECT_OK(slots.AcquireUntil(2, Deadline::Never()));
  EXPECT_EQ(slots.available(), 0);
  EXPECT_FALSE(slots.TryAcquire());
  slots.Release(3);
  EXPECT_TRUE(slots.TryAcquire(3));
  slots.Release(3);
  EXPECT_EQ(slots.available(), 3);
}

BOBBIN_TEST(SemaphoreTest, ReleaseWakesTheLongestWaiterFirst) {
  Semaphore slots(0);
  Log<int> order;
  TaskGroup group({.placement = Placement::kSpread});
  ThreadProbe probes[4];
  for (int i = 0; i < 4; ++i) {
    group.Spawn([&, i]() -> absl::Status {
      probes[i].Attach();
      BOBBIN_RETURN_IF_ERROR(slots.Acquire());
      order.Add(i);
      slots.Release();  // One after the other: what is checked is the queue, not the scheduler.
      return absl::OkStatus();
    });
    probes[i].AwaitParked();
  }
  slots.Release();
  ASSERT_OK(group.Wait());
  EXPECT_THAT(order.Take(), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(slots.available(), 1);
}

BOBBIN_TEST(SemaphoreTest, OneReleaseLetsThroughAsManyAsFit) {
  Semaphore slots(0);
  std::atomic<int> through{0};
  TaskGroup group({.placement = Placement::kSpread});
  ThreadProbe probes[3];
  for (ThreadProbe& probe : probes) {
    group.Spawn([&]() -> absl::Status {
      probe.Attach();
      BOBBIN_RETURN_IF_ERROR(slots.Acquire(2));
      ++through;
      return absl::OkStatus();
    });
    probe.AwaitParked();
  }
  slots.Release(5);
  AwaitTrue([&] { return through == 2; });
  EXPECT_EQ(slots.available(), 1);
  EXPECT_TRUE(probes[2].IsParked());
  slots.Release();
  ASSERT_OK(group.Wait());
  EXPECT_EQ(slots.available(), 0);
}

BOBBIN_TEST(SemaphoreTest, ALargeRequestAtTheHeadIsNotOvertaken) {
  Semaphore slots(1);
  ThreadProbe large_probe;
  ThreadProbe small_probe;
  Log<int> order;
  TaskGroup group({.placement = Placement::kSpread});
  group.Spawn([&]() -> absl::Status {
    large_probe.Attach();
    BOBBIN_RETURN_IF_ERROR(slots.Acquire(3));
    order.Add(3);
    slots.Release(3);
    return absl::OkStatus();
  });
  large_probe.AwaitParked();
  // One permit is free, and would do.
  EXPECT_FALSE(slots.TryAcquire());
  group.Spawn([&]() -> absl::Status {
    small_probe.Attach();
    BOBBIN_RETURN_IF_ERROR(slots.Acquire());
    order.Add(1);
    return absl::OkStatus();
  });
  small_probe.AwaitParked();
  slots.Release();
  EXPECT_EQ(slots.available(), 2);
  EXPECT_TRUE(large_probe.IsParked());
  EXPECT_TRUE(small_probe.IsParked());
  slots.Release();
  ASSERT_OK(group.Wait());
  EXPECT_THAT(order.Take(), testing::ElementsAre(3, 1));
}

BOBBIN_TEST(SemaphoreTest, WhenTheHeadGivesUpThoseBehindItThatFitGoOn) {
  Semaphore slots(2);
  ThreadProbe large_probe;
  ThreadProbe small_probes[2];
  VirtualThread large = Spawn([&] {
    large_probe.Attach();
    return slots.Acquire(3);
  });
  large_probe.AwaitParked();
  TaskGroup group({.placement = Placement::kSpread});
  for (ThreadProbe& probe : small_probes) {
    group.Spawn([&] {
      probe.Attach();
      return slots.Acquire();
    });
    probe.AwaitParked();
  }
  large.Cancel();
  EXPECT_THAT(large.Join(), StatusIs(kCancelled));
  ASSERT_OK(group.Wait());
  EXPECT_EQ(slots.available(), 0);
}

BOBBIN_TEST(SemaphoreTest, CancelWhileQueuedHoldsNoPermit) {
  Semaphore slots(1);
  ThreadProbe probe;
  VirtualThread waiter = Spawn([&] {
    probe.Attach();
    return slots.Acquire(2);
  });
  probe.AwaitParked();
  waiter.Cancel();
  EXPECT_THAT(waiter.Join(), StatusIs(kCancelled));
  EXPECT_EQ(slots.available(), 1);
  EXPECT_TRUE(slots.TryAcquire());
  slots.Release();
}

BOBBIN_TEST(SemaphoreTest, DeadlineWhileQueuedHoldsNoPermit) {
  Semaphore slots(0);
  EXPECT_THAT(slots.AcquireUntil(1, Deadline::After(milliseconds(1))), StatusIs(kDeadlineExceeded));
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(slots.Acquire(), StatusIs(kDeadlineExceeded));
    // The same again, at once, until the scope ends.
    EXPECT_THAT(slots.Acquire(), StatusIs(kDeadlineExceeded));
    slots.Release();
    EXPECT_OK(slots.Acquire());
  }
  slots.Release();
  EXPECT_OK(slots.Acquire());
  EXPECT_EQ(slots.available(), 0);
}

BOBBIN_TEST(SemaphoreTest, AThreadThatIsToStopTakesFreePermitsButDoesNotWait) {
  Semaphore slots(1);
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_OK(slots.Acquire());
    EXPECT_THAT(slots.Acquire(), StatusIs(kCancelled));
    EXPECT_THAT(slots.AcquireUntil(1, Deadline::Never()), StatusIs(kCancelled));
    slots.Release();
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
  EXPECT_EQ(slots.available(), 1);
}

BOBBIN_TEST(SemaphoreTest, APermitGoesBackAtTheEndOfItsScope) {
  Semaphore slots(3);
  {
    absl::StatusOr<SemaphorePermit> two = slots.AcquirePermit(2);
    ASSERT_OK(two);
    EXPECT_EQ(two->permits(), 2);
    EXPECT_EQ(slots.available(), 1);
    ASSERT_TRUE(slots.TryAcquire());
    const SemaphorePermit third(slots);
    EXPECT_EQ(slots.available(), 0);
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(slots.AcquirePermit(), StatusIs(kDeadlineExceeded));
  }
  EXPECT_EQ(slots.available(), 3);
}

BOBBIN_TEST(SemaphoreTest, APermitThatIsMovedGoesBackOnce) {
  Semaphore slots(2);
  Semaphore other_slots(1);
  SemaphorePermit kept;
  EXPECT_EQ(kept.permits(), 0);
  {
    absl::StatusOr<SemaphorePermit> permit = slots.AcquirePermit();
    ASSERT_OK(permit);
    kept = *std::move(permit);
  }
  EXPECT_EQ(slots.available(), 1);
  SemaphorePermit moved(std::move(kept));
  EXPECT_EQ(slots.available(), 1);
  // What it held before goes back.
  absl::StatusOr<SemaphorePermit> other = other_slots.AcquirePermit();
  ASSERT_OK(other);
  moved = *std::move(other);
  EXPECT_EQ(slots.available(), 2);
  EXPECT_EQ(other_slots.available(), 0);
  moved.Release();
  moved.Release();
  EXPECT_EQ(moved.permits(), 0);
  EXPECT_EQ(other_slots.available(), 1);
}

// A permit is with the one who was told so, or still there.
BOBBIN_TEST(SemaphoreTest, DeadlineAndReleaseRaceNeverLosesAPermit) {
  Semaphore slots(0);
  const int rounds = Rounds(400);
  for (int round = 0; round < rounds; ++round) {
    bool got = false;
    VirtualThread other = Spawn({.placement = Placement::kSpread}, [&] {
      got = slots.AcquireUntil(1, Deadline::After(microseconds(100))).ok();
    });
    ASSERT_OK(SleepFor(microseconds(random().Between(50, 250))));
    slots.Release();
    ASSERT_OK(other.Join());
    ASSERT_EQ(slots.available(), got ? 0 : 1);
    if (!got) {
      ASSERT_TRUE(slots.TryAcquire());
    }
  }
}

BOBBIN_TEST(SemaphoreTest, CancelAndReleaseRaceNeverLosesAPermit) {
  Semaphore slots(0);
  const int rounds = Rounds(2000);
  for (int round = 0; round < rounds; ++round) {
    absl::Status result;
    ThreadProbe probe;
    VirtualThread other = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      result = slots.Acquire();
    });
    if (round % 2 == 0) probe.AwaitParked();
    VirtualThread releaser = Spawn({.placement = Placement::kSpread}, [&] { slots.Release(); });
    other.Cancel();
    ASSERT_OK(other.Join());
    ASSERT_OK(releaser.Join());
    ASSERT_EQ(slots.available(), result.ok() ? 0 : 1);
    if (!result.ok()) {
      ASSERT_TRUE(slots.TryAcquire());
    }
  }
}

BOBBIN_TEST(SemaphoreTest, RandomUseConservesThePermits) {
  constexpr int64_t kPermits = 7;
  Semaphore slots(kPermits);
  std::atomic<int64_t> in_use{0};
  const int rounds = Rounds(800);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&, own = random().Fork()]() mutable {
      for (int round = 0; round < rounds; ++round) {
        const int64_t wanted = own.Between(1, kPermits);
        const absl::Status status =
            own.OneIn(4)
                ? slots.AcquireUntil(wanted, Deadline::After(microseconds(own.Between(0, 100))))
                : slots.Acquire(wanted);
        if (!status.ok()) continue;
        EXPECT_LE(in_use += wanted, kPermits);
        if (own.OneIn(3)) Yield();
        in_use -= wanted;
        slots.Release(wanted);
      }
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(slots.available(), kPermits);
}

// A release does not touch what it has let somebody destroy.
BOBBIN_FOREIGN_TEST(SemaphoreTest, WhoIsLetThroughMayDestroyIt) {
  const int rounds = Rounds(1500);
  for (int round = 0; round < rounds; ++round) {
    auto* const slots = new Semaphore(0);
    Crew crew(runtime());
    crew.Start(Kind::kVirtual, [slots] { slots->Release(2); });
    crew.Start(Kind::kVirtual, [slots] {
      EXPECT_OK(slots->Acquire(2));
      delete slots;
    });
  }
}

// Permits travel between threads of both kinds.
BOBBIN_FOREIGN_TEST(SemaphoreTest, VirtualAndForeignThreadsHandPermitsToEachOther) {
  Semaphore to_virtual(0);
  Semaphore to_foreign(0);
  const int rounds = Rounds(5000);
  Crew crew(runtime());
  crew.Start(Kind::kVirtual, [&] {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_OK(to_virtual.AcquireUntil(1, Deadline::After(std::chrono::seconds(60))));
      to_foreign.Release();
    }
  });
  crew.Start(Kind::kForeign, [&] {
    for (int i = 0; i < rounds; ++i) {
      to_virtual.Release();
      EXPECT_OK(to_foreign.AcquireUntil(1, Deadline::After(std::chrono::seconds(60))));
    }
  });
  crew.Join();
  EXPECT_EQ(to_virtual.available(), 0);
  EXPECT_EQ(to_foreign.available(), 0);
}

TEST(SemaphoreDeathTest, PermitsOutsideItsRangeAbort) {
  EXPECT_DEATH(Semaphore(-1), "a semaphore cannot hold so many permits");
  EXPECT_DEATH(Semaphore(Semaphore::kPermitsMax + 1), "a semaphore cannot hold so many permits");
  Semaphore slots(1);
  EXPECT_DEATH(static_cast<void>(slots.Acquire(0)), "so many permits cannot be asked for");
  EXPECT_DEATH(static_cast<void>(slots.TryAcquire(-1)), "so many permits cannot be asked for");
  EXPECT_DEATH(slots.Release(0), "so many permits cannot be asked for");
}

TEST(SemaphoreDeathTest, GivingBackMoreThanItCanHoldAborts) {
  Semaphore slots(1);
  EXPECT_DEATH(slots.Release(Semaphore::kPermitsMax),
               "more permits are given back than a semaphore can hold");
}

TEST(SemaphoreDeathTest, DestroyingItWithWaitersAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        auto slots = std::make_unique<Semaphore>(0);
        ThreadProbe probe;
        VirtualThread waiter = runtime.Spawn([&] {
          probe.Attach();
          return slots->Acquire();
        });
        probe.AwaitParked();
        slots.reset();
      },
      "a semaphore is destroyed while threads wait for it");
}

TEST(SemaphoreDeathTest, WaitingWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        Semaphore slots(0);
        const NoSuspendScope scope;
        static_cast<void>(slots.Acquire());
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
