// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/channel.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/condition.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr auto kLongest = nanoseconds(std::numeric_limits<int64_t>::max());

TEST(DeadlineTest, ItIsAPointInTimeOrNever) {
  const MonotonicTime now = MonotonicNow();
  EXPECT_TRUE(Deadline::At(now).HasPassed(now));
  EXPECT_FALSE(Deadline::At(now + nanoseconds(1)).HasPassed(now));
  EXPECT_TRUE(Deadline::Never().is_never());
  EXPECT_FALSE(Deadline::Never().HasPassed(now + hours(24 * 365 * 100)));
  EXPECT_LT(Deadline::At(now), Deadline::Never());
  EXPECT_LT(Deadline::At(now), Deadline::At(now + nanoseconds(1)));
  EXPECT_EQ(Deadline::At(now).nanoseconds(), now.time_since_epoch().count());
}

TEST(DeadlineTest, AfterDoesNotOverflow) {
  EXPECT_TRUE(Deadline::After(kLongest).is_never());
  EXPECT_TRUE(Deadline::After(kLongest - nanoseconds(1)).is_never());
  EXPECT_TRUE(Deadline::After(-kLongest).HasPassed(MonotonicNow()));
  EXPECT_TRUE(Deadline::After(nanoseconds(0)).HasPassed(MonotonicNow()));
  EXPECT_FALSE(Deadline::After(hours(1)).HasPassed(MonotonicNow()));
}

// All the waits there are, each of which would otherwise last for ever.
void ExpectEveryWaitAnswers(absl::StatusCode code) {
  Event event;
  EXPECT_THAT(event.Wait(), StatusIs(code));
  Semaphore semaphore(0);
  EXPECT_THAT(semaphore.Acquire(), StatusIs(code));
  WaitGroup wait_group;
  wait_group.Add();
  EXPECT_THAT(wait_group.Wait(), StatusIs(code));
  auto [sender, receiver] = MakeChannel<int>();
  EXPECT_THAT(receiver.Receive(), StatusIs(code));
  EXPECT_THAT(sender.Send(1), StatusIs(code));
  Mutex mutex;
  {
    Condition condition;
    const MutexLock lock(mutex);
    EXPECT_THAT(condition.Wait(mutex), StatusIs(code));
  }
  EXPECT_THAT(SleepFor(hours(1)), StatusIs(code));
}

BOBBIN_TEST(DeadlineScopeTest, ItCoversEveryWaitInsideAndEachAnswersAtOnceAfterwards) {
  Event never;
  {
    const DeadlineScope scope(milliseconds(2));
    const MonotonicTime begin = MonotonicNow();
    EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
    EXPECT_GE(MonotonicNow() - begin, milliseconds(1));
    ExpectEveryWaitAnswers(kDeadlineExceeded);
    EXPECT_THAT(CheckStop(), StatusIs(kDeadlineExceeded));
  }
  // Outside, all is as before.
  EXPECT_OK(CheckStop());
  EXPECT_OK(SleepFor(microseconds(100)));
}

BOBBIN_TEST(DeadlineScopeTest, OneThatHasPassedEndsTheFirstWait) {
  const DeadlineScope scope(Deadline::After(milliseconds(-1)));
  ExpectEveryWaitAnswers(kDeadlineExceeded);
}

BOBBIN_TEST(DeadlineScopeTest, AnInnerScopeOnlyShortens) {
  Event never;
  const MonotonicTime begin = MonotonicNow();
  const DeadlineScope outer(milliseconds(5));
  EXPECT_GE(outer.effective(), Deadline::At(begin + milliseconds(5)));
  {
    const DeadlineScope inner(hours(1));
    EXPECT_EQ(inner.effective(), outer.effective());
    const DeadlineScope none(Deadline::Never());
    EXPECT_EQ(none.effective(), outer.effective());
    const DeadlineScope innermost(milliseconds(1));
    EXPECT_LT(innermost.effective(), outer.effective());
    EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
  }
  // The inner deadline ended with its scope; the outer one is still to come.
  EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
  EXPECT_GE(MonotonicNow() - begin, milliseconds(5));
}

BOBBIN_TEST(DeadlineScopeTest, AWaitThatIsOverInTimeLeavesTheScopeUsable) {
  const DeadlineScope scope(seconds(60));
  for (int i = 0; i < 100; ++i) {
    Event event;
    VirtualThread setter = Spawn({.placement = Placement::kSpread}, [&] { event.Set(); });
    ASSERT_OK(event.Wait());
    ASSERT_OK(setter.Join());
  }
}

BOBBIN_TEST(DeadlineScopeTest, AShieldHidesTheOuterDeadlineAndObeysItsOwn) {
  Event never;
  const DeadlineScope outer(milliseconds(1));
  EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
  {
    const CancelShield shield;
    EXPECT_OK(CheckStop());
    EXPECT_OK(SleepFor(milliseconds(1)));
    const DeadlineScope at_most(milliseconds(1));
    EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
  }
  EXPECT_THAT(CheckStop(), StatusIs(kDeadlineExceeded));
  EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
}

BOBBIN_TEST(DeadlineScopeTest, ADeadlineThatPassesInsideAShieldIsSeenAfterIt) {
  Event never;
  const DeadlineScope outer(milliseconds(2));
  Event now;
  VirtualThread setter = Spawn([&] { now.Set(); });
  // Arms the outer scope's timer; or sees it pass, where the setter is late.
  EXPECT_THAT(now.Wait(),
              testing::AnyOf(StatusIs(absl::StatusCode::kOk), StatusIs(kDeadlineExceeded)));
  {
    const CancelShield shield;
    EXPECT_OK(SleepFor(milliseconds(4)));
  }
  EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
  const CancelShield shield;
  EXPECT_OK(setter.Join());
}

BOBBIN_TEST(DeadlineScopeTest, CheckStopSeesADeadlineWithoutAnyWait) {
  const MonotonicTime begin = MonotonicNow();
  const DeadlineScope scope(milliseconds(1));
  while (CheckStop().ok()) ASSERT_LT(MonotonicNow() - begin, seconds(10));
  EXPECT_THAT(CheckStop(), StatusIs(kDeadlineExceeded));
  EXPECT_GE(MonotonicNow() - begin, milliseconds(1));
}

// A timer goes with its scope, however many waits are over long before their deadline.
BOBBIN_TEST(DeadlineScopeTest, ATimerDoesNotOutliveItsScope) {
  const int waits = Rounds(20'000);
  auto [ping, ping_out] = MakeChannel<int>();
  auto [pong, pong_out] = MakeChannel<int>();
  VirtualThread echo =
      Spawn({.placement = Placement::kSpread}, [in = std::move(ping_out), out = std::move(pong)] {
        for (const int value : in) {
          EXPECT_OK(out.SendUntil(int{value}, Deadline::After(seconds(60))));
        }
      });
  uint64_t timers_most = 0;
  for (int i = 0; i < waits; ++i) {
    ASSERT_OK(ping.SendUntil(int{i}, Deadline::After(seconds(60))));
    ASSERT_OK(pong_out.ReceiveUntil(Deadline::After(seconds(60))));
    if (i % 64 == 0) timers_most = std::max(timers_most, runtime().Statistics().timers);
  }
  // One a thread, at most; a carrier publishes its gauge a little later.
  EXPECT_LE(timers_most, 2);
  ping.Close();
  ASSERT_OK(echo.Join());
}

BOBBIN_FOREIGN_TEST(DeadlineScopeTest, ItCoversTheWaitsOfAForeignThread) {
  Event never;
  {
    const DeadlineScope scope(milliseconds(2));
    EXPECT_THAT(never.Wait(), StatusIs(kDeadlineExceeded));
    ExpectEveryWaitAnswers(kDeadlineExceeded);
  }
  EXPECT_OK(CheckStop());
  Event event;
  VirtualThread setter = runtime().Spawn([&]() -> absl::Status {
    const absl::Status slept = SleepFor(milliseconds(1));
    event.Set();
    return slept;
  });
  const DeadlineScope scope(seconds(60));
  EXPECT_OK(event.Wait());
  EXPECT_OK(setter.Join());
}

TEST(DeadlineScopeDeathTest, EndingAThreadInsideAScopeAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        std::unique_ptr<DeadlineScope> leaked;
        static_cast<void>(
            runtime.Spawn([&] { leaked = std::make_unique<DeadlineScope>(hours(1)); }).Join());
      },
      "a virtual thread ends inside a scope that it began");
}

}  // namespace
}  // namespace bobbin::test
