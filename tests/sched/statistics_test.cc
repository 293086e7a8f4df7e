// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/statistics.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

uint64_t GaugesOf(const RuntimeStatistics& now) {
  return now.fresh + now.ready + now.running + now.parked;
}

TEST(RuntimeStatisticsTest, EveryThreadIsCountedAsWhatItIs) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    VirtualThread main = runtime.Spawn([&] {
      Event go;
      TaskGroup group;
      for (int i = 0; i < 5; ++i) group.Spawn([&] { return go.Wait(); });
      RuntimeStatistics now = runtime.Statistics();
      EXPECT_EQ(now.fresh, 5);
      EXPECT_EQ(now.running, 1);
      EXPECT_EQ(now.parked + now.ready, 0);

      while (now.fresh != 0) {
        Yield();
        now = runtime.Statistics();
      }
      EXPECT_EQ(now.parked, 5);
      EXPECT_EQ(now.running, 1);
      EXPECT_EQ(now.ready, 0);

      go.Set();
      now = runtime.Statistics();
      EXPECT_EQ(now.ready, 5);
      EXPECT_EQ(now.running, 1);
      EXPECT_EQ(now.parked, 0);
      EXPECT_EQ(now.live(), 6);

      EXPECT_OK(group.Wait());
      now = runtime.Statistics();
      EXPECT_EQ(GaugesOf(now), 1);
      EXPECT_EQ(now.ended, 5);
    });
    EXPECT_OK(main.Join());
  });
}

TEST(RuntimeStatisticsTest, EachWaitIsOneParkAndOneWake) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    constexpr uint64_t kRounds = 1000;
    RuntimeStatistics before;
    RuntimeStatistics after;
    VirtualThread main = runtime.Spawn([&] {
      Semaphore ping(0);
      Semaphore pong(0);
      VirtualThread echo = Spawn([&] {
        while (ping.Acquire().ok()) pong.Release();
      });
      AwaitTrue([&] { return runtime.Statistics().parked == 1; });
      before = runtime.Statistics();
      for (uint64_t i = 0; i < kRounds; ++i) {
        ping.Release();
        EXPECT_OK(pong.Acquire());
      }
      after = runtime.Statistics();
      echo.Cancel();
      EXPECT_OK(echo.Join());
    });
    EXPECT_OK(main.Join());
    EXPECT_EQ(after.parks - before.parks, 2 * kRounds);
    EXPECT_EQ(after.wakes - before.wakes, 2 * kRounds);
    EXPECT_EQ(after.switches - before.switches, 2 * kRounds);
    EXPECT_EQ(after.remote_wakes, before.remote_wakes);
    EXPECT_EQ(after.yields, before.yields);
    EXPECT_GE(before.yields, 1);
  });
}

BOBBIN_FOREIGN_TEST(RuntimeStatisticsTest, WakesFromElsewhereAreCountedApart) {
  Semaphore permits(0);
  ThreadProbe probe;
  VirtualThread thread = runtime().Spawn([&] {
    probe.Attach();
    return permits.Acquire();
  });
  AwaitTrue([&] { return probe.IsParked() && runtime().Statistics().parked == 1; });
  EXPECT_EQ(runtime().Statistics().remote_wakes, 0);
  permits.Release();
  EXPECT_OK(thread.Join());
  EXPECT_EQ(runtime().Statistics().remote_wakes, 1);
}

// All that can happen to a thread, at random, watched from outside.
BOBBIN_FOREIGN_TEST(RuntimeStatisticsTest, NoGaugeDriftsWhateverHappens) {
  const int threads = Rounds(2000);
  Semaphore permits(1);
  Event never;
  std::atomic<bool> is_over{false};
  OsThreads watchers;
  watchers.Start([&] {
    while (!is_over.load()) {
      const RuntimeStatistics now = runtime().Statistics();
      // A difference that goes below zero is larger than anything there is.
      const auto most = static_cast<uint64_t>(threads) * 100;
      EXPECT_LE(now.fresh, most);
      EXPECT_LE(now.ready, most);
      EXPECT_LE(now.parked, most);
      EXPECT_LE(now.running, static_cast<uint64_t>(carriers()));
      EXPECT_LE(now.live(), most);
    }
  });
  Random seeds = random().Fork();
  for (int i = 0; i < threads; ++i) {
    VirtualThread thread = runtime().Spawn(
        {.placement = seeds.OneIn(2) ? Placement::kSpread : Placement::kHere},
        [&, random = seeds.Fork()]() mutable {
          for (int step = 0; step < 8; ++step) {
            const DeadlineScope scope(microseconds(random.Below(500)));
            switch (random.Below(6)) {
              case 0:
                Yield();
                break;
              case 1:
                static_cast<void>(SleepFor(microseconds(random.Below(300))));
                break;
              case 2:
                if (permits.Acquire().ok()) permits.Release();
                break;
              case 3:
                static_cast<void>(never.Wait());
                break;
              case 4:
                static_cast<void>(Spawn([] { Yield(); }).Join());
                break;
              case 5: {
                VirtualThread child = Spawn([&never] { static_cast<void>(never.Wait()); });
                if (random.OneIn(2)) Yield();
                break;  // Its destructor cancels.
              }
            }
          }
        });
    if (seeds.OneIn(4)) thread.Cancel();
    std::move(thread).Detach();
  }
  EXPECT_OK(runtime().AwaitIdle());
  is_over.store(true);
  watchers.Join();
  AwaitTrue([&] { return GaugesOf(runtime().Statistics()) == 0; });
  const RuntimeStatistics now = runtime().Statistics();
  EXPECT_EQ(now.parks, now.wakes);
  EXPECT_EQ(now.spawned, now.ended);
}

[[gnu::noinline]] void UseStack(size_t bytes) {
  auto* const area = static_cast<char*>(__builtin_alloca(bytes));
  std::memset(area, 1, bytes);
  __asm__ __volatile__("" : : "r"(area) : "memory");
}

TEST(RuntimeStatisticsTest, StacksAreMeasured) {
  Runtime runtime({.carriers = 1});
  constexpr int kThreads = 200;
  constexpr size_t kDeep = size_t{100} << 10;
  Event release;
  std::atomic<int> parked{0};
  std::vector<VirtualThread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(runtime.Spawn([&, i] {
      if (i == kThreads / 2) UseStack(kDeep);
      parked.fetch_add(1);
      return release.Wait();
    }));
  }
  while (parked.load() != kThreads) std::this_thread::yield();
  const StackUsage usage = runtime.MeasureStacks();
  const RuntimeStatistics now = runtime.Statistics();
  EXPECT_GE(now.stacks, size_t{kThreads});
  EXPECT_EQ(usage.reserved_bytes, now.stacks * now.stack_bytes);
  EXPECT_GE(usage.deepest_bytes, kDeep);
  EXPECT_LT(usage.deepest_bytes, now.stack_bytes);
  EXPECT_GE(usage.resident_bytes, kThreads * size_t{4096} + kDeep);
  if (!kUnderSanitizer) {
    EXPECT_LT(usage.resident_bytes, (kThreads + 1) * size_t{12 << 10} + kDeep);
  }
  release.Set();
  for (VirtualThread& thread : threads) EXPECT_OK(thread.Join());
}

TEST(RuntimeStatisticsTest, TextTellsWhatThereIs) {
  Runtime runtime({.carriers = 1});
  Event release;
  ThreadProbe probe;
  VirtualThread thread = runtime.Spawn([&]() -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(RunBlocking([] {}));
    probe.Attach();
    return release.Wait();
  });
  // While the carrier leaves the thread, one snapshot may know of it and the next not yet.
  RuntimeStatistics now;
  AwaitTrue([&] {
    now = runtime.Statistics();
    return probe.IsParked() && now.parked == 1 && now.fresh + now.ready + now.running == 0;
  });
  const std::string text = now.Text();
  EXPECT_THAT(text, testing::HasSubstr("1 live = 0 fresh + 0 ready + 0 running + 1 parked"));
  EXPECT_THAT(text, testing::HasSubstr("1 completed"));
  release.Set();
  EXPECT_OK(thread.Join());
}

}  // namespace
}  // namespace bobbin::test
