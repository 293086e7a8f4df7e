// SPDX-License-Identifier: Apache-2.0

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/local.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin {
namespace {

using test::AwaitTrue;
using test::Log;
using test::StatusIs;
using test::ThreadProbe;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// What bodies on platform threads block at, until the test opens it.
class Gate {
 public:
  void EnterBlocking() {
    std::unique_lock lock(mutex_);
    ++entered_;
    condition_.wait(lock, [this] { return is_open_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    condition_.notify_all();
  }
  void AwaitEntered(int count) {
    AwaitTrue([&] {
      const std::lock_guard lock(mutex_);
      return entered_ >= count;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  int entered_ = 0;
  bool is_open_ = false;
};

// Puts `count` bodies that block at `gate` into `pool`.
void Occupy(PlatformPool& pool, Gate& gate, int count) {
  for (int i = 0; i < count; ++i) {
    EXPECT_OK(pool.Submit([&gate] { gate.EnterBlocking(); }));
  }
  gate.AwaitEntered(count);
}

void AwaitIdlePool(const PlatformPool& pool) {
  AwaitTrue([&] {
    const PlatformPoolStatistics now = pool.Statistics();
    return now.active == 0 && now.queued == 0;
  });
}

std::string SystemThreadName() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

// --- One call.

BOBBIN_TEST(PlatformPoolTest, RunBlockingRunsOnANamedPlatformThread) {
  PlatformPool pool({.name = "a-long-pool-name"});
  EXPECT_EQ(pool.RunBlocking([] { return CurrentRole(); }).value(), Role::kPlatform);
  EXPECT_EQ(pool.RunBlocking([] { return DescribeCurrentThread(); }).value(),
            "platform thread \"a-long-pool-name-1\"");
  EXPECT_EQ(pool.RunBlocking([] { return SystemThreadName(); }).value(), "a-long-pool-nam");
  EXPECT_EQ(CurrentRole(), Role::kVirtual);
}

BOBBIN_TEST(PlatformPoolTest, RunBlockingReturnsWhatTheBodyReturns) {
  PlatformPool pool;
  EXPECT_THAT(pool.RunBlocking([] { return 7; }), test::IsOkAndHolds(7));
  EXPECT_OK(pool.RunBlocking([] {}));
  EXPECT_THAT(pool.RunBlocking([] { return absl::NotFoundError("no"); }),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(pool.RunBlocking([] { return absl::StatusOr<std::string>("text"); }),
              test::IsOkAndHolds(std::string("text")));
  // A result that can only be moved.
  EXPECT_EQ(**pool.RunBlocking([] { return std::make_unique<int>(3); }), 3);
}

BOBBIN_TEST(PlatformPoolTest, AnExceptionReachesTheCaller) {
  PlatformPool pool;
  try {
    pool.RunBlocking([]() -> int { throw std::runtime_error("disk on fire"); }).IgnoreError();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "disk on fire");
    // The thread survives it, also while the exception is being handled here.
    EXPECT_EQ(pool.RunBlocking([] { return std::uncaught_exceptions(); }).value(), 0);
  }
  EXPECT_EQ(pool.Statistics().completed, 2);
}

BOBBIN_TEST(PlatformPoolTest, TheCarrierRunsOthersMeanwhile) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  VirtualThread caller = Spawn([&] { return pool.RunBlocking([&] { gate.EnterBlocking(); }); });
  gate.AwaitEntered(1);  // With one carrier, this line already needs it.
  gate.Open();
  EXPECT_OK(caller.Join());
}

BOBBIN_TEST(PlatformPoolTest, ABodyOnAPlatformThreadMaySpawnVirtualThreads) {
  PlatformPool pool;
  EXPECT_OK(pool.RunBlocking([] {
    Role role = Role::kForeign;
    absl::Status status = Spawn([&] { role = CurrentRole(); }).Join();
    EXPECT_EQ(role, Role::kVirtual);
    return status;
  }));
}

BOBBIN_FOREIGN_TEST(PlatformPoolTest, AForeignThreadBlocksUntilTheBodyHasRun) {
  PlatformPool pool;
  EXPECT_EQ(pool.RunBlocking([] { return CurrentRole(); }).value(), Role::kPlatform);
  // The pool was not made on a thread of the runtime.
  const DeadlineScope scope(std::chrono::milliseconds(20));
  Gate gate;
  EXPECT_OK(pool.Submit([&] { gate.EnterBlocking(); }));
  PlatformPool other({.threads = 1});
  EXPECT_OK(other.Submit([&] { gate.EnterBlocking(); }));
  gate.AwaitEntered(2);
  EXPECT_THAT(other.RunBlocking([] { ADD_FAILURE() << "it was taken back"; }),
              StatusIs(test::kDeadlineExceeded));
  gate.Open();
}

BOBBIN_TEST(PlatformPoolTest, ManyCallersFromAllKindsOfThreadsGetTheirOwnResults) {
  PlatformPool pool({.threads = 3});
  constexpr int kCallers = 16;
  constexpr int kRounds = 50;
  {
    TaskGroup group;
    for (int caller = 0; caller < kCallers; ++caller) {
      group.Spawn([&pool, caller]() -> absl::Status {
        for (int round = 0; round < kRounds; ++round) {
          BOBBIN_ASSIGN_OR_RETURN(const int result,
                                  pool.RunBlocking([&] { return caller * 1000 + round; }));
          EXPECT_EQ(result, caller * 1000 + round);
        }
        return absl::OkStatus();
      });
    }
    EXPECT_OK(group.Wait());
  }
  EXPECT_EQ(pool.Statistics().completed, kCallers * kRounds);
  EXPECT_LE(pool.Statistics().threads_peak, 3);
}

BOBBIN_FOREIGN_TEST(PlatformPoolTest, ForeignAndVirtualThreadsShareAPool) {
  PlatformPool pool({.threads = 2});
  std::atomic<int> sum{0};
  {
    test::Crew crew(runtime());
    for (int i = 0; i < 8; ++i) {
      crew.Start(i % 2 == 0 ? test::Kind::kForeign : test::Kind::kVirtual, [&] {
        for (int round = 0; round < 50; ++round) {
          EXPECT_OK(pool.RunBlocking([&] { sum.fetch_add(1); }));
        }
      });
    }
  }
  EXPECT_EQ(sum.load(), 400);
}

BOBBIN_TEST(PlatformPoolTest, ACallToTheOwnPoolRunsInline) {
  PlatformPool pool({.threads = 1, .queue_max = 1});
  const absl::StatusOr<bool> is_same = pool.RunBlocking([&] {
    const pthread_t outer = pthread_self();
    return pool.RunBlocking([&] { return pthread_equal(pthread_self(), outer) != 0; }).value();
  });
  EXPECT_THAT(is_same, test::IsOkAndHolds(true));
}

BOBBIN_TEST(PlatformPoolTest, TwoPoolsCallEachOther) {
  PlatformPool left({.name = "left", .threads = 1});
  PlatformPool right({.name = "right", .threads = 1});
  const absl::StatusOr<std::string> name = left.RunBlocking(
      [&] { return right.RunBlocking([] { return DescribeCurrentThread(); }).value(); });
  EXPECT_THAT(name, test::IsOkAndHolds(std::string("platform thread \"right-1\"")));
}

// --- RunBlocking without a pool.

BOBBIN_TEST(RunBlockingTest, AVirtualThreadUsesItsRuntimesPool) {
  EXPECT_EQ(RunBlocking([] { return CurrentRole(); }).value(), Role::kPlatform);
  // A body may block, so a call inside runs in place.
  EXPECT_EQ(RunBlocking([] { return RunBlocking([] { return 5; }).value(); }).value(), 5);
}

BOBBIN_FOREIGN_TEST(RunBlockingTest, AForeignThreadRunsTheBodyItself) {
  const pthread_t here = pthread_self();
  EXPECT_EQ(RunBlocking([&] { return pthread_equal(pthread_self(), here) != 0; }).value(), true);
  const DeadlineScope scope(std::chrono::nanoseconds(0));
  EXPECT_THAT(RunBlocking([] { ADD_FAILURE() << "its deadline has passed"; }),
              StatusIs(test::kDeadlineExceeded));
}

// --- Growth.

BOBBIN_TEST(PlatformPoolTest, ThreadsStartOnDemandUpToTheCore) {
  PlatformPool pool({.threads = 3});
  EXPECT_EQ(pool.Statistics().threads, 0);
  for (int i = 0; i < 5; ++i) EXPECT_OK(pool.RunBlocking([] {}));
  EXPECT_EQ(pool.Statistics().threads, 1);  // One idle thread is enough for calls in turn.

  Gate gate;
  Occupy(pool, gate, 3);
  EXPECT_OK(pool.Submit([] {}));
  EXPECT_EQ(pool.Statistics().threads, 3);
  EXPECT_EQ(pool.Statistics().active, 3);
  EXPECT_EQ(pool.Statistics().queued, 1);
  gate.Open();
  AwaitIdlePool(pool);
  EXPECT_EQ(pool.Statistics().completed, 9);
}

BOBBIN_TEST(PlatformPoolTest, AFullQueueGrowsThePoolToItsMaximum) {
  PlatformPool pool({.threads = 1, .threads_max = 3, .queue_max = 2});
  Gate gate;
  Occupy(pool, gate, 1);
  EXPECT_OK(pool.Submit([&] { gate.EnterBlocking(); }));
  EXPECT_OK(pool.Submit([&] { gate.EnterBlocking(); }));
  EXPECT_EQ(pool.Statistics().threads, 1);
  EXPECT_OK(pool.Submit([&] { gate.EnterBlocking(); }));  // No room: a second thread.
  gate.AwaitEntered(2);
  EXPECT_OK(pool.Submit([&] { gate.EnterBlocking(); }));  // And a third.
  gate.AwaitEntered(3);
  EXPECT_EQ(pool.Statistics().threads, 3);
  EXPECT_EQ(pool.Statistics().queued, 2);
  EXPECT_THAT(pool.Submit([] {}), StatusIs(test::kResourceExhausted));
  gate.Open();
  AwaitIdlePool(pool);
  EXPECT_EQ(pool.Statistics().completed, 5);
  EXPECT_EQ(pool.Statistics().rejected, 1);
}

BOBBIN_TEST(PlatformPoolTest, TasksStartInTheOrderTheyCame) {
  PlatformPool pool({.threads = 1, .threads_max = 2, .queue_max = 2});
  Gate first;
  Gate second;
  Log<int> order;
  Occupy(pool, first, 1);
  EXPECT_OK(pool.Submit([&] {
    order.Add(1);
    second.EnterBlocking();
  }));
  EXPECT_OK(pool.Submit([&] { order.Add(2); }));
  EXPECT_OK(pool.Submit([&] { order.Add(3); }));  // Starts a thread, which begins with the oldest.
  second.AwaitEntered(1);
  second.Open();
  AwaitTrue([&] { return order.size() == 3; });
  EXPECT_THAT(order.Take(), ElementsAre(1, 2, 3));
  first.Open();
}

BOBBIN_TEST(PlatformPoolTest, WithoutAQueueEveryTaskNeedsAThread) {
  PlatformPool pool({.threads = 1, .threads_max = 2, .queue_max = 0});
  // A thread that has just ended a body is free at once: calls in turn are never refused.
  for (int i = 0; i < 200; ++i) ASSERT_OK(pool.RunBlocking([] {}));
  EXPECT_EQ(pool.Statistics().threads, 1);
  Gate gate;
  Occupy(pool, gate, 2);
  EXPECT_THAT(pool.Submit([] {}), StatusIs(test::kResourceExhausted));
  gate.Open();
}

BOBBIN_TEST(PlatformPoolTest, ThreadsAboveTheCoreEndAfterTheirKeepAlive) {
  PlatformPool pool(
      {.threads = 1, .threads_max = 4, .queue_max = 0, .keep_alive = std::chrono::milliseconds(5)});
  for (int round = 0; round < 3; ++round) {
    Gate gate;
    Occupy(pool, gate, 4);
    EXPECT_EQ(pool.Statistics().threads, 4);
    gate.Open();
    AwaitTrue([&] { return pool.Statistics().threads == 1; });
    AwaitIdlePool(pool);
  }
  EXPECT_EQ(pool.Statistics().threads_peak, 4);
  EXPECT_EQ(pool.Statistics().completed, 12);
}

BOBBIN_TEST(PlatformPoolTest, KeepAliveAndSubmitRaceLosesNoTask) {
  PlatformPool pool({.threads = 1,
                     .threads_max = 4,
                     .queue_max = 1,
                     .keep_alive = std::chrono::milliseconds(1),
                     .rejection = Rejection::kAbort});
  TaskGroup group;
  std::atomic<int> ran{0};
  std::atomic<int> refused{0};
  for (int caller = 0; caller < 6; ++caller) {
    group.Spawn([&]() -> absl::Status {
      for (int round = 0; round < 60; ++round) {
        const absl::Status status = pool.RunBlocking([&] { ran.fetch_add(1); });
        if (!status.ok()) refused.fetch_add(1);
        if (round % 4 == 0) BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::milliseconds(1)));
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
  EXPECT_EQ(ran.load() + refused.load(), 360);
  EXPECT_EQ(pool.Statistics().completed, ran.load());
}

// --- Rejection.

BOBBIN_TEST(PlatformPoolTest, AbortRefusesAndNamesThePool) {
  PlatformPool pool({.name = "disk", .threads = 1, .queue_max = 1});
  Gate gate;
  Occupy(pool, gate, 1);
  EXPECT_OK(pool.Submit([] {}));
  const absl::Status refused = pool.RunBlocking([] { ADD_FAILURE() << "it was refused"; });
  EXPECT_THAT(refused, StatusIs(test::kResourceExhausted));
  EXPECT_THAT(refused.ToString(), HasSubstr("run on \"disk\": all threads are busy"));
  EXPECT_EQ(pool.Statistics().rejected, 1);
  gate.Open();
}

BOBBIN_TEST(PlatformPoolTest, CallerRunsRefusesAVirtualThread) {
  PlatformPool pool({.threads = 1, .queue_max = 0, .rejection = Rejection::kCallerRuns});
  Gate gate;
  Occupy(pool, gate, 1);
  EXPECT_THAT(pool.RunBlocking([] { ADD_FAILURE() << "on a carrier"; }),
              StatusIs(test::kResourceExhausted));
  EXPECT_THAT(pool.Submit([] { ADD_FAILURE() << "on a carrier"; }),
              StatusIs(test::kResourceExhausted));
  EXPECT_EQ(pool.Statistics().rejected, 2);
  gate.Open();
}

BOBBIN_FOREIGN_TEST(PlatformPoolTest, CallerRunsUsesAThreadThatMayBlock) {
  PlatformPool pool({.threads = 1, .queue_max = 0, .rejection = Rejection::kCallerRuns});
  Gate gate;
  Occupy(pool, gate, 1);
  EXPECT_EQ(pool.RunBlocking([] { return CurrentRole(); }).value(), Role::kForeign);
  Role role = Role::kVirtual;
  EXPECT_OK(pool.Submit([&] { role = CurrentRole(); }));
  EXPECT_EQ(role, Role::kForeign);
  EXPECT_EQ(pool.Statistics().ran_by_caller, 2);
  gate.Open();
}

BOBBIN_TEST(PlatformPoolTest, DiscardDropsTheNewTask) {
  PlatformPool pool({.threads = 1, .queue_max = 0, .rejection = Rejection::kDiscard});
  Gate gate;
  Occupy(pool, gate, 1);
  auto captured = std::make_shared<int>(1);
  EXPECT_OK(pool.Submit([captured] { ADD_FAILURE() << "it was dropped"; }));
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_THAT(pool.RunBlocking([] { ADD_FAILURE() << "it was dropped"; }),
              StatusIs(test::kResourceExhausted));
  EXPECT_EQ(pool.Statistics().discarded, 2);
  gate.Open();
}

BOBBIN_TEST(PlatformPoolTest, DiscardOldestMakesRoomAtTheHead) {
  PlatformPool pool({.threads = 1, .queue_max = 2, .rejection = Rejection::kDiscardOldest});
  Gate gate;
  Log<int> ran;
  Occupy(pool, gate, 1);
  absl::Status dropped;
  VirtualThread oldest = Spawn([&] { dropped = pool.RunBlocking([&] { ran.Add(1); }); });
  AwaitTrue([&] { return pool.Statistics().queued == 1; });
  EXPECT_OK(pool.Submit([&] { ran.Add(2); }));
  EXPECT_OK(pool.Submit([&] { ran.Add(3); }));  // Drops the first.
  EXPECT_OK(oldest.Join());
  EXPECT_THAT(dropped, StatusIs(test::kResourceExhausted));
  gate.Open();
  AwaitIdlePool(pool);
  EXPECT_THAT(ran.Take(), ElementsAre(2, 3));
  EXPECT_EQ(pool.Statistics().discarded, 1);
}

BOBBIN_TEST(PlatformPoolTest, DiscardOldestRefusesWhenNothingIsQueued) {
  PlatformPool pool({.threads = 1, .queue_max = 0, .rejection = Rejection::kDiscardOldest});
  Gate gate;
  Occupy(pool, gate, 1);
  EXPECT_THAT(pool.Submit([] {}), StatusIs(test::kResourceExhausted));
  gate.Open();
}

// --- Cancellation.

BOBBIN_TEST(PlatformPoolTest, CancelWhileQueuedTakesTheBodyBack) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  Occupy(pool, gate, 1);
  VirtualThread caller =
      Spawn([&] { return pool.RunBlocking([] { ADD_FAILURE() << "it was taken back"; }); });
  AwaitTrue([&] { return pool.Statistics().queued == 1; });
  caller.Cancel();
  EXPECT_THAT(caller.Join(), StatusIs(test::kCancelled));
  EXPECT_EQ(pool.Statistics().queued, 0);
  EXPECT_EQ(pool.Statistics().taken_back, 1);
  gate.Open();
}

BOBBIN_TEST(PlatformPoolTest, DeadlineWhileQueuedTakesTheBodyBack) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  Occupy(pool, gate, 1);
  {
    const DeadlineScope scope(std::chrono::milliseconds(5));
    EXPECT_THAT(pool.RunBlocking([] { ADD_FAILURE() << "it was taken back"; }),
                StatusIs(test::kDeadlineExceeded));
    // And from now on nothing is even queued.
    EXPECT_THAT(pool.RunBlocking([] { ADD_FAILURE() << "it was taken back"; }),
                StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_EQ(pool.Statistics().taken_back, 1);
  gate.Open();
}

BOBBIN_TEST(PlatformPoolTest, CancelWhileRunningKeepsTheCallerUntilTheEnd) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  ThreadProbe probe;
  std::atomic<bool> has_returned{false};
  VirtualThread caller = Spawn([&]() -> absl::Status {
    probe.Attach();
    int on_the_callers_stack = 0;
    const absl::Status status = pool.RunBlocking([&] {
      gate.EnterBlocking();
      on_the_callers_stack = 1;
    });
    has_returned = true;
    EXPECT_EQ(on_the_callers_stack, 1);
    EXPECT_THAT(CheckStop(), StatusIs(test::kCancelled));
    return status;
  });
  gate.AwaitEntered(1);
  caller.Cancel();
  // The cancel ends its first wait; it then begins another, which nothing but the body's end can
  // end.
  for (int i = 0; i < 100; ++i) Yield();
  probe.AwaitParked();
  EXPECT_FALSE(has_returned.load());
  gate.Open();
  EXPECT_OK(caller.Join());  // What has been done is reported as done.
}

BOBBIN_TEST(PlatformPoolTest, ARunningBodyCanBeAskedToStop) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  std::atomic<int> requests{0};
  VirtualThread caller = Spawn([&] {
    const Role here = CurrentRole();
    return pool.RunBlocking({.request_stop =
                                 [&] {
                                   EXPECT_EQ(CurrentRole(), here);
                                   requests.fetch_add(1);
                                   gate.Open();
                                 }},
                            [&] { gate.EnterBlocking(); });
  });
  gate.AwaitEntered(1);
  caller.Cancel();
  EXPECT_OK(caller.Join());
  EXPECT_EQ(requests.load(), 1);
}

BOBBIN_TEST(PlatformPoolTest, AShieldedCallerIsNotTakenBack) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  Occupy(pool, gate, 1);
  VirtualThread caller = Spawn([&] {
    const CancelShield shield;
    return pool.RunBlocking([] {});
  });
  AwaitTrue([&] { return pool.Statistics().queued == 1; });
  caller.Cancel();
  for (int i = 0; i < 100; ++i) Yield();
  EXPECT_EQ(pool.Statistics().queued, 1);
  gate.Open();
  EXPECT_OK(caller.Join());
}

BOBBIN_TEST(PlatformPoolTest, CancelAndStartRaceRunsTheBodyOrTakesItBack) {
  PlatformPool pool({.threads = 2});
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> ran{0};
    VirtualThread caller = Spawn([&] { return pool.RunBlocking([&] { ran.fetch_add(1); }); });
    if (round % 3 == 0) Yield();
    caller.Cancel();
    const absl::Status status = caller.Join();
    if (status.ok()) {
      EXPECT_EQ(ran.load(), 1);
    } else {
      EXPECT_THAT(status, StatusIs(test::kCancelled));
      EXPECT_EQ(ran.load(), 0);
    }
  }
}

// --- Submit.

BOBBIN_TEST(PlatformPoolTest, SubmitDoesNotWait) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  auto captured = std::make_shared<int>(1);
  EXPECT_OK(pool.Submit([&, captured] { gate.EnterBlocking(); }));
  gate.AwaitEntered(1);
  EXPECT_EQ(captured.use_count(), 2);
  gate.Open();
  AwaitTrue([&] { return pool.Statistics().completed == 1; });
  EXPECT_EQ(captured.use_count(), 1);  // What a body captured ends before it counts as completed.
}

BOBBIN_TEST(PlatformPoolTest, TenThousandQueuedBodiesAllRun) {
  PlatformPool pool({.threads = 2, .queue_max = 10'000});
  std::atomic<int> ran{0};
  Gate gate;
  Occupy(pool, gate, 2);
  for (int i = 0; i < 10'000; ++i) ASSERT_OK(pool.Submit([&] { ran.fetch_add(1); }));
  EXPECT_THAT(pool.Submit([] {}), StatusIs(test::kResourceExhausted));
  gate.Open();
  AwaitIdlePool(pool);
  EXPECT_EQ(ran.load(), 10'000);
}

BOBBIN_TEST(PlatformPoolTest, StatisticsTellHowLongTasksWaitedAndRan) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  Occupy(pool, gate, 1);
  EXPECT_OK(pool.Submit([] {}));
  EXPECT_OK(SleepFor(std::chrono::milliseconds(3)));
  gate.Open();
  AwaitTrue([&] { return pool.Statistics().completed == 2; });
  EXPECT_GE(pool.Statistics().wait_total, std::chrono::milliseconds(3));
  EXPECT_GE(pool.Statistics().wait_max, std::chrono::milliseconds(3));
  EXPECT_LE(pool.Statistics().wait_max, pool.Statistics().wait_total);
  EXPECT_GE(pool.Statistics().run_total, std::chrono::milliseconds(3));
}

// Bodies that run, throw, wait in the queue, are taken back, refused: at rest every number is what
// it was made of.
BOBBIN_TEST(PlatformPoolTest, NoGaugeDriftsWhateverHappens) {
  PlatformPool pool(
      {.threads = 2, .threads_max = 4, .queue_max = 8, .keep_alive = std::chrono::milliseconds(1)});
  std::atomic<uint64_t> ran{0};
  std::atomic<uint64_t> threw{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> taken_back{0};
  TaskGroup callers({.placement = Placement::kSpread});
  for (int i = 0; i < 32; ++i) {
    callers.Spawn([&, own = random().Fork()]() mutable {
      for (int round = 0; round < test::Rounds(40); ++round) {
        const DeadlineScope scope(std::chrono::microseconds(own.Below(400)));
        const bool does_throw = own.OneIn(4);
        const uint64_t spin = own.Below(20'000);
        try {
          const absl::Status status = pool.RunBlocking([&] {
            test::Spin(spin);
            ++ran;
            if (does_throw) throw std::runtime_error("out");
          });
          if (absl::IsResourceExhausted(status)) {
            ++refused;
          } else if (!status.ok()) {
            ++taken_back;
          }
        } catch (const std::runtime_error&) {
          ++threw;
        }
        if (own.OneIn(4)) Yield();
      }
    });
  }
  EXPECT_OK(callers.Wait());
  AwaitTrue([&] { return pool.Statistics().active == 0 && pool.Statistics().threads <= 2; });
  const PlatformPoolStatistics now = pool.Statistics();
  EXPECT_EQ(now.queued, 0);
  EXPECT_LE(now.threads_peak, 4);
  EXPECT_EQ(now.completed, ran);
  EXPECT_EQ(now.rejected, refused);
  EXPECT_LE(now.taken_back, taken_back);
  const auto calls = static_cast<uint64_t>(32 * test::Rounds(40));
  EXPECT_EQ(now.completed + now.rejected + taken_back, calls);
}

// --- The end.

BOBBIN_TEST(PlatformPoolTest, ShutdownRunsWhatIsQueuedAndRefusesNewTasks) {
  PlatformPool pool({.name = "disk", .threads = 2});
  std::atomic<int> ran{0};
  for (int i = 0; i < 50; ++i) EXPECT_OK(pool.Submit([&] { ran.fetch_add(1); }));
  EXPECT_OK(pool.Shutdown());
  EXPECT_EQ(ran.load(), 50);
  EXPECT_EQ(pool.Statistics().threads, 0);
  EXPECT_THAT(pool.Submit([] {}), StatusIs(test::kUnavailable));
  const absl::Status refused = pool.RunBlocking([] {});
  EXPECT_THAT(refused.ToString(), HasSubstr("run on \"disk\": the pool is shut down"));
  EXPECT_OK(pool.Shutdown());  // Again.
}

BOBBIN_TEST(PlatformPoolTest, ShutdownWaitsForARunningBody) {
  PlatformPool pool({.threads = 1});
  Gate gate;
  VirtualThread caller = Spawn([&] { return pool.RunBlocking([&] { gate.EnterBlocking(); }); });
  gate.AwaitEntered(1);
  ThreadProbe probe;
  VirtualThread closer = Spawn([&] {
    probe.Attach();
    return pool.Shutdown();
  });
  probe.AwaitParked();
  closer.Cancel();  // Which a shutdown ignores.
  VirtualThread second = Spawn([&] { return pool.Shutdown(); });
  for (int i = 0; i < 50; ++i) Yield();
  gate.Open();
  EXPECT_OK(closer.Join());
  EXPECT_OK(second.Join());
  EXPECT_OK(caller.Join());
}

BOBBIN_TEST(PlatformPoolTest, ShutdownNamesAStuckBodyAndAbandonsItsThread) {
  // Shared with the abandoned thread.
  auto gate = std::make_shared<Gate>();
  auto has_ended = std::make_shared<std::atomic<bool>>(false);
  absl::Status dropped;
  {
    PlatformPool pool(
        {.name = "disk", .threads = 1, .shutdown_budget = std::chrono::milliseconds(20)});
    VirtualThread stuck = Spawn({.name = "uploader"}, [&pool, gate] {
      return pool.RunBlocking([&] { gate->EnterBlocking(); });
    });
    gate->AwaitEntered(1);
    VirtualThread queued = Spawn([&] { dropped = pool.RunBlocking([] {}); });
    AwaitTrue([&] { return pool.Statistics().queued == 1; });

    const MonotonicTime begin = MonotonicNow();
    const absl::Status status = pool.Shutdown();
    EXPECT_LT(MonotonicNow() - begin, std::chrono::seconds(2));
    EXPECT_THAT(status, StatusIs(test::kDeadlineExceeded));
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr("shut down \"disk\": 1 still running"),
                                         HasSubstr("\"disk-1\" for "),
                                         HasSubstr("called by virtual thread \"uploader\" (id "),
                                         HasSubstr("1 queued were dropped")));
    EXPECT_EQ(pool.Shutdown(), status);
    EXPECT_OK(queued.Join());
    EXPECT_THAT(dropped, StatusIs(test::kUnavailable));

    gate->Open();
    EXPECT_OK(stuck.Join());  // Its body may use its stack: it was waited for all the same.
    // An abandoned thread finds its pool, even when the handle has gone.
    *has_ended = true;
  }
  EXPECT_TRUE(*has_ended);
}

BOBBIN_TEST(PlatformPoolTest, AnAbandonedThreadOutlivesThePool) {
  auto gate = std::make_shared<Gate>();
  auto captured = std::make_shared<int>(1);
  {
    PlatformPool pool({.threads = 1, .shutdown_budget = std::chrono::milliseconds(5)});
    EXPECT_OK(pool.Submit([gate, captured] { gate->EnterBlocking(); }));
    gate->AwaitEntered(1);
    EXPECT_THAT(pool.Shutdown(), StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_EQ(captured.use_count(), 2);
  gate->Open();
  AwaitTrue([&] { return captured.use_count() == 1; });
}

BOBBIN_TEST(PlatformPoolTest, ValuesOfAThreadEndWithIt) {
  static std::atomic<int> live{0};
  struct Counted {
    Counted() { live.fetch_add(1); }
    ~Counted() { live.fetch_sub(1); }
  };
  static VthreadLocal<Counted> counted;
  {
    PlatformPool pool({.threads = 2});
    EXPECT_OK(pool.RunBlocking([] { counted.Get(); }));
    EXPECT_EQ(live.load(), 1);
  }
  EXPECT_EQ(live.load(), 0);
}

// --- Misuse.

// The threads of other tests must not be there when the dying one is forked.
class PlatformPoolDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Ends the process after it has printed what a pool says when no thread can be started: there is no
// address space left for a stack.
[[noreturn]] void UseAPoolWithoutThreads() {
  PlatformPool pool({.name = "disk"});
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{4} << 20);
  const rlimit limit{bytes, bytes};
  BOBBIN_CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  const absl::Status ran = pool.RunBlocking([] {});
  const absl::Status submitted = pool.Submit([] {});
  std::cerr << ran << "; " << submitted << "; threads " << pool.Statistics().threads;
  _exit(0);
}

TEST_F(PlatformPoolDeathTest, ASystemThatGivesNoThreadIsAnError) {
  if (test::kUnderAddressSanitizer || test::kUnderThreadSanitizer) {
    GTEST_SKIP() << "the sanitizer needs the address space";
  }
  EXPECT_EXIT(UseAPoolWithoutThreads(), testing::ExitedWithCode(0),
              "RESOURCE_EXHAUSTED: run on \"disk\": the system gives no thread; "
              "RESOURCE_EXHAUSTED: .*; threads 0");
}

TEST_F(PlatformPoolDeathTest, ABodyOfSubmitThatThrowsEndsTheProcess) {
  EXPECT_DEATH(
      {
        PlatformPool pool;
        EXPECT_OK(pool.Submit([] { throw std::runtime_error("lost"); }));
        EXPECT_OK(pool.Shutdown());
      },
      "lost");
}

TEST_F(PlatformPoolDeathTest, ShuttingDownFromAnOwnThreadAborts) {
  EXPECT_DEATH(
      {
        PlatformPool pool;
        EXPECT_OK(pool.RunBlocking([&] { return pool.Shutdown(); }));
      },
      "shut down by one of its own threads");
}

TEST_F(PlatformPoolDeathTest, OptionsAreChecked) {
  EXPECT_DEATH(PlatformPool({.threads = 0}), "at least one thread");
  EXPECT_DEATH(PlatformPool({.threads = 3, .threads_max = 2}), "smaller than threads");
  EXPECT_DEATH(PlatformPool({.threads = PlatformPool::kThreadsMax + 1}), "too many");
}

}  // namespace
}  // namespace bobbin
