// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/os_threads.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Counts the destructors that run as the threads end.
struct Witness {
  explicit Witness(std::atomic<int>& counter) : ended(counter) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { ended.fetch_add(1); }
  std::atomic<int>& ended;
};

TEST(ShutdownTest, ThousandsOfParkedThreadsEndWithTheirDestructors) {
  const int threads = test::kUnderSanitizer ? 2'000 : 10'000;
  for (const int carriers : {1, 2, 4}) {
    std::atomic<int> ended{0};
    std::atomic<int> begun{0};
    Event never;
    Semaphore no_permits(0);
    Runtime runtime({.carriers = carriers});
    for (int i = 0; i < threads; ++i) {
      runtime
          .Spawn({.placement = Placement::kSpread},
                 [&, i] {
                   const Witness witness(ended);
                   begun.fetch_add(1);
                   if (i % 3 == 0) return never.Wait();
                   if (i % 3 == 1) return no_permits.Acquire();
                   return SleepFor(hours(1));
                 })
          .Detach();
    }
    while (begun.load() != threads) std::this_thread::yield();
    EXPECT_OK(runtime.Shutdown());
    EXPECT_EQ(ended.load(), threads);
    EXPECT_EQ(runtime.Statistics().live(), 0u);
  }
}

TEST(ShutdownTest, ThreadsThatHaveNotStartedAreEnteredAndSeeTheRequest) {
  std::atomic<int> cancelled{0};
  Runtime runtime({.carriers = 1});
  std::atomic<bool> goes_on{true};
  std::atomic<bool> is_busy{false};
  runtime
      .Spawn([&] {
        is_busy.store(true);
        while (goes_on.load()) {
        }
      })
      .Detach();
  while (!is_busy.load()) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) {
    runtime
        .Spawn([&] {
          if (absl::IsCancelled(SleepFor(hours(1)))) cancelled.fetch_add(1);
        })
        .Detach();
  }
  test::OsThreads later;
  later.Start([&] {
    std::this_thread::sleep_for(milliseconds(20));
    goes_on.store(false);
  });
  EXPECT_OK(runtime.Shutdown());
  EXPECT_EQ(cancelled.load(), 100);
}

TEST(ShutdownTest, WhatCancelledThreadsSpawnEndsToo) {
  std::atomic<int> ended{0};
  Runtime runtime({.carriers = 2});
  std::atomic<bool> is_parked{false};
  runtime
      .Spawn([&] {
        is_parked.store(true);
        static_cast<void>(SleepFor(hours(1)));
        TaskGroup farewell;
        farewell.Spawn([&] {
          static_cast<void>(SleepFor(hours(1)));
          ended.fetch_add(1);
        });
        static_cast<void>(farewell.Wait());
      })
      .Detach();
  while (!is_parked.load()) std::this_thread::yield();
  EXPECT_OK(runtime.Shutdown());
  EXPECT_EQ(ended.load(), 1);
}

TEST(ShutdownTest, WhoDoesNotEndIsNamedAndTheBudgetIsKept) {
  // Abandoned carriers go on using them.
  static Mutex& held = *new Mutex();
  static auto* const runtime = new Runtime({.carriers = 2, .shutdown_budget = milliseconds(100)});
  std::atomic<bool> is_stuck{false};
  held.lock();
  runtime
      ->Spawn({.name = "stubborn"},
              [&] {
                is_stuck.store(true);
                const MutexLock never(held);
              })
      .Detach();
  while (!is_stuck.load()) std::this_thread::yield();
  const MonotonicTime start = MonotonicNow();
  const absl::Status ended = runtime->Shutdown();
  EXPECT_TRUE(absl::IsDeadlineExceeded(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), testing::HasSubstr("\"stubborn\""));
  EXPECT_GE(MonotonicNow() - start, milliseconds(100));
  EXPECT_LT(MonotonicNow() - start, seconds(10));
  EXPECT_EQ(runtime->Shutdown(), ended);
  held.unlock();
}

TEST(ShutdownTest, ALoopThatSwallowsTheRequestIsNamed) {
  static auto* const runtime = new Runtime({.carriers = 1, .shutdown_budget = milliseconds(100)});
  runtime
      ->Spawn({.name = "deaf"},
              [] {
                while (true) {
                  static_cast<void>(SleepFor(milliseconds(1)));
                  Yield();
                }
              })
      .Detach();
  const absl::Status ended = runtime->Shutdown();
  EXPECT_TRUE(absl::IsDeadlineExceeded(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), testing::HasSubstr("\"deaf\""));
}

TEST(ShutdownTest, SpawnsRaceWithIt) {
  for (int round = 0; round < test::Rounds(200); ++round) {
    Runtime runtime({.carriers = 2});
    std::atomic<int> spawned{0};
    runtime
        .Spawn([&] {
          struct Chain {
            std::atomic<int>& spawned;
            void operator()() const {
              spawned.fetch_add(1);
              if (SleepFor(std::chrono::microseconds(1)).ok()) Spawn(*this).Detach();
            }
          };
          for (int i = 0; i < 4; ++i) Spawn(Chain{spawned}).Detach();
        })
        .Detach();
    while (spawned.load() == 0) std::this_thread::yield();
    ASSERT_OK(runtime.Shutdown());
    ASSERT_EQ(runtime.Statistics().live(), 0u);
  }
}

}  // namespace
}  // namespace bobbin
