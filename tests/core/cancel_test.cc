// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/cancel.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/condition.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/status.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"

// These tests lock and unlock as no program should: the compiler's analysis has nothing to say
// here.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

BOBBIN_TEST(CancelTest, ItIsAStateThatEveryFurtherWaitAnswers) {
  ThreadProbe probe;
  VirtualThread thread = Spawn([&] {
    Event never;
    probe.Attach();
    EXPECT_THAT(never.Wait(), StatusIs(kCancelled));
    EXPECT_THAT(never.Wait(), StatusIs(kCancelled));
    EXPECT_THAT(CheckStop(), StatusIs(kCancelled));
    Semaphore semaphore(0);
    EXPECT_THAT(semaphore.Acquire(), StatusIs(kCancelled));
    WaitGroup wait_group;
    wait_group.Add();
    EXPECT_THAT(wait_group.Wait(), StatusIs(kCancelled));
    auto [sender, receiver] = MakeChannel<int>();
    EXPECT_THAT(receiver.Receive(), StatusIs(kCancelled));
    EXPECT_THAT(sender.Send(1), StatusIs(kCancelled));
    Mutex mutex;
    Condition condition;
    const MutexLock lock(mutex);
    EXPECT_THAT(condition.Wait(mutex), StatusIs(kCancelled));
    EXPECT_THAT(SleepFor(hours(1)), StatusIs(kCancelled));
  });
  probe.AwaitParked();
  thread.Cancel();
  thread.Cancel();
  ASSERT_OK(thread.Join());
}

// One wait of each kind is ended while it lasts.
BOBBIN_TEST(CancelTest, ItEndsEachKindOfWait) {
  struct Everything {
    Event event;
    Semaphore semaphore{0};
    WaitGroup wait_group;
    Mutex mutex;
    Condition condition;
    Mutex held;
    ChannelEnds<int> channel = MakeChannel<int>();
  } all;
  all.wait_group.Add();
  all.held.lock();
  absl::Status (*const waits[])(Everything&) = {
      [](Everything& a) { return a.event.Wait(); },
      [](Everything& a) { return a.event.WaitUntil(Deadline::After(hours(1))); },
      [](Everything& a) { return a.semaphore.Acquire(); },
      [](Everything& a) { return a.semaphore.AcquireUntil(1, Deadline::After(hours(1))); },
      [](Everything& a) { return a.wait_group.Wait(); },
      [](Everything& a) { return a.wait_group.WaitUntil(Deadline::After(hours(1))); },
      [](Everything& a) { return a.held.LockUntil(Deadline::Never()); },
      [](Everything& a) { return a.channel.receiver.Receive().status(); },
      [](Everything& a) { return a.channel.receiver.ReceiveUntil(Deadline::Never()).status(); },
      [](Everything& a) {
        const MutexLock lock(a.mutex);
        return a.condition.Wait(a.mutex);
      },
      [](Everything& a) {
        const MutexLock lock(a.mutex);
        return a.condition.WaitUntil(a.mutex, Deadline::After(hours(1)));
      },
      [](Everything&) { return SleepFor(hours(1)); },
      [](Everything&) {
        // On the precise timer; who watches may be late for one of them.
        while (true) BOBBIN_RETURN_IF_ERROR(SleepFor(milliseconds(9)));
      },
      [](Everything&) { return Spawn([] { return SleepFor(hours(1)); }).Join(); },
      [](Everything&) {
        TaskGroup group;
        group.Spawn([] { return SleepFor(hours(1)); });
        return group.Wait();
      },
  };
  for (const auto wait : waits) {
    ThreadProbe probe;
    VirtualThread thread = Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
      probe.Attach();
      return wait(all);
    });
    probe.AwaitParked();
    thread.Cancel();
    EXPECT_THAT(thread.Join(), StatusIs(kCancelled)) << "wait " << &wait - &waits[0];
  }
  ThreadProbe probe;
  VirtualThread sender = Spawn([&] {
    probe.Attach();
    return all.channel.sender.Send(1);
  });
  probe.AwaitParked();
  sender.Cancel();
  EXPECT_THAT(sender.Join(), StatusIs(kCancelled));
  all.held.unlock();
}

// Nothing is thrown to end a thread: nobody can swallow it, and nothing that it passes terminates.
BOBBIN_TEST(CancelTest, NeitherCatchAllNorNoexceptIsInItsWay) {
  struct Witness {
    explicit Witness(bool& told) : has_ended(told) {}
    ~Witness() { has_ended = true; }
    bool& has_ended;
  };
  Event never;
  ThreadProbe probe;
  bool is_unwound = false;
  VirtualThread thread = Spawn([&]() -> absl::Status {
    const Witness witness(is_unwound);
    try {
      const auto wait = [&]() noexcept {
        probe.Attach();
        return never.Wait();
      };
      return wait();
    } catch (...) {
      return absl::InternalError("something was thrown");
    }
  });
  probe.AwaitParked();
  thread.Cancel();
  EXPECT_THAT(thread.Join(), StatusIs(kCancelled));
  EXPECT_TRUE(is_unwound);
}

BOBBIN_TEST(CancelTest, ABodyThatWasCancelledBeforeItStartsIsEnteredAndSeesItAtItsFirstWait) {
  for (int round = 0; round < Rounds(500); ++round) {
    bool is_entered = false;
    Event never;
    VirtualThread thread = Spawn({.placement = Placement::kSpread}, [&] {
      is_entered = true;
      return never.Wait();
    });
    thread.Cancel();
    ASSERT_THAT(thread.Join(), StatusIs(kCancelled));
    ASSERT_TRUE(is_entered);
  }
}

BOBBIN_TEST(CancelTest, ItIsSeenWhereverItMeetsAThreadThatBeginsToWait) {
  for (int round = 0; round < Rounds(2000); ++round) {
    Event never;
    std::atomic<bool> is_running{false};
    VirtualThread thread = Spawn({.placement = Placement::kSpread}, [&] {
      is_running = true;
      return never.Wait();
    });
    if (round % 2 == 0) AwaitTrue([&] { return is_running.load(); });
    thread.Cancel();
    ASSERT_THAT(thread.Join(), StatusIs(kCancelled));
  }
}

BOBBIN_TEST(CancelTest, AShieldHidesTheRequestUntilItEnds) {
  Event inside;
  ThreadProbe probe;
  VirtualThread thread = Spawn([&] {
    {
      const CancelShield outer;
      const CancelShield inner;
      probe.Attach();
      EXPECT_OK(inside.Wait());
      EXPECT_OK(CheckStop());
      EXPECT_OK(SleepFor(milliseconds(1)));
    }
    Event never;
    EXPECT_THAT(never.Wait(), StatusIs(kCancelled));
  });
  probe.AwaitParked();
  thread.Cancel();
  ASSERT_OK(SleepFor(milliseconds(2)));
  EXPECT_TRUE(probe.IsParked());
  inside.Set();
  ASSERT_OK(thread.Join());
}

BOBBIN_TEST(CancelTest, OnlyTheOneThatIsMeantIsCancelled) {
  Event event;
  ThreadProbe probes[3];
  VirtualThread threads[3];
  for (int i = 0; i < 3; ++i) {
    threads[i] = Spawn({.placement = Placement::kSpread}, [&, i] {
      probes[i].Attach();
      return event.Wait();
    });
  }
  for (const ThreadProbe& probe : probes) probe.AwaitParked();
  threads[1].Cancel();
  EXPECT_THAT(threads[1].Join(), StatusIs(kCancelled));
  EXPECT_TRUE(probes[0].IsParked());
  EXPECT_TRUE(probes[2].IsParked());
  event.Set();
  EXPECT_OK(threads[0].Join());
  EXPECT_OK(threads[2].Join());
}

// A block is used anew at once: a cancel of the old thread must not reach the new one.
BOBBIN_TEST(CancelTest, ALateCancelDoesNotReachTheNextUserOfTheBlock) {
  for (int round = 0; round < Rounds(2000); ++round) {
    Event event;
    ThreadProbe probe;
    VirtualThread first = Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
      probe.Attach();
      return event.Wait();
    });
    probe.AwaitParked();
    first.Cancel();  // May still be on its way when the thread has ended.
    event.Set();
    EXPECT_THAT(first.Join().code(), testing::AnyOf(kOk, kCancelled));
    VirtualThread second = Spawn({.placement = Placement::kSpread}, []() -> absl::Status {
      Yield();
      return CheckStop();
    });
    ASSERT_OK(second.Join());
  }
}

TEST(CancelTest, AForeignThreadIsNotAskedToStop) {
  EXPECT_OK(CheckStop());
  const CancelShield shield;
  EXPECT_OK(CheckStop());
}

// Nothing is forced on a thread that ignores the request; the shutdown names it and goes
// on.
TEST(CancelDeathTest, ShutdownNamesWhoIgnoresTheRequestAndEndsInTime) {
  EXPECT_EXIT(
      {
        auto* const runtime = new Runtime({.carriers = 2, .shutdown_budget = milliseconds(200)});
        std::atomic<bool> is_running{false};
        runtime
            ->Spawn({.name = "stubborn"},
                    [&is_running] {
                      is_running = true;
                      while (true) {
                        try {
                          static_cast<void>(SleepFor(milliseconds(1)));
                          const CancelShield shield;
                          static_cast<void>(SleepFor(milliseconds(1)));
                        } catch (...) {
                        }
                      }
                    })
            .Detach();
        AwaitTrue([&] { return is_running.load(); });
        const MonotonicTime begin = MonotonicNow();
        const absl::Status ended = runtime->Shutdown();
        const bool is_in_time = MonotonicNow() - begin < std::chrono::seconds(10);
        std::fprintf(stderr, "%s, %s\n", ended.ToString().c_str(), is_in_time ? "in time" : "late");
        std::fflush(stderr);
        std::_Exit(7);
      },
      testing::ExitedWithCode(7), "DEADLINE_EXCEEDED.*stubborn.*in time");
}

TEST(CancelShieldDeathTest, EndingAThreadInsideAShieldAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        std::unique_ptr<CancelShield> leaked;
        static_cast<void>(runtime.Spawn([&] { leaked = std::make_unique<CancelShield>(); }).Join());
      },
      "a virtual thread ends inside a scope that it began");
}

}  // namespace
}  // namespace bobbin::test
