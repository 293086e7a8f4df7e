// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/condition.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>

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

// These tests lock and unlock as no program should: the compiler's analysis has nothing to say
// here.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A bounded queue as one writes it with a mutex and two conditions.
class BoundedQueue {
 public:
  void Push(int value) {
    const MutexLock lock(mutex_);
    EXPECT_OK(has_room_.Wait(mutex_, [this] { return values_.size() < kCapacity; }));
    values_.push_back(value);
    has_value_.NotifyOne();
  }
  int Pop() {
    const MutexLock lock(mutex_);
    EXPECT_OK(has_value_.Wait(mutex_, [this] { return !values_.empty(); }));
    const int value = values_.front();
    values_.pop_front();
    has_room_.NotifyOne();
    return value;
  }

 private:
  static constexpr size_t kCapacity = 4;
  Mutex mutex_;
  Condition has_room_;
  Condition has_value_;
  std::deque<int> values_;
};

BOBBIN_TEST(ConditionTest, ABoundedQueueLosesNothing) {
  BoundedQueue queue;
  std::atomic<int64_t> sum{0};
  const int values = Rounds(1500);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 3; ++i) {
    group.Spawn([&] {
      for (int value = 1; value <= values; ++value) queue.Push(value);
    });
    group.Spawn([&] {
      for (int round = 0; round < values; ++round) sum += queue.Pop();
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(sum, int64_t{3} * values * (values + 1) / 2);
}

BOBBIN_FOREIGN_TEST(ConditionTest, VirtualAndForeignThreadsShareABoundedQueue) {
  BoundedQueue queue;
  std::atomic<int64_t> sum{0};
  const int values = Rounds(1500);
  {
    Crew crew(runtime());
    for (const Kind kind : {Kind::kVirtual, Kind::kForeign}) {
      crew.Start(kind, [&] {
        for (int value = 1; value <= values; ++value) queue.Push(value);
      });
      crew.Start(kind, [&] {
        for (int round = 0; round < values; ++round) sum += queue.Pop();
      });
    }
  }
  EXPECT_EQ(sum, int64_t{2} * values * (values + 1) / 2);
}

BOBBIN_TEST(ConditionTest, NotifyOneUnparksTheLongestWaiterAndNobodyElse) {
  Mutex mutex;
  Condition condition;
  Log<int> order;
  ThreadProbe probes[3];
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 3; ++i) {
    group.Spawn([&, i]() -> absl::Status {
      const MutexLock lock(mutex);
      probes[i].Attach();
      BOBBIN_RETURN_IF_ERROR(condition.Wait(mutex));
      EXPECT_TRUE(mutex.IsHeldByCurrent());
      order.Add(i);
      return absl::OkStatus();
    });
    probes[i].AwaitParked();
  }
  for (size_t i = 0; i < 3; ++i) {
    condition.NotifyOne();
    AwaitTrue([&] { return order.size() == i + 1; });
    for (size_t other = i + 1; other < 3; ++other) EXPECT_TRUE(probes[other].IsParked());
  }
  ASSERT_OK(group.Wait());
  EXPECT_THAT(order.Take(), testing::ElementsAre(0, 1, 2));
}

BOBBIN_TEST(ConditionTest, NotifyAllUnparksEveryone) {
  Mutex mutex;
  Condition condition;
  bool is_open = false;
  ThreadProbe probes[5];
  TaskGroup group({.placement = Placement::kSpread});
  for (ThreadProbe& probe : probes) {
    group.Spawn([&] {
      const MutexLock lock(mutex);
      probe.Attach();
      return condition.Wait(mutex, [&] { return is_open; });
    });
    probe.AwaitParked();
  }
  {
    const MutexLock lock(mutex);
    is_open = true;
    condition.NotifyAll();
  }
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(ConditionTest, ANotifyWithoutWaitersIsNotKept) {
  Mutex mutex;
  Condition condition;
  condition.NotifyOne();
  condition.NotifyAll();
  const MutexLock lock(mutex);
  EXPECT_THAT(condition.WaitUntil(mutex, Deadline::After(milliseconds(1))),
              StatusIs(kDeadlineExceeded));
}

BOBBIN_TEST(ConditionTest, TheMutexIsHeldAgainAlsoAfterADeadlineAndACancel) {
  Mutex mutex;
  Condition condition;
  {
    const MutexLock lock(mutex);
    EXPECT_THAT(condition.WaitUntil(mutex, Deadline::After(milliseconds(1))),
                StatusIs(kDeadlineExceeded));
    EXPECT_TRUE(mutex.IsHeldByCurrent());
  }
  ThreadProbe probe;
  VirtualThread waiter = Spawn([&] {
    const MutexLock lock(mutex);
    probe.Attach();
    EXPECT_THAT(condition.Wait(mutex), StatusIs(kCancelled));
    EXPECT_TRUE(mutex.IsHeldByCurrent());
    // From now on it does not even give the mutex up.
    EXPECT_THAT(condition.Wait(mutex), StatusIs(kCancelled));
    EXPECT_TRUE(mutex.IsHeldByCurrent());
  });
  probe.AwaitParked();
  mutex.lock();
  waiter.Cancel();
  // Its wait for the mutex is shielded: the cancel that it already has cannot end it.
  ASSERT_OK(SleepFor(milliseconds(2)));
  EXPECT_FALSE(waiter.IsDone());
  EXPECT_TRUE(mutex.IsHeldByCurrent());
  mutex.unlock();
  ASSERT_OK(waiter.Join());
}

BOBBIN_TEST(ConditionTest, APredicateThatIsTrueWinsOverADeadline) {
  Mutex mutex;
  Condition condition;
  const MutexLock lock(mutex);
  int looks = 0;
  // It turns true while the deadline passes, and nobody notifies.
  EXPECT_OK(
      condition.WaitUntil(mutex, Deadline::After(milliseconds(1)), [&] { return ++looks == 2; }));
  EXPECT_EQ(looks, 2);
  EXPECT_THAT(condition.WaitUntil(mutex, Deadline::After(milliseconds(1)), [] { return false; }),
              StatusIs(kDeadlineExceeded));
  const NoSuspendScope scope;
  EXPECT_OK(condition.Wait(mutex, [] { return true; }));
}

// A notify goes to somebody who still waits, or is not spent.
BOBBIN_TEST(ConditionTest, DeadlineAndNotifyRaceNeverLosesANotify) {
  Mutex mutex;
  Condition condition;
  const int rounds = Rounds(300);
  for (int round = 0; round < rounds; ++round) {
    absl::Status impatient_end;
    ThreadProbe probes[2];
    VirtualThread impatient = Spawn({.placement = Placement::kSpread}, [&] {
      const MutexLock lock(mutex);
      probes[0].Attach();
      impatient_end = condition.WaitUntil(mutex, Deadline::After(microseconds(200)));
    });
    VirtualThread patient = Spawn({.placement = Placement::kSpread}, [&] {
      const MutexLock lock(mutex);
      probes[1].Attach();
      return condition.Wait(mutex);
    });
    probes[1].AwaitParked();
    ASSERT_OK(SleepFor(microseconds(random().Between(1, 250))));
    {
      const MutexLock lock(mutex);
      condition.NotifyOne();
    }
    ASSERT_OK(impatient.Join());
    if (impatient_end.ok()) {
      // The one notify was the impatient one's.
      EXPECT_TRUE(probes[1].IsParked());
      const MutexLock lock(mutex);
      condition.NotifyOne();
    }
    ASSERT_OK(patient.Join());
  }
}

// A notify that comes right after the mutex was given up finds the waiter in the queue.
BOBBIN_FOREIGN_TEST(ConditionTest, NoNotifyIsMissedByAThreadThatBeginsToWait) {
  const int rounds = Rounds(10'000);
  Mutex mutex;
  Condition changed;
  int turn = 0;
  const auto play = [&](int own_turn, Random own) {
    for (int round = 0; round < rounds; ++round) {
      const MutexLock lock(mutex);
      ASSERT_OK(changed.WaitUntil(mutex, Deadline::After(std::chrono::seconds(10)),
                                  [&] { return turn == own_turn; }));
      Spin(own.Below(100));
      turn = 1 - own_turn;
      changed.NotifyOne();
    }
  };
  Crew crew(runtime());
  crew.Start(Kind::kVirtual, [&, own = random().Fork()] { play(0, own); });
  crew.Start(Kind::kForeign, [&, own = random().Fork()] { play(1, own); });
}

// A notify does not touch what it has let somebody destroy.
BOBBIN_FOREIGN_TEST(ConditionTest, WhoIsNotifiedMayDestroyIt) {
  struct Shared {
    Mutex mutex;
    std::optional<Condition> condition{std::in_place};
    bool is_ready = false;
  };
  const int rounds = Rounds(1000);
  for (int round = 0; round < rounds; ++round) {
    Shared shared;
    Crew crew(runtime());
    crew.Start(Kind::kVirtual, [&] {
      shared.mutex.lock();
      shared.is_ready = true;
      shared.condition->NotifyAll();
      shared.mutex.unlock();
    });
    crew.Start(Kind::kVirtual, [&] {
      shared.mutex.lock();
      EXPECT_OK(shared.condition->Wait(shared.mutex, [&] { return shared.is_ready; }));
      shared.condition.reset();
      shared.mutex.unlock();
    });
    crew.Join();
  }
}

TEST(ConditionDeathTest, WaitingWithoutTheMutexAborts) {
  Mutex mutex;
  Condition condition;
  EXPECT_DEATH([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { static_cast<void>(condition.Wait(mutex)); }(),
               "a thread waits with a mutex that it does not hold");
}

TEST(ConditionDeathTest, DestroyingItWithWaitersAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        Mutex mutex;
        auto condition = std::make_unique<Condition>();
        ThreadProbe probe;
        VirtualThread waiter = runtime.Spawn([&] {
          const MutexLock lock(mutex);
          probe.Attach();
          return condition->Wait(mutex);
        });
        probe.AwaitParked();
        condition.reset();
      },
      "a condition is destroyed while threads wait for it");
}

}  // namespace
}  // namespace bobbin::test
