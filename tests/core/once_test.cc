// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/once.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/no_suspend.h>
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

absl::Status Failure() { return absl::UnavailableError("not now"); }

BOBBIN_TEST(OnceTest, OneBodyRunsAndAllCallersSeeWhatItDid) {
  for (int round = 0; round < Rounds(100); ++round) {
    Once once;
    int value = 0;
    int runs = 0;
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 8; ++i) {
      group.Spawn([&] {
        absl::Status called = once.Call([&] {
          ++runs;
          Yield();
          value = 7;
        });
        EXPECT_EQ(value, 7);
        return called;
      });
    }
    ASSERT_OK(group.Wait());
    EXPECT_EQ(runs, 1);
    EXPECT_TRUE(once.IsDone());
  }
}

BOBBIN_TEST(OnceTest, WhenItIsDoneACallDoesNotWait) {
  Once once;
  EXPECT_FALSE(once.IsDone());
  ASSERT_OK(once.Call([] {}));
  const NoSuspendScope scope;
  EXPECT_OK(once.Call([] { ADD_FAILURE() << "called twice"; }));
}

BOBBIN_TEST(OnceTest, TheBodyMayWait) {
  Once once;
  Event go;
  ThreadProbe probes[2];
  VirtualThread first = Spawn([&] {
    return once.Call([&] {
      probes[0].Attach();
      return go.Wait();
    });
  });
  probes[0].AwaitParked();
  VirtualThread second = Spawn([&] {
    probes[1].Attach();
    return once.Call([] { return Failure(); });
  });
  probes[1].AwaitParked();
  EXPECT_FALSE(once.IsDone());
  go.Set();
  EXPECT_OK(first.Join());
  EXPECT_OK(second.Join());
}

BOBBIN_TEST(OnceTest, AfterAFailureTheLongestWaiterTriesNext) {
  Once once;
  Event go;
  Log<int> tries;
  ThreadProbe probes[4];
  VirtualThread threads[4];
  for (int i = 0; i < 4; ++i) {
    threads[i] = Spawn({.placement = Placement::kSpread}, [&, i] {
      probes[i].Attach();
      return once.Call([&, i]() -> absl::Status {
        tries.Add(i);
        if (i == 0) {
          EXPECT_OK(go.Wait());
        }
        return i < 2 ? Failure() : absl::OkStatus();
      });
    });
    probes[i].AwaitParked();
  }
  go.Set();
  EXPECT_THAT(threads[0].Join(), StatusIs(kUnavailable));
  EXPECT_THAT(threads[1].Join(), StatusIs(kUnavailable));
  EXPECT_OK(threads[2].Join());
  EXPECT_OK(threads[3].Join());
  EXPECT_THAT(tries.Take(), testing::ElementsAre(0, 1, 2));
}

BOBBIN_TEST(OnceTest, ABodyThatThrowsHasNotRun) {
  Once once;
  ThreadProbe thrower_probe;
  ThreadProbe probe;
  Event go;
  VirtualThread thrower = Spawn([&] {
    return once.Call([&] {
      thrower_probe.Attach();
      EXPECT_OK(go.Wait());
      throw std::runtime_error("broken");
    });
  });
  thrower_probe.AwaitParked();
  VirtualThread waiter = Spawn([&] {
    probe.Attach();
    return once.Call([] {});
  });
  probe.AwaitParked();
  go.Set();
  EXPECT_THROW(static_cast<void>(thrower.Join()), std::runtime_error);
  EXPECT_OK(waiter.Join());
  EXPECT_TRUE(once.IsDone());
}

BOBBIN_TEST(OnceTest, WithoutWaitersAFailureLeavesItToTheNextCall) {
  Once once;
  EXPECT_THAT(once.Call([] { return Failure(); }), StatusIs(kUnavailable));
  EXPECT_THROW(static_cast<void>(once.Call([] { throw std::runtime_error("broken"); })),
               std::runtime_error);
  EXPECT_FALSE(once.IsDone());
  EXPECT_OK(once.Call([] {}));
}

BOBBIN_TEST(OnceTest, CancelAndDeadlineEndTheWaitForAnother) {
  Once once;
  Event go;
  ThreadProbe runner_probe;
  VirtualThread runner = Spawn([&] {
    return once.Call([&] {
      runner_probe.Attach();
      return go.Wait();
    });
  });
  runner_probe.AwaitParked();
  ThreadProbe probe;
  VirtualThread cancelled = Spawn([&] {
    probe.Attach();
    return once.Call([] { ADD_FAILURE() << "not its turn"; });
  });
  probe.AwaitParked();
  cancelled.Cancel();
  EXPECT_THAT(cancelled.Join(), StatusIs(kCancelled));
  {
    const DeadlineScope scope(milliseconds(1));
    EXPECT_THAT(once.Call([] {}), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(once.Call([] {}), StatusIs(kDeadlineExceeded));
  }
  go.Set();
  EXPECT_OK(runner.Join());
}

// The wait is over, and the thread has not run yet: what it finds then counts.
BOBBIN_TEST(OnceTest, WhoFindsItDoneAfterACancelIsToldSo) {
  Once once;
  ThreadProbe probe;
  VirtualThread waiter;
  ASSERT_OK(once.Call([&] {
    waiter = Spawn([&] {
      probe.Attach();
      return once.Call([] {});
    });
    probe.AwaitParked();
    waiter.Cancel();
  }));
  const absl::Status called = waiter.Join();
  // On other carriers it may have run before.
  if (carriers() == 1 || called.ok()) {
    EXPECT_OK(called);
  } else {
    EXPECT_THAT(called, StatusIs(kCancelled));
  }
}

BOBBIN_TEST(OnceTest, AThreadThatIsToStopRunsItsBodyButDoesNotWait) {
  Once free_once;
  Once busy;
  Event go;
  ThreadProbe probe;
  VirtualThread runner = Spawn([&] {
    return busy.Call([&] {
      probe.Attach();
      return go.Wait();
    });
  });
  probe.AwaitParked();
  VirtualThread stopping = Spawn([&] {
    AwaitTrue([] { return !CheckStop().ok(); });
    EXPECT_THAT(busy.Call([] {}), StatusIs(kCancelled));
    EXPECT_OK(free_once.Call([] {}));
    EXPECT_OK(free_once.Call([] {}));
    // A body that waits fails, and another one may try.
    Once other;
    EXPECT_THAT(other.Call([] { return SleepFor(hours(1)); }), StatusIs(kCancelled));
    EXPECT_FALSE(other.IsDone());
  });
  stopping.Cancel();
  ASSERT_OK(stopping.Join());
  go.Set();
  ASSERT_OK(runner.Join());
}

// A waiter gives up just when the body ends, one way or the other: it is told of a success, and a
// turn that was given to it is not lost.
BOBBIN_TEST(OnceTest, DeadlineAndEndOfBodyRaceLosesNoTurn) {
  const int rounds = Rounds(300);
  for (int round = 0; round < rounds; ++round) {
    Once once;
    Event go;
    std::atomic<int> successes{0};
    const bool fails = random().OneIn(2);
    ThreadProbe probe;
    VirtualThread runner = Spawn({.placement = Placement::kSpread}, [&] {
      static_cast<void>(once.Call([&]() -> absl::Status {
        probe.Attach();
        EXPECT_OK(go.Wait());
        if (!fails) ++successes;
        return fails ? Failure() : absl::OkStatus();
      }));
    });
    probe.AwaitParked();
    TaskGroup waiters({.placement = Placement::kSpread});
    waiters.Spawn([&] {
      const DeadlineScope scope(microseconds(100));
      if (once.Call([&] { ++successes; }).ok()) {
        EXPECT_TRUE(once.IsDone());
      }
    });
    waiters.Spawn([&] { return once.Call([&] { ++successes; }); });
    ASSERT_OK(SleepFor(microseconds(random().Between(50, 250))));
    go.Set();
    ASSERT_OK(runner.Join());
    ASSERT_OK(waiters.Wait());
    EXPECT_TRUE(once.IsDone());
    EXPECT_EQ(successes, 1);
  }
}

BOBBIN_TEST(OnceTest, OfManyThatMayFailOneSucceeds) {
  for (int round = 0; round < Rounds(300); ++round) {
    Once once;
    std::atomic<int> inside{0};
    std::atomic<int> successes{0};
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 6; ++i) {
      group.Spawn([&, own = random().Fork()]() mutable {
        while (!once.IsDone()) {
          const DeadlineScope scope(microseconds(own.Between(0, 200)));
          static_cast<void>(once.Call([&]() -> absl::Status {
            EXPECT_EQ(++inside, 1);
            if (own.OneIn(2)) Yield();
            EXPECT_EQ(--inside, 0);
            if (!own.OneIn(3)) return Failure();
            ++successes;
            return absl::OkStatus();
          }));
        }
      });
    }
    ASSERT_OK(group.Wait());
    EXPECT_EQ(successes, 1);
  }
}

// The end of the body does not touch what a caller may destroy.
BOBBIN_FOREIGN_TEST(OnceTest, WhoSeesItDoneMayDestroyIt) {
  const int rounds = Rounds(1500);
  for (int round = 0; round < rounds; ++round) {
    auto* const once = new Once;
    Crew crew(runtime());
    crew.Start(Kind::kVirtual, [once] { EXPECT_OK(once->Call([] {})); });
    crew.Start(Kind::kVirtual, [once] {
      AwaitTrue([once] { return once->IsDone(); });
      delete once;
    });
  }
}

BOBBIN_FOREIGN_TEST(OnceTest, ThreadsOfAllKindsMeet) {
  for (int round = 0; round < Rounds(200); ++round) {
    Once once;
    int runs = 0;
    Crew crew(runtime());
    for (const Kind kind : {Kind::kVirtual, Kind::kForeign, Kind::kPlatform, Kind::kVirtual}) {
      crew.Start(kind, [&] { EXPECT_OK(once.Call([&] { ++runs; })); });
    }
    crew.Join();
    EXPECT_EQ(runs, 1);
  }
}

BOBBIN_FOREIGN_TEST(OnceTest, AForeignThreadWaitsNoLongerThanItsDeadline) {
  Once once;
  ThreadProbe probe;
  VirtualThread runner = runtime().Spawn([&] {
    return once.Call([&] {
      probe.Attach();
      return SleepFor(hours(1));
    });
  });
  probe.AwaitParked();
  {
    const DeadlineScope scope(milliseconds(2));
    EXPECT_THAT(once.Call([] {}), StatusIs(kDeadlineExceeded));
  }
  runner.Cancel();
  EXPECT_THAT(runner.Join(), StatusIs(kCancelled));
  EXPECT_OK(once.Call([] {}));
}

TEST(OnceDeathTest, ABodyThatCallsItsOwnOnceAborts) {
  Once once;
  EXPECT_DEATH(static_cast<void>(once.Call([&] { return once.Call([] {}); })),
               "the body of a once calls the once");
}

TEST(OnceDeathTest, DestroyingItWhileABodyRunsAborts) {
  std::optional<Once> once;
  once.emplace();
  EXPECT_DEATH(static_cast<void>(once->Call([&] { once.reset(); })),
               "a once is destroyed while a body of it runs");
}

TEST(OnceDeathTest, WaitingWhereSuspendingIsForbiddenAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        Once once;
        Event never;
        ThreadProbe probe;
        VirtualThread runner = runtime.Spawn([&] {
          return once.Call([&] {
            probe.Attach();
            return never.Wait();
          });
        });
        probe.AwaitParked();
        const NoSuspendScope scope;
        static_cast<void>(once.Call([] {}));
      },
      "a wait inside a NoSuspendScope");
}

}  // namespace
}  // namespace bobbin::test
