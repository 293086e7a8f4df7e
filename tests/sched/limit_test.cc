// SPDX-License-Identifier: Apache-2.0
//
// What happens when there are as many virtual threads as there may be, or as there are stacks for.

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>

#include "tests/support/os_threads.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;

TEST(LiveLimitTest, SpawnWaitsUntilAnotherThreadHasEnded) {
  Runtime runtime({.carriers = 2, .virtual_threads_max = 3});
  Event release;
  std::atomic<int> begun{0};
  auto body = [&] {
    begun.fetch_add(1);
    return release.Wait();
  };
  ThreadProbe probe;
  VirtualThread spawner = runtime.Spawn([&] {
    VirtualThread one = Spawn(body);
    VirtualThread two = Spawn(body);
    probe.Attach();
    VirtualThread three = Spawn(body);
    EXPECT_OK(one.Join());
    EXPECT_OK(two.Join());
    EXPECT_OK(three.Join());
  });
  AwaitTrue([&] { return begun.load() == 2 && probe.IsParked(); });
  EXPECT_EQ(runtime.Statistics().live(), 3);
  EXPECT_EQ(runtime.Statistics().limited, 1);
  EXPECT_EQ(runtime.Statistics().waiting_for_limit, 1);
  release.Set();
  EXPECT_OK(spawner.Join());
  EXPECT_EQ(runtime.Statistics().waiting_for_limit, 0);
  EXPECT_EQ(begun.load(), 3);
}

TEST(LiveLimitTest, ForeignThreadsBlockThere) {
  Runtime runtime({.carriers = 1, .virtual_threads_max = 1});
  for (int i = 0; i < Rounds(2000); ++i) runtime.Spawn([] { Yield(); }).Detach();
  EXPECT_OK(runtime.AwaitIdle());
  EXPECT_EQ(runtime.Statistics().ended, static_cast<uint64_t>(Rounds(2000)));
}

// Whoever spawns, from wherever, there are never more; and all get their turn.
TEST(LiveLimitTest, ThereAreNeverMoreThanTheLimit) {
  constexpr int kLimit = 50;
  const int each = Rounds(4000);
  for (const int carriers : {1, 2, 4}) {
    Runtime runtime({.carriers = carriers, .virtual_threads_max = kLimit});
    std::atomic<int> live{0};
    std::atomic<int> most{0};
    std::atomic<int> ended{0};
    auto body = [&] {
      const int now = live.fetch_add(1) + 1;
      int seen = most.load();
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      Yield();
      live.fetch_sub(1);
      ended.fetch_add(1);
    };
    OsThreads spawners;
    for (int s = 0; s < 3; ++s) {
      spawners.Start([&] {
        for (int i = 0; i < each; ++i) {
          runtime.Spawn({.placement = Placement::kSpread}, body).Detach();
        }
      });
    }
    VirtualThread inside = runtime.Spawn([&] {
      for (int i = 0; i < each; ++i) Spawn(body).Detach();
    });
    EXPECT_OK(inside.Join());
    spawners.Join();
    EXPECT_OK(runtime.AwaitIdle());
    EXPECT_EQ(ended.load(), 4 * each);
    EXPECT_LE(most.load(), kLimit);
    EXPECT_EQ(runtime.Statistics().live(), 0);
  }
}

TEST(LiveLimitTest, SpawnersAreServedFirstComeFirstServed) {
  constexpr size_t kSpawners = 5;
  Runtime runtime({.carriers = 1, .virtual_threads_max = kSpawners + 1});
  std::vector<size_t> order;
  Event release;
  std::vector<Event> gates(kSpawners);
  std::vector<ThreadProbe> probes(kSpawners);
  VirtualThread holder = runtime.Spawn([&] { return release.Wait(); });
  std::vector<VirtualThread> spawners;
  for (size_t i = 0; i < kSpawners; ++i) {
    spawners.push_back(runtime.Spawn([&, i] {
      EXPECT_OK(gates[i].Wait());
      probes[i].Attach();
      Spawn([] {}).Detach();
      order.push_back(i);
    }));
  }
  // All are there, so nobody may start another one. They come in this order:
  for (const size_t i : {3U, 0U, 4U, 1U, 2U}) {
    gates[i].Set();
    probes[i].AwaitParked();
  }
  release.Set();
  for (VirtualThread& spawner : spawners) EXPECT_OK(spawner.Join());
  EXPECT_OK(holder.Join());
  EXPECT_THAT(order, testing::ElementsAre(3, 0, 4, 1, 2));
}

TEST(LiveLimitTest, NeitherACancelNorADeadlineEndsTheWait) {
  Runtime runtime({.carriers = 1, .virtual_threads_max = 2});
  Event release;
  ThreadProbe probe;
  std::atomic<bool> has_run{false};
  VirtualThread holder = runtime.Spawn([&] { return release.Wait(); });
  VirtualThread spawner = runtime.Spawn([&] {
    const DeadlineScope passed(std::chrono::nanoseconds(1));
    probe.Attach();
    VirtualThread child = Spawn([&] { has_run.store(true); });
    const CancelShield shield;
    return child.Join();
  });
  probe.AwaitParked();
  spawner.Cancel();
  for (int i = 0; i < 100; ++i) Yield();
  EXPECT_FALSE(has_run.load());
  release.Set();
  EXPECT_OK(spawner.Join());
  EXPECT_OK(holder.Join());
  EXPECT_TRUE(has_run.load());
}

TEST(LiveLimitTest, AShutdownLiftsTheLimit) {
  Runtime runtime({.carriers = 2, .virtual_threads_max = 4});
  // Each holds the place that the next one waits for.
  Event all_there;
  std::atomic<int> waiting{0};
  for (int i = 0; i < 4; ++i) {
    runtime
        .Spawn([&] {
          EXPECT_OK(all_there.Wait());
          waiting.fetch_add(1);
          static_cast<void>(Spawn([] { return SleepFor(std::chrono::hours(1)); }).Join());
        })
        .Detach();
  }
  all_there.Set();
  AwaitTrue([&] { return waiting.load() == 4 && runtime.Statistics().parked == 4; });
  EXPECT_OK(runtime.Shutdown());
  EXPECT_EQ(runtime.Statistics().live(), 0);
}

TEST(LiveLimitTest, AThreadThatHasEndedMakesRoomBeforeItIsJoined) {
  Runtime runtime({.carriers = 1, .virtual_threads_max = 1});
  std::vector<VirtualThread> ended;
  for (int i = 0; i < 3000; ++i) ended.push_back(runtime.Spawn([] {}));
  for (VirtualThread& thread : ended) EXPECT_OK(thread.Join());
}

TEST(LiveLimitDeathTest, ThreadsThatAllWaitForRoomAreADeadlockThatIsNamed) {
  if (kUnderThreadSanitizer) GTEST_SKIP() << "its own OS thread might wake somebody";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        RuntimeOptions options;
        options.carriers = 1;
        options.virtual_threads_max = 2;
        options.deadlock.action = OnDeadlock::kAbort;
        Runtime runtime(std::move(options));
        VirtualThread parent = runtime.Spawn([] {
          static_cast<void>(Spawn([] { static_cast<void>(Spawn([] {}).Join()); }).Join());
        });
        static_cast<void>(parent.Join());
      },
      "1 wait in Spawn: the limit of 2 live virtual threads is reached");
}

// In a process of its own, with little address space: how many threads have begun, and what was
// told.
int BeginAllThereIsSpaceFor() {
  rlimit space{};
  space.rlim_cur = space.rlim_max = size_t{768} << 20;
  if (setrlimit(RLIMIT_AS, &space) != 0) return 1;
  Runtime runtime({.carriers = 1});
  int code = 0;
  VirtualThread main = runtime.Spawn([&] {
    Event release;
    int begun = 0;
    std::vector<VirtualThread> threads;
    absl::Status refused;
    while (refused.ok()) {
      absl::StatusOr<VirtualThread> thread = TrySpawn({}, [&] {
        ++begun;
        return release.Wait();
      });
      refused = thread.status();
      if (thread.ok()) threads.push_back(*std::move(thread));
      Yield();
    }
    std::fprintf(stderr, "%d begun, then %s\n", begun, refused.ToString().c_str());
    // Who was accepted and has no stack yet is told apart, and gets that of one that ends.
    const RuntimeStatistics now = runtime.Statistics();
    if (now.without_stack != threads.size() - static_cast<size_t>(begun)) code = 2;
    release.Set();
    for (VirtualThread& thread : threads) {
      if (!thread.Join().ok()) code = 3;
    }
    if (begun != static_cast<int>(threads.size())) code = 4;
    if (!TrySpawn({}, [] {}).ok()) code = 5;
  });
  return main.Join().ok() ? code : 6;
}

TEST(AddressSpaceDeathTest, WhereThereIsNoneForStacksTrySpawnSaysSo) {
  if (kUnderSanitizer) GTEST_SKIP() << "sanitizers need the address space for themselves";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(_exit(BeginAllThereIsSpaceFor()), testing::ExitedWithCode(0),
              "[0-9][0-9][0-9][0-9] begun, then RESOURCE_EXHAUSTED: spawn: no address space for "
              "more than [0-9]* stacks of 256 KiB: raise RLIMIT_AS");
}

}  // namespace
}  // namespace bobbin::test
