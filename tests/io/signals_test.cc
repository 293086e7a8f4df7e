// SPDX-License-Identifier: Apache-2.0

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/signals.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/io/traffic.h"
#include "tests/support/send_signal.h"

namespace bobbin::test {
namespace {

using io::Signals;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// A signal may be on its way when a test has seen all that it wanted: it must not end the process.
[[maybe_unused]] const bool kAreIgnored = [] {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGHUP, SIGTERM}) ::signal(signal, SIG_IGN);
  return true;
}();

Signals OpenFor(std::initializer_list<int> signals) {
  auto opened = Signals::Open(signals);
  EXPECT_OK(opened);
  return *std::move(opened);
}

// Whoever of the process's threads handles it does so in its own time.
int AwaitOne(Signals& signals) {
  std::optional<int> signal;
  AwaitTrue([&] { return (signal = signals.TryTake()).has_value(); });
  return *signal;
}

BOBBIN_IO_TEST(SignalsTest, AWaitEndsWithTheSignalThatComes) {
  Signals signals = OpenFor({SIGUSR1, SIGTERM});
  for (int round = 0; round < Rounds(200); ++round) {
    const int signal = random().OneIn(2) ? SIGUSR1 : SIGTERM;
    WaitProbe probe;
    VirtualThread waiter = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      EXPECT_THAT(signals.Wait(), IsOkAndHolds(signal));
    });
    if (random().OneIn(2)) probe.AwaitParked();
    SendSignal(signal);
    EXPECT_OK(waiter.Join());
  }
  EXPECT_EQ(signals.TryTake(), std::nullopt);
}

BOBBIN_IO_TEST(SignalsTest, WhatComesWhileNobodyWaitsIsKeptAndCountsOnce) {
  Signals signals = OpenFor({SIGUSR1, SIGUSR2});
  for (int i = 0; i < 5; ++i) SendSignal(SIGUSR2);
  SendSignal(SIGUSR1);
  std::vector<int> taken;
  AwaitTrue([&] {
    if (const std::optional<int> signal = signals.TryTake()) taken.push_back(*signal);
    return std::count(taken.begin(), taken.end(), SIGUSR1) == 1 &&
           std::count(taken.begin(), taken.end(), SIGUSR2) >= 1;
  });
  // From here on the handlers have run: what is sent next is all that comes.
  while (signals.TryTake()) {
  }
  SendSignal(SIGUSR2);
  EXPECT_THAT(signals.Wait(), IsOkAndHolds(SIGUSR2));
}

BOBBIN_IO_TEST(SignalsTest, EachThatWantsItGetsIt) {
  Signals first = OpenFor({SIGHUP, SIGUSR1});
  Signals second = OpenFor({SIGHUP});
  Signals third = OpenFor({SIGUSR1});
  SendSignal(SIGHUP);
  EXPECT_THAT(first.Wait(), IsOkAndHolds(SIGHUP));
  EXPECT_THAT(second.Wait(), IsOkAndHolds(SIGHUP));
  EXPECT_EQ(third.TryTake(), std::nullopt);
  SendSignal(SIGUSR1);
  EXPECT_THAT(third.Wait(), IsOkAndHolds(SIGUSR1));
  EXPECT_THAT(first.Wait(), IsOkAndHolds(SIGUSR1));
  EXPECT_EQ(second.TryTake(), std::nullopt);
}

BOBBIN_IO_TEST(SignalsTest, OfSeveralWhoWaitOneGetsIt) {
  Signals signals = OpenFor({SIGUSR1, SIGUSR2});
  constexpr int kRounds = Rounds(100);
  std::atomic<int> taken{0};
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) {
    group.Spawn([&]() -> absl::Status {
      while (true) {
        BOBBIN_RETURN_IF_ERROR(signals.Wait().status());
        ++taken;
      }
    });
  }
  for (int round = 1; round <= kRounds; ++round) {
    // Two at once: the one who is woken must not take the other's turn away.
    SendSignal(SIGUSR1);
    SendSignal(SIGUSR2);
    AwaitTrue([&] { return taken == 2 * round; });
  }
  group.Cancel();
  EXPECT_THAT(group.Wait(), StatusIs(kCancelled));
}

BOBBIN_IO_TEST(SignalsTest, DeadlineAndCancelEndTheWait) {
  Signals signals = OpenFor({SIGUSR1});
  for (int round = 0; round < Rounds(50); ++round) {
    {
      const DeadlineScope scope(microseconds(random().Between(0, 500)));
      EXPECT_THAT(signals.Wait(), StatusIs(kDeadlineExceeded));
    }
    VirtualThread waiter =
        Spawn({.placement = Placement::kSpread}, [&] { return signals.Wait().status(); });
    waiter.Cancel();
    EXPECT_THAT(waiter.Join(), StatusIs(kCancelled));
  }
  SendSignal(SIGUSR1);
  EXPECT_THAT(signals.Wait(), IsOkAndHolds(SIGUSR1));
}

std::atomic<int> handled{0};

void Count(int) { ++handled; }

struct sigaction ActionOf(int signal) {
  struct sigaction action {};
  EXPECT_EQ(::sigaction(signal, nullptr, &action), 0);
  return action;
}

BOBBIN_IO_TEST(SignalsTest, WhatWasDoneBeforeIsDoneAgain) {
  struct sigaction counting {};
  counting.sa_handler = &Count;
  struct sigaction original {};
  ASSERT_EQ(::sigaction(SIGUSR1, &counting, &original), 0);
  {
    Signals first = OpenFor({SIGUSR1});
    {
      Signals second = OpenFor({SIGUSR1});
      Signals moved = std::move(second);
      second = std::move(moved);
    }
    handled = 0;
    SendSignal(SIGUSR1);
    EXPECT_THAT(first.Wait(), IsOkAndHolds(SIGUSR1));
    EXPECT_EQ(handled, 0);
  }
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, &Count);
  SendSignal(SIGUSR1);
  AwaitTrue([] { return handled == 1; });
  {
    Signals signals = OpenFor({SIGUSR1});
    struct sigaction ignoring {};
    ignoring.sa_handler = SIG_IGN;
    ASSERT_EQ(::sigaction(SIGUSR1, &ignoring, nullptr), 0);
  }
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, SIG_IGN) << "somebody has changed it meanwhile";
  ASSERT_EQ(::sigaction(SIGUSR1, &original, nullptr), 0);
}

BOBBIN_IO_TEST(SignalsTest, NoMaskIsChanged) {
  sigset_t before, after;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  const Signals signals = OpenFor({SIGUSR1});
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  EXPECT_EQ(sigismember(&before, SIGUSR1), sigismember(&after, SIGUSR1));
}

BOBBIN_IO_TEST(SignalsTest, WhatMustNotBeHandledIsRefused) {
  for (const int signal : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, 0, -1, 65}) {
    EXPECT_THAT(Signals::Open({SIGUSR1, signal}), StatusIs(kInvalidArgument)) << signal;
  }
  EXPECT_THAT(Signals::Open({}), StatusIs(kInvalidArgument));
  // Those that the C library keeps for itself.
  const struct sigaction before = ActionOf(SIGUSR1);
  EXPECT_THAT(Signals::Open({SIGUSR1, 32}), StatusIs(kInvalidArgument));
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, before.sa_handler);
  const absl::Status own = Signals::Open({SIGURG}).status();
  EXPECT_THAT(own, StatusIs(kInvalidArgument));
  EXPECT_EQ(MessageOf(own), "signal 23: the runtime uses it (RuntimeOptions::thread_signal)");
}

BOBBIN_IO_TEST(SignalsTest, ThereIsALimit) {
  std::vector<Signals> all;
  for (size_t i = 0; i < Signals::kOpenMax; ++i) all.push_back(OpenFor({SIGUSR2}));
  EXPECT_THAT(Signals::Open({SIGUSR2}), StatusIs(kResourceExhausted));
  SendSignal(SIGUSR2);
  for (Signals& signals : all) EXPECT_EQ(AwaitOne(signals), SIGUSR2);
  all.pop_back();
  EXPECT_OK(Signals::Open({SIGUSR2}));
}

// Signals that come all the time disturb nobody, and none is lost while others come and go.
BOBBIN_IO_TEST(SignalsTest, AStormDisturbsNobody) {
  Signals kept = OpenFor({SIGUSR1, SIGUSR2});
  std::atomic<bool> is_over{false};
  std::thread storm([&] {
    while (!is_over) {
      SendSignal(SIGUSR1);
      ::sched_yield();
    }
  });
  TaskGroup group({.placement = Placement::kSpread});
  group.Spawn([] { return ManyPingPongs(4, Rounds(200)); });
  group.Spawn([&, own = Random(random().Next())]() mutable {
    for (int round = 0; round < Rounds(200); ++round) {
      Signals passing = OpenFor({SIGUSR1});
      if (own.OneIn(2)) {
        EXPECT_THAT(passing.Wait(), IsOkAndHolds(SIGUSR1));
      }
    }
  });
  EXPECT_OK(group.Wait());
  for (int round = 0; round < Rounds(50); ++round) {
    EXPECT_THAT(kept.Wait(), IsOkAndHolds(SIGUSR1));
  }
  is_over = true;
  storm.join();
  SendSignal(SIGUSR2);
  AwaitTrue([&] { return AwaitOne(kept) == SIGUSR2; });
}

BOBBIN_IO_FOREIGN_TEST(SignalsTest, ForeignThreadsWaitToo) {
  Signals signals = OpenFor({SIGUSR1});
  {
    const DeadlineScope scope(milliseconds(2));
    EXPECT_THAT(signals.Wait(), StatusIs(kDeadlineExceeded));
  }
  VirtualThread sender = runtime().Spawn([] { SendSignal(SIGUSR1); });
  EXPECT_THAT(signals.Wait(), IsOkAndHolds(SIGUSR1));
  EXPECT_OK(sender.Join());
}

}  // namespace
}  // namespace bobbin::test
