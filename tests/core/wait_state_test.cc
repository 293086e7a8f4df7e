// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/wait_state.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"

#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using internal::Phase;
using internal::Ticket;
using internal::WaitState;
using internal::Wake;

// Where the notifier runs: on another OS thread, or on the carrier of the thread that waits.
constexpr bool kRemote = false;
constexpr bool kLocal = true;

void Begin(WaitState& state) {
  state.Reset(Phase::kFresh);
  state.Start();
}

TEST(WaitStateTest, ANotifyEndsTheWaitItHoldsTheTicketOf) {
  for (const bool place : {kRemote, kLocal}) {
    WaitState state;
    Begin(state);
    const Ticket ticket = state.BeginWait(Phase::kWaiting);
    EXPECT_EQ(state.phase(), Phase::kWaiting);
    EXPECT_TRUE(state.TryNotify(ticket, place));
    EXPECT_EQ(state.phase(), Phase::kNotified);
    EXPECT_FALSE(state.TryNotify(ticket, place));
    EXPECT_EQ(state.EndWait(), Wake::kNotified);
    EXPECT_EQ(state.phase(), Phase::kRunning);
    EXPECT_FALSE(state.TryNotify(ticket, place));
  }
}

TEST(WaitStateTest, TheFirstOneEndsTheWaitAndTheOthersDoNothing) {
  for (const Wake winner : {Wake::kNotified, Wake::kExpired, Wake::kCancelled}) {
    WaitState state;
    Begin(state);
    const Ticket ticket = state.BeginWait(Phase::kWaiting);
    EXPECT_TRUE(winner == Wake::kNotified ? state.TryNotify(ticket, kRemote)
                                          : state.TryInterrupt(winner));
    EXPECT_FALSE(state.TryNotify(ticket, kRemote));
    EXPECT_FALSE(state.TryInterrupt(Wake::kExpired));
    EXPECT_FALSE(state.TryInterrupt(Wake::kCancelled));
    EXPECT_EQ(state.EndWait(), winner);
  }
}

TEST(WaitStateTest, AStaleTicketMatchesNoLaterWait) {
  WaitState state;
  Begin(state);
  const Ticket old_ticket = state.BeginWait(Phase::kWaiting);
  EXPECT_TRUE(state.TryInterrupt(Wake::kExpired));
  EXPECT_EQ(state.EndWait(), Wake::kExpired);
  EXPECT_FALSE(state.TryNotify(old_ticket, kRemote));  // Between two waits.
  const Ticket new_ticket = state.BeginWait(Phase::kWaiting);
  EXPECT_NE(new_ticket, old_ticket);
  EXPECT_FALSE(state.TryNotify(old_ticket, kRemote));
  EXPECT_TRUE(state.TryNotify(new_ticket, kRemote));
  EXPECT_EQ(state.EndWait(), Wake::kNotified);
}

TEST(WaitStateTest, AStaleTicketMatchesNoLaterUserOfTheRecord) {
  WaitState state;
  Begin(state);
  const Ticket old_ticket = state.BeginWait(Phase::kWaiting);
  EXPECT_TRUE(state.TryNotify(old_ticket, kRemote));
  EXPECT_EQ(state.EndWait(), Wake::kNotified);
  state.Finish();
  EXPECT_EQ(state.phase(), Phase::kDone);
  Begin(state);
  const Ticket new_ticket = state.BeginWait(Phase::kWaiting);
  EXPECT_FALSE(state.TryNotify(old_ticket, kRemote));
  EXPECT_TRUE(state.TryNotify(new_ticket, kRemote));
  EXPECT_EQ(state.EndWait(), Wake::kNotified);
}

TEST(WaitStateTest, AShieldedWaitIsEndedByANotifyOnly) {
  WaitState state;
  Begin(state);
  const Ticket ticket = state.BeginWait(Phase::kWaitingShielded);
  EXPECT_FALSE(state.TryInterrupt(Wake::kExpired));
  EXPECT_FALSE(state.TryInterrupt(Wake::kCancelled));
  EXPECT_TRUE(state.TryNotify(ticket, kRemote));
  EXPECT_EQ(state.EndWait(), Wake::kNotified);
}

TEST(WaitStateTest, AWaitForTheKernelIsEndedByItsCompletionOnly) {
  WaitState state;
  Begin(state);
  const Ticket ticket = state.BeginWait(Phase::kWaitingKernel);
  EXPECT_FALSE(state.TryNotify(ticket, kRemote));
  EXPECT_FALSE(state.TryInterrupt(Wake::kExpired));
  EXPECT_FALSE(state.TryInterrupt(Wake::kCancelled));
  state.Complete();
  EXPECT_EQ(state.EndWait(), Wake::kNotified);
}

TEST(WaitStateTest, AThreadThatRunsCannotBeWoken) {
  WaitState state;
  EXPECT_FALSE(state.TryNotify(0, kRemote));
  EXPECT_FALSE(state.TryInterrupt(Wake::kCancelled));
  state.Reset(Phase::kFresh);
  EXPECT_FALSE(state.TryNotify(0, kRemote));
  EXPECT_FALSE(state.TryInterrupt(Wake::kCancelled));
  state.Start();
  EXPECT_FALSE(state.TryNotify(0, kRemote));
  EXPECT_FALSE(state.TryNotify(1, kRemote));
  EXPECT_FALSE(state.TryInterrupt(Wake::kCancelled));
}

// However many race for it, one wins.
TEST(WaitStateTest, OfAllThatRaceForAWaitOneWins) {
  WaitState state;
  Begin(state);
  std::atomic<int> round{0};
  std::atomic<int> arrived{0};
  std::atomic<int> winners{0};
  std::atomic<Ticket> ticket{0};
  const int rounds = Rounds(4000);
  OsThreads threads;
  for (int i = 0; i < 3; ++i) {
    threads.Start([&, i] {
      for (int mine = 1; mine <= rounds; ++mine) {
        while (round != mine) std::this_thread::yield();
        const bool is_won =
            i == 0   ? state.TryInterrupt(Wake::kExpired)
            : i == 1 ? state.TryNotify(ticket, kRemote)
                     : state.TryNotify(ticket - 1, kRemote) || state.TryNotify(ticket, kRemote);
        if (is_won) ++winners;
        ++arrived;
      }
    });
  }
  for (int mine = 1; mine <= rounds; ++mine) {
    ticket = state.BeginWait(Phase::kWaiting);
    round = mine;
    while (arrived != 3 * mine) std::this_thread::yield();
    ASSERT_EQ(winners, mine);
    static_cast<void>(state.EndWait());
  }
}

TEST(WaitStateTest, AWaitInSeveralPlacesIsAWaitOfItsOwn) {
  WaitState state;
  Begin(state);
  const Ticket ticket = state.BeginWait(Phase::kWaitingAny);
  EXPECT_FALSE(state.TryNotify(ticket, kLocal));  // Which may be a plain store.
  EXPECT_FALSE(state.TryNotifyAny(ticket - 1));
  EXPECT_TRUE(state.TryNotifyAny(ticket));
  EXPECT_FALSE(state.TryNotifyAny(ticket));
  EXPECT_FALSE(state.TryInterrupt(Wake::kCancelled));
  EXPECT_EQ(state.EndWait(), Wake::kNotified);

  const Ticket interrupted = state.BeginWait(Phase::kWaitingAny);
  EXPECT_TRUE(state.TryInterrupt(Wake::kExpired));
  EXPECT_FALSE(state.TryNotifyAny(interrupted));
  EXPECT_EQ(state.EndWait(), Wake::kExpired);

  const Ticket single = state.BeginWait(Phase::kWaiting);
  EXPECT_FALSE(state.TryNotifyAny(single));
  EXPECT_TRUE(state.TryNotify(single, kLocal));
  EXPECT_EQ(state.EndWait(), Wake::kNotified);
}

// Several may find it at the same instant, each in a queue of its own: one wins.
TEST(WaitStateTest, OfAllWhoFindAWaitInSeveralPlacesOneWins) {
  WaitState state;
  Begin(state);
  std::atomic<int> round{0};
  std::atomic<int> arrived{0};
  std::atomic<int> winners{0};
  std::atomic<Ticket> ticket{0};
  const int rounds = Rounds(4000);
  OsThreads threads;
  for (int i = 0; i < 3; ++i) {
    threads.Start([&] {
      for (int mine = 1; mine <= rounds; ++mine) {
        while (round != mine) std::this_thread::yield();
        if (state.TryNotifyAny(ticket)) ++winners;
        ++arrived;
      }
    });
  }
  for (int mine = 1; mine <= rounds; ++mine) {
    ticket = state.BeginWait(Phase::kWaitingAny);
    round = mine;
    while (arrived != 3 * mine) std::this_thread::yield();
    ASSERT_EQ(winners, mine);
    EXPECT_EQ(state.EndWait(), Wake::kNotified);
  }
}

TEST(WaitStateDeathTest, ImpossibleStepsAbortInDebugBuilds) {
  if (!kChecksDebug) GTEST_SKIP() << "this build has no debug checks";
  EXPECT_DEATH(
      {
        WaitState state;
        Begin(state);
        state.Start();
      },
      "started twice");
  EXPECT_DEATH(
      {
        WaitState state;
        Begin(state);
        state.BeginWait(Phase::kWaiting);
        state.BeginWait(Phase::kWaiting);
      },
      "a thread waits for two things at once");
  EXPECT_DEATH(
      {
        WaitState state;
        Begin(state);
        state.Complete();
      },
      "a completion nobody waits for");
}

TEST(WaitStateDeathTest, GoingOnWithoutHavingBeenWokenAborts) {
  EXPECT_DEATH(
      {
        WaitState state;
        Begin(state);
        state.BeginWait(Phase::kWaiting);
        static_cast<void>(state.EndWait());
      },
      "a thread was resumed although nobody woke it");
}

// Two threads wake each other without a pause. Neither a wake-up is lost nor
// does one of them run in two places.
BOBBIN_TEST(WaitStateTest, TwoThreadsWakeEachOtherWithoutAPause) {
  Semaphore turn[2] = {Semaphore(1), Semaphore(0)};
  std::atomic<int> running[2] = {0, 0};
  const int rounds = Rounds(15'000);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 2; ++i) {
    group.Spawn([&, i, own = random().Fork()]() mutable {
      for (int round = 0; round < rounds; ++round) {
        ASSERT_EQ(running[i].fetch_add(1), 0);
        running[i].fetch_sub(1);
        ASSERT_OK(turn[i].Acquire());
        Spin(own.Below(64));
        turn[1 - i].Release();
      }
    });
  }
  ASSERT_OK(group.Wait());
}

// Many at once, so that carriers fall asleep and are woken all the time.
BOBBIN_TEST(WaitStateTest, ARingOfThreadsPassesATokenOnAndOn) {
  constexpr size_t kThreads = 7;
  Semaphore turns[kThreads] = {Semaphore(1), Semaphore(0), Semaphore(0), Semaphore(0),
                               Semaphore(0), Semaphore(0), Semaphore(0)};
  const int rounds = Rounds(1500);
  TaskGroup group({.placement = Placement::kSpread});
  for (size_t i = 0; i < kThreads; ++i) {
    group.Spawn([&, i] {
      for (int round = 0; round < rounds; ++round) {
        ASSERT_OK(turns[i].Acquire());
        turns[(i + 1) % kThreads].Release();
      }
    });
  }
  ASSERT_OK(group.Wait());
}

}  // namespace
}  // namespace bobbin::test
