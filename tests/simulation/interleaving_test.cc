// SPDX-License-Identifier: Apache-2.0
//
// The small cases of everything that two threads can do to each other here: each in all its
// orders, up to a bound, and the larger ones in many. The mutants of this folder are caught by
// these.

#include <chrono>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/channel.h>
#include <bobbin/core/condition.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/biased_lock.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>
#include <bobbin/testing/atomic.h>
#include <bobbin/testing/os_thread.h>
#include <bobbin/testing/plain.h>
#include <bobbin/testing/simulate.h>

#include "sched/src/task_deque.h"

namespace bobbin::testing {
namespace {

using std::chrono::milliseconds;

void ExpectExplored(const ExplorationOptions& options, absl::AnyInvocable<void()> body) {
  const SimulationReport report = Explore(options, std::move(body));
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.is_complete) << report.runs << " runs were not enough";
}

void ExpectSimulated(const SimulationOptions& options, absl::AnyInvocable<void()> body) {
  EXPECT_TRUE(Simulate(options, std::move(body)).ok());
}

// --- The primitives, between OS threads: every order.

TEST(InterleavingTest, AnEventIsSetWhileSomebodyBeginsToWait) {
  ExpectExplored({.preemptions_max = 3}, [] {
    Plain<int> value(0);
    auto event = std::make_unique<Event>();
    OsThread setter([&value, &event = *event] {
      value.Write(1);
      event.Set();
    });
    BOBBIN_CHECK(event->Wait().ok(), "nobody stops the wait");
    event = nullptr;  // Whoever has seen it set may destroy it.
    BOBBIN_CHECK(value.Read() == 1, "the value");
  });
}

TEST(InterleavingTest, ADeadlinePassesWhileAnEventIsSet) {
  ExpectExplored({.preemptions_max = 2, .delays_max = 1}, [] {
    Event event;
    OsThread setter([&] { event.Set(); });
    const absl::Status status = event.WaitUntil(Deadline::After(milliseconds(1)));
    BOBBIN_CHECK(status.ok() || absl::IsDeadlineExceeded(status), "one of the two");
    BOBBIN_CHECK(event.Wait().ok(), "a wait whose deadline has passed leaves nothing behind");
  });
}

// With an owner that gets it for itself meanwhile.
TEST(InterleavingTest, ABiasedLockIsHeldByOne) {
  ExpectExplored({.preemptions_max = 2}, [] {
    bobbin::internal::BiasedLock lock;
    lock.AllowBias();
    Plain<int> inside(0);
    const auto enter = [&inside] { inside.Write(inside.Read() + 1); };
    OsThread other([&] {
      lock.Lock();
      enter();
      lock.Unlock();
    });
    for (int i = 0; i < 4; ++i) {
      if (lock.TryEnterAsOwner()) {
        enter();
        lock.LeaveAsOwner();
      } else {
        lock.LockAsOwner();
        enter();
        lock.Unlock();
      }
    }
    other.Join();
    BOBBIN_CHECK(inside.Read() == 5, "one was lost");
  });
}

TEST(InterleavingTest, AMutexIsHandedOver) {
  ExpectExplored({.preemptions_max = 2}, [] {
    Mutex mutex;
    Plain<int> inside(0);
    const auto enter = [&] {
      const MutexLock lock(mutex);
      inside.Write(inside.Read() + 1);
    };
    OsThread first(enter);
    OsThread second(enter);
    enter();
    first.Join();
    second.Join();
    BOBBIN_CHECK(inside.Read() == 3, "one was lost");
  });
}

TEST(InterleavingTest, AMutexIsDestroyedByItsLastHolder) {
  ExpectExplored({.preemptions_max = 3}, [] {
    auto mutex = std::make_unique<Mutex>();
    Plain<bool> is_over(false);
    OsThread other([&is_over, &mutex = *mutex] {
      const MutexLock lock(mutex);
      is_over.Write(true);
    });
    while (true) {
      mutex->lock();
      const bool ends = is_over.Read();
      mutex->unlock();
      if (ends) break;
      Yield();
    }
    mutex = nullptr;
  });
}

TEST(InterleavingTest, ALockWithADeadlineIsHandedOver) {
  ExpectExplored({.preemptions_max = 2, .delays_max = 1}, [] {
    Mutex mutex;
    Plain<int> inside(0);
    OsThread other([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (!mutex.LockUntil(Deadline::After(milliseconds(1))).ok()) return;
      inside.Write(inside.Read() + 1);
      mutex.unlock();
    });
    {
      const MutexLock lock(mutex);
      inside.Write(inside.Read() + 1);
    }
    const MutexLock lock(mutex);
    inside.Write(inside.Read() + 1);
  });
}

TEST(InterleavingTest, ASemaphoreServesALargeRequestFirst) {
  ExpectExplored({.preemptions_max = 1, .delays_max = 1}, [] {
    Semaphore permits(1);
    OsThread large([&] {
      if (permits.AcquireUntil(2, Deadline::After(milliseconds(1))).ok()) permits.Release(2);
    });
    OsThread small([&] { BOBBIN_CHECK(permits.Acquire().ok(), "nobody stops the wait"); });
    permits.Release();
    large.Join();
    small.Join();
    BOBBIN_CHECK(permits.TryAcquire(), "a permit got lost");
  });
}

TEST(InterleavingTest, ASemaphoreServesTheSmallWhenTheLargeGivesUp) {
  ExpectExplored({.preemptions_max = 2, .delays_max = 1}, [] {
    Semaphore permits(1);
    OsThread large([&] {
      const absl::Status status = permits.AcquireUntil(2, Deadline::After(milliseconds(1)));
      BOBBIN_CHECK(absl::IsDeadlineExceeded(status), "there are not so many");
    });
    BOBBIN_CHECK(permits.Acquire().ok(), "nobody stops the wait");
  });
}

TEST(InterleavingTest, ASemaphoreIsDestroyedByWhoWasServed) {
  ExpectExplored({.preemptions_max = 3}, [] {
    auto permits = std::make_unique<Semaphore>(0);
    OsThread giver([&permits = *permits] { permits.Release(); });
    BOBBIN_CHECK(permits->Acquire().ok(), "nobody stops the wait");
    permits = nullptr;
  });
}

TEST(InterleavingTest, AWaitGroupIsDestroyedByWhoWaited) {
  ExpectExplored({.preemptions_max = 2}, [] {
    auto parts = std::make_unique<WaitGroup>();
    Plain<int> first_part(0);
    parts->Add(2);
    OsThread first([&first_part, &parts = *parts] {
      first_part.Write(1);
      parts.Done();
    });
    OsThread second([&parts = *parts] { parts.Done(); });
    BOBBIN_CHECK(parts->Wait().ok(), "nobody stops the wait");
    parts = nullptr;
    BOBBIN_CHECK(first_part.Read() == 1, "the part");
  });
}

TEST(InterleavingTest, AConditionIsNotifiedWhileSomebodyBeginsToWait) {
  ExpectExplored({.preemptions_max = 2}, [] {
    Mutex mutex;
    Condition condition;
    bool is_ready = false;
    OsThread notifier([&] {
      {
        const MutexLock lock(mutex);
        is_ready = true;
      }
      condition.NotifyOne();
    });
    const MutexLock lock(mutex);
    while (!is_ready) BOBBIN_CHECK(condition.Wait(mutex).ok(), "nobody stops the wait");
  });
}

TEST(InterleavingTest, AChannelHandsOverAndCloses) {
  for (const size_t capacity : {0U, 1U}) {
    ExpectExplored({.preemptions_max = 2}, [capacity] {
      auto ends = MakeChannel<std::unique_ptr<Plain<int>>>({.capacity = capacity});
      OsThread sender([out = std::move(ends.sender)]() mutable {
        for (int i = 0; i < 2; ++i) {
          BOBBIN_CHECK(out.Send(std::make_unique<Plain<int>>(i)).ok(), "somebody receives");
        }
      });
      for (int i = 0; i < 2; ++i) {
        auto received = ends.receiver.Receive();
        BOBBIN_CHECK(received.ok() && (*received)->Read() == i, "in the order of sending");
      }
      BOBBIN_CHECK(absl::IsOutOfRange(ends.receiver.Receive().status()), "the sender has left");
    });
  }
}

TEST(InterleavingTest, AChannelClosesUnderASenderThatWaits) {
  ExpectExplored({.preemptions_max = 3}, [] {
    auto ends = MakeChannel<int>({.capacity = 0});
    OsThread sender([out = std::move(ends.sender)]() mutable {
      BOBBIN_CHECK(absl::IsFailedPrecondition(out.Send(1)), "nobody receives");
    });
    { const Receiver<int> gone = std::move(ends.receiver); }
    sender.Join();
  });
}

// --- The scheduler's parts.

TEST(InterleavingTest, ATaskIsTakenOnce) {
  ExpectExplored({.preemptions_max = 3, .old_reads_max = 2}, [] {
    bobbin::internal::TaskDeque deque(true);
    bobbin::internal::Task tasks[2];
    for (auto& task : tasks) deque.Push(task);
    int stolen = 0;
    OsThread thief([&] {
      for (int i = 0; i < 2; ++i) stolen += deque.Steal() != nullptr ? 1 : 0;
    });
    int taken = 0;
    while (deque.TakeNewest() != nullptr) ++taken;
    thief.Join();
    BOBBIN_CHECK(taken + stolen == 2, "taken twice, or lost");
  });
}

TEST(InterleavingTest, AWakeFromElsewhereMeetsACarrierThatFallsAsleep) {
  ExpectExplored({.carriers = 1, .preemptions_max = 2}, [] {
    Event event;
    OsThread setter([&] { event.Set(); });
    BOBBIN_CHECK(event.Wait().ok(), "nobody stops the wait");
    setter.Join();
  });
}

TEST(InterleavingTest, AWakeFromElsewhereMeetsATimer) {
  ExpectExplored({.carriers = 1, .preemptions_max = 1, .delays_max = 1}, [] {
    Event event;
    OsThread setter([&] { event.Set(); });
    const absl::Status status = event.WaitUntil(Deadline::After(milliseconds(2)));
    BOBBIN_CHECK(status.ok() || absl::IsDeadlineExceeded(status), "one of the two");
    setter.Join();
  });
}

// --- Runtimes: many orders.

TEST(InterleavingTest, WakesBetweenCarriersAreNotLost) {
  for (const int carriers : {2, 3}) {
    ExpectSimulated({.seeds = 2000, .carriers = carriers}, [] {
      Semaphore ping(0);
      Semaphore pong(0);
      TaskGroup group({.placement = Placement::kSpread});
      for (int i = 0; i < 3; ++i) {
        group.Spawn([&] {
          BOBBIN_CHECK(ping.Acquire().ok(), "nobody stops the wait");
          pong.Release();
        });
      }
      for (int i = 0; i < 3; ++i) {
        ping.Release();
        BOBBIN_CHECK(pong.Acquire().ok(), "nobody stops the wait");
      }
      BOBBIN_CHECK(group.Wait().ok(), "nobody fails");
    });
  }
}

TEST(InterleavingTest, ACancelIsNeverLost) {
  ExpectSimulated({.seeds = 3000, .carriers = 2}, [] {
    Event never;
    VirtualThread waiting = Spawn({.placement = Placement::kSpread}, [&] { return never.Wait(); });
    VirtualThread sleeping =
        Spawn({.placement = Placement::kSpread}, [] { return SleepUntil(Deadline::Never()); });
    waiting.Cancel();
    sleeping.Cancel();
    BOBBIN_CHECK(absl::IsCancelled(waiting.Join()), "cancelled");
    BOBBIN_CHECK(absl::IsCancelled(sleeping.Join()), "cancelled");
  });
}

TEST(InterleavingTest, NotifyDeadlineAndCancelEndAWaitOnce) {
  ExpectSimulated({.seeds = 3000, .carriers = 2}, [] {
    Event event;
    TaskGroup group({.on_failure = OnFailure::kLog, .placement = Placement::kSpread});
    VirtualThread waiting = Spawn({.placement = Placement::kSpread}, [&] {
      const absl::Status status = event.WaitUntil(Deadline::After(milliseconds(1)));
      BOBBIN_CHECK(status.ok() || absl::IsDeadlineExceeded(status) || absl::IsCancelled(status),
                   "one of the three");
      return absl::OkStatus();
    });
    VirtualThread setting = Spawn({.placement = Placement::kSpread}, [&] {
      static_cast<void>(SleepFor(milliseconds(1)));
      event.Set();
    });
    static_cast<void>(SleepFor(milliseconds(1)));
    waiting.Cancel();
    BOBBIN_CHECK(waiting.Join().ok(), "ended");
    BOBBIN_CHECK(setting.Join().ok(), "ended");
  });
}

// Threads that migrate: ready on one carrier, taken by another one, while somebody ends or would
// end their wait.

TEST(InterleavingTest, AMigrantIsCancelledWhileItIsTaken) {
  ExpectSimulated({.seeds = 4000, .carriers = 2}, [] {
    Event go;
    Event never;
    Event has_begun;
    VirtualThread moving = Spawn({.placement = Placement::kSpread, .migrates = true}, [&] {
      has_begun.Set();
      static_cast<void>(go.Wait());
      Yield();
      return never.Wait();
    });
    BOBBIN_CHECK(has_begun.Wait().ok(), "nobody stops the wait");
    OsThread canceller([&] { moving.Cancel(); });
    go.Set();
    canceller.Join();
    BOBBIN_CHECK(absl::IsCancelled(moving.Join()), "cancelled");
  });
}

TEST(InterleavingTest, AMigrantIsWokenWhileACancelLiesWhereItWas) {
  ExpectSimulated({.seeds = 2000, .carriers = 2}, [] {
    Event has_begun;
    Event go;
    Event is_there;
    Event then;
    VirtualThread moving = Spawn({.migrates = true}, [&] {
      const CancelShield shield;
      has_begun.Set();
      BOBBIN_CHECK(go.Wait().ok(), "nothing ends a shielded wait but its notify");
      is_there.Set();
      BOBBIN_CHECK(then.Wait().ok(), "nothing ends a shielded wait but its notify");
    });
    BOBBIN_CHECK(has_begun.Wait().ok(), "nobody stops the wait");
    OsThread canceller([&] {
      moving.Cancel();
      BOBBIN_CHECK(is_there.Wait().ok(), "nobody stops the wait");
    });
    go.Set();
    canceller.Join();  // This carrier does not come round meanwhile.
    then.Set();
    BOBBIN_CHECK(moving.Join().ok(), "both waits were ended");
  });
}

TEST(InterleavingTest, AMigrantTakesItsDeadlinesAlong) {
  ExpectSimulated({.seeds = 3000, .carriers = 2}, [] {
    Semaphore permits(0);
    VirtualThread moving = Spawn({.placement = Placement::kSpread, .migrates = true}, [&] {
      const DeadlineScope outer(milliseconds(3));
      for (int i = 0; i < 2; ++i) {
        const DeadlineScope inner(milliseconds(1));
        static_cast<void>(permits.Acquire());
        Yield();
      }
      return permits.Acquire(100);
    });
    static_cast<void>(SleepFor(milliseconds(1)));
    permits.Release();
    BOBBIN_CHECK(absl::IsDeadlineExceeded(moving.Join()), "there are not so many");
  });
}

TEST(InterleavingTest, NotifyDeadlineAndCancelEndAWaitOfAMigrantOnce) {
  ExpectSimulated({.seeds = 3000, .carriers = 3}, [] {
    Semaphore permits(0);
    std::vector<VirtualThread> waiting;
    for (int i = 0; i < 2; ++i) {
      waiting.push_back(Spawn({.placement = Placement::kSpread, .migrates = true}, [&] {
        for (int turn = 0; turn < 2; ++turn) {
          const DeadlineScope scope(milliseconds(1));
          if (permits.Acquire().ok()) permits.Release();
          Yield();
        }
      }));
    }
    permits.Release();
    static_cast<void>(SleepFor(milliseconds(1)));
    for (VirtualThread& thread : waiting) thread.Cancel();
    for (VirtualThread& thread : waiting) BOBBIN_CHECK(thread.Join().ok(), "ended");
    BOBBIN_CHECK(permits.TryAcquire() && !permits.TryAcquire(), "the one permit is there");
  });
}

// The smallest case, in all its orders.
TEST(InterleavingTest, AReadyMigrantIsTakenOnceAndHearsOfItsCancel) {
  ExpectExplored({.carriers = 2, .preemptions_max = 1}, [] {
    Event never;
    Event has_begun;
    VirtualThread moving = Spawn({.migrates = true}, [&] {
      has_begun.Set();
      Yield();
      return never.Wait();
    });
    BOBBIN_CHECK(has_begun.Wait().ok(), "nobody stops the wait");
    moving.Cancel();
    BOBBIN_CHECK(absl::IsCancelled(moving.Join()), "cancelled");
  });
}

TEST(InterleavingTest, NewThreadsFromElsewhereAreNotForgotten) {
  ExpectSimulated({.seeds = 2000, .carriers = 0}, [] {
    Runtime runtime({.carriers = 2});
    for (int i = 0; i < 4; ++i) BOBBIN_CHECK(runtime.Spawn([] {}).Join().ok(), "ended");
    for (int i = 0; i < 3; ++i) runtime.Spawn([] { Yield(); }).Detach();
    BOBBIN_CHECK(runtime.AwaitIdle().ok(), "nothing ends the wait");
    BOBBIN_CHECK(runtime.Statistics().live() == 0, "idle");
  });
}

TEST(InterleavingTest, ASystemThatGivesNoStackIsWaitedFor) {
  ExpectSimulated({.seeds = 300,
                   .carriers = 2,
                   .faults = {{bobbin::internal::faults::kNoStack.name, 0.2},
                              {bobbin::internal::faults::kSpuriousWake.name, 0.2},
                              {bobbin::internal::faults::kWeakExchange.name, 0.2}}},
                  [] {
                    TaskGroup group({.placement = Placement::kSpread});
                    for (int i = 0; i < 6; ++i) group.Spawn([] { Yield(); });
                    BOBBIN_CHECK(group.Wait().ok(), "nobody fails");
                  });
}

}  // namespace
}  // namespace bobbin::testing
