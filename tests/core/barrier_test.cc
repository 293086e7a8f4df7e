// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/barrier.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
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

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// In each phase each party sees what all have done in the one before.
BOBBIN_TEST(BarrierTest, NobodyBeginsAPhaseBeforeAllHaveEndedTheOneBefore) {
  constexpr int kParties = 5;
  const int phases = Rounds(400);
  std::vector<int> done(kParties);
  int completions = 0;
  Barrier barrier(kParties, [&]() noexcept { ++completions; });
  TaskGroup group({.placement = Placement::kSpread});
  for (int party = 0; party < kParties; ++party) {
    group.Spawn([&, party, own = random().Fork()]() mutable -> absl::Status {
      for (int phase = 0; phase < phases; ++phase) {
        EXPECT_EQ(completions, 2 * phase);
        if (own.OneIn(4)) Yield();
        ++done[static_cast<size_t>(party)];
        BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());
        EXPECT_THAT(done, testing::Each(phase + 1));
        BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());
      }
      return absl::OkStatus();
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(completions, 2 * phases);
}

BOBBIN_TEST(BarrierTest, TheLastOneUnparksTheLongestWaiterFirst) {
  Log<int> order;
  Barrier barrier(4);
  ThreadProbe probes[3];
  TaskGroup group;
  for (int i = 0; i < 3; ++i) {
    group.Spawn([&, i] {
      probes[i].Attach();
      absl::Status passed = barrier.ArriveAndWait();
      order.Add(i);
      return passed;
    });
    probes[i].AwaitParked();
  }
  {
    const NoSuspendScope last_one_does_not_wait;
    static_cast<void>(barrier.Arrive());
  }
  ASSERT_OK(group.Wait());
  // On one carrier those who are made ready run in this order.
  if (carriers() == 1) {
    EXPECT_THAT(order.Take(), testing::ElementsAre(0, 1, 2));
  }
}

BOBBIN_TEST(BarrierTest, TheCompletionRunsOnceBeforeAnyoneGoesOnAndMayWait) {
  Event go;
  std::atomic<int> passed{0};
  Barrier barrier(3, [&]() noexcept {
    EXPECT_EQ(passed, 0);
    EXPECT_OK(go.Wait());
  });
  ThreadProbe probes[3];
  TaskGroup group({.placement = Placement::kSpread});
  for (ThreadProbe& probe : probes) {
    group.Spawn([&] {
      probe.Attach();
      absl::Status status = barrier.ArriveAndWait();
      ++passed;
      return status;
    });
    probe.AwaitParked();
  }
  EXPECT_EQ(passed, 0);
  go.Set();
  ASSERT_OK(group.Wait());
  EXPECT_EQ(passed, 3);
}

BOBBIN_TEST(BarrierTest, ArrivingAndWaitingCanBeDoneApart) {
  Barrier barrier(2);
  for (int phase = 0; phase < 3; ++phase) {
    auto here = barrier.Arrive();
    VirtualThread other = Spawn([&] { return barrier.ArriveAndWait(); });
    EXPECT_OK(barrier.Wait(std::move(here)));
    EXPECT_OK(other.Join());
  }
  // The last one of all may look when it likes.
  auto first = barrier.Arrive();
  auto last = barrier.Arrive();
  const NoSuspendScope scope;
  EXPECT_OK(barrier.Wait(std::move(last)));
  EXPECT_OK(barrier.Wait(std::move(first)));
}

BOBBIN_TEST(BarrierTest, WhoDropsOutIsNotExpectedAnyMore) {
  int completions = 0;
  Barrier barrier(3, [&]() noexcept { ++completions; });
  ThreadProbe probe;
  VirtualThread other = Spawn([&]() -> absl::Status {
    probe.Attach();
    BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());
    BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());
    barrier.ArriveAndDrop();
    return absl::OkStatus();
  });
  probe.AwaitParked();
  barrier.ArriveAndDrop();
  EXPECT_EQ(completions, 0);
  EXPECT_OK(barrier.ArriveAndWait());
  EXPECT_OK(barrier.ArriveAndWait());
  EXPECT_OK(barrier.ArriveAndWait());
  EXPECT_OK(other.Join());
  // Alone, nobody waits.
  EXPECT_OK(barrier.ArriveAndWait());
  EXPECT_EQ(completions, 4);
}

// Who is cancelled leaves: its arrival counts, and the next phases do without it.
BOBBIN_TEST(BarrierTest, CancelWhileWaitingTakesThePartyOut) {
  for (const bool is_apart : {false, true}) {
    Barrier barrier(3);
    ThreadProbe probe;
    VirtualThread leaving = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      return is_apart ? barrier.Wait(barrier.Arrive()) : barrier.ArriveAndWait();
    });
    probe.AwaitParked();
    leaving.Cancel();
    EXPECT_THAT(leaving.Join(), StatusIs(kCancelled));
    for (int phase = 0; phase < 3; ++phase) {
      auto here = barrier.Arrive();
      VirtualThread other = Spawn([&] { return barrier.ArriveAndWait(); });
      EXPECT_OK(barrier.Wait(std::move(here)));
      EXPECT_OK(other.Join());
    }
  }
}

// The wait is over, and the thread has not run yet: what it finds then counts.
BOBBIN_TEST(BarrierTest, WhoFindsThePhaseEndedAfterACancelIsStillAParty) {
  Barrier barrier(2);
  ThreadProbe probe;
  std::atomic<bool> has_passed{false};
  VirtualThread other = Spawn([&]() -> absl::Status {
    probe.Attach();
    BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());
    has_passed = true;
    const CancelShield shield;
    return barrier.ArriveAndWait();
  });
  probe.AwaitParked();
  other.Cancel();
  EXPECT_OK(barrier.ArriveAndWait());
  // On other carriers it may have run before, and left. Whichever it was, both go on.
  EXPECT_OK(barrier.ArriveAndWait());
  const absl::Status ended = other.Join();
  EXPECT_EQ(ended.ok(), has_passed);
  if (carriers() == 1) {
    EXPECT_OK(ended);
  }
}

BOBBIN_TEST(BarrierTest, DeadlineWhileWaitingTakesThePartyOut) {
  Barrier barrier(2);
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(barrier.ArriveAndWait(), StatusIs(kDeadlineExceeded));
  }
  ASSERT_OK(Spawn([&]() -> absl::Status {
              BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());
              return barrier.ArriveAndWait();
            }).Join());
}

BOBBIN_TEST(BarrierTest, AThreadThatIsToStopArrivesButWaitsForNobody) {
  Barrier pair(2);
  Barrier alone(1);
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_THAT(pair.ArriveAndWait(), StatusIs(kCancelled));
    EXPECT_OK(alone.ArriveAndWait());
    auto last = alone.Arrive();
    EXPECT_OK(alone.Wait(std::move(last)));
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
  EXPECT_OK(pair.ArriveAndWait());
  EXPECT_OK(pair.ArriveAndWait());
}

BOBBIN_TEST(BarrierTest, AShieldKeepsThePartyIn) {
  Barrier barrier(2);
  ThreadProbe probe;
  VirtualThread shielded = Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
    const CancelShield shield;
    probe.Attach();
    return barrier.ArriveAndWait();
  });
  probe.AwaitParked();
  shielded.Cancel();
  ASSERT_OK(SleepFor(milliseconds(2)));
  EXPECT_TRUE(probe.IsParked());
  EXPECT_OK(barrier.ArriveAndWait());
  EXPECT_OK(shielded.Join());
}

// Parties leave at any instant, also just when a phase ends: those who stay are never kept waiting,
// and who was told OK is still a party.
BOBBIN_TEST(BarrierTest, LeavingAndTheEndOfAPhaseRaceLosesNoPhase) {
  const int rounds = Rounds(200);
  for (int round = 0; round < rounds; ++round) {
    constexpr int kParties = 4;
    Barrier barrier(kParties);
    TaskGroup group({.on_failure = OnFailure::kLog, .placement = Placement::kSpread});
    for (int party = 0; party < kParties; ++party) {
      group.Spawn([&, party, own = random().Fork()]() mutable {
        for (int phase = 0; phase < 12; ++phase) {
          if (own.OneIn(3)) Yield();
          absl::Status passed;
          if (party % 2 == 0) {
            passed = barrier.ArriveAndWait();
            EXPECT_OK(passed);
          } else {
            const DeadlineScope scope(microseconds(own.Between(0, 300)));
            passed = own.OneIn(2) ? barrier.ArriveAndWait() : barrier.Wait(barrier.Arrive());
          }
          if (!passed.ok()) return;
        }
        barrier.ArriveAndDrop();
      });
    }
    ASSERT_OK(group.Wait());
  }
}

// Who has passed may destroy it.
BOBBIN_FOREIGN_TEST(BarrierTest, WhoHasPassedItMayDestroyIt) {
  const int rounds = Rounds(1500);
  for (int round = 0; round < rounds; ++round) {
    auto* const barrier = new Barrier<>(3);
    std::atomic<bool> is_taken{false};
    Crew crew(runtime());
    for (int i = 0; i < 3; ++i) {
      crew.Start(Kind::kVirtual, [barrier, &is_taken] {
        EXPECT_OK(barrier->ArriveAndWait());
        if (!is_taken.exchange(true)) delete barrier;
      });
    }
  }
}

BOBBIN_FOREIGN_TEST(BarrierTest, ThreadsOfAllKindsGoTogether) {
  const int phases = Rounds(1000);
  std::atomic<int64_t> arrived{0};
  Barrier barrier(4, [&]() noexcept { EXPECT_EQ(arrived % 4, 0); });
  Crew crew(runtime());
  for (const Kind kind : {Kind::kVirtual, Kind::kForeign, Kind::kPlatform, Kind::kVirtual}) {
    crew.Start(kind, [&] {
      for (int phase = 0; phase < phases; ++phase) {
        ++arrived;
        EXPECT_OK(barrier.ArriveAndWait());
      }
    });
  }
  crew.Join();
  EXPECT_EQ(arrived, int64_t{4} * phases);
}

BOBBIN_FOREIGN_TEST(BarrierTest, AForeignThreadWaitsNoLongerThanItsDeadline) {
  Barrier barrier(2);
  {
    const DeadlineScope scope(milliseconds(2));
    EXPECT_THAT(barrier.ArriveAndWait(), StatusIs(kDeadlineExceeded));
  }
  EXPECT_OK(runtime().Spawn([&] { return barrier.ArriveAndWait(); }).Join());
}

TEST(BarrierDeathTest, ArrivingMoreOftenThanThereArePartiesAborts) {
  Barrier barrier(1);
  barrier.ArriveAndDrop();
  EXPECT_DEATH(static_cast<void>(barrier.Arrive()),
               "more threads arrive at a barrier than it has parties");
  EXPECT_DEATH(static_cast<void>(barrier.ArriveAndWait()),
               "more threads arrive at a barrier than it has parties");
}

TEST(BarrierDeathTest, WithoutPartiesItAborts) {
  EXPECT_DEATH(Barrier<>(0), "a barrier needs a party");
}

TEST(BarrierDeathTest, DestroyingItWithWaitersAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        auto barrier = std::make_unique<Barrier<>>(2);
        ThreadProbe probe;
        VirtualThread waiter = runtime.Spawn([&] {
          probe.Attach();
          return barrier->ArriveAndWait();
        });
        probe.AwaitParked();
        barrier.reset();
      },
      "a barrier is destroyed while threads wait at it");
}

TEST(BarrierDeathTest, WaitingWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        Barrier barrier(2);
        const NoSuspendScope scope;
        static_cast<void>(barrier.ArriveAndWait());
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
