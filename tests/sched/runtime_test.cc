// SPDX-License-Identifier: Apache-2.0

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/role.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/housekeeping.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

namespace bobbin {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RunProgramTest, ItReturnsZeroForOkAndOneForAFailure) {
  EXPECT_EQ(bobbin::Run([] { return absl::OkStatus(); }, {.carriers = 1}), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(bobbin::Run([] { return absl::InternalError("no luck"); }, {.carriers = 1}), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("no luck"));
}

TEST(RunProgramTest, ItWaitsForWhatMainHasDetached) {
  std::atomic<bool> has_ended{false};
  EXPECT_EQ(bobbin::Run(
                [&] {
                  Spawn([&] {
                    static_cast<void>(SleepFor(milliseconds(20)));
                    has_ended.store(true);
                  }).Detach();
                  return absl::OkStatus();
                },
                {.carriers = 2}),
            0);
  EXPECT_TRUE(has_ended.load());
}

TEST(RuntimeTest, APollerThatCannotStartIsToldAndLeavesNothingBehind) {
  class NoPoller final : public Poller {
   public:
    absl::Status Start() override { return absl::UnavailableError("poller: not today"); }
    void Poll() noexcept override {}
    void PollUntil(Deadline) noexcept override {}
    void Wake() noexcept override {}
    std::string_view name() const noexcept override { return "none"; }
  };
  const auto runtime =
      Runtime::Create({.carriers = 2, .poller = [] { return std::make_unique<NoPoller>(); }});
  EXPECT_EQ(runtime.status().message(), "poller: not today");
}

// Whoever wakes a thread from outside may be slower to let go than the runtime to end.
TEST(RuntimeTest, ItMayEndWhileAnOutsiderStillWakesItsLastThread) {
  Runtime other({.carriers = 1});
  const int rounds = test::Rounds(400);
  for (int round = 0; round < rounds; ++round) {
    auto runtime = std::make_unique<Runtime>(RuntimeOptions{.carriers = 1});
    Event go;
    VirtualThread last = runtime->Spawn([&] { return go.Wait(); });
    std::optional<VirtualThread> neighbour;
    test::OsThreads foreign;
    if (round % 2 == 0) {
      foreign.Start([&] { go.Set(); });
    } else {
      neighbour = other.Spawn([&] { go.Set(); });
    }
    EXPECT_OK(last.Join());
    runtime.reset();
  }
}

TEST(RuntimeTest, SeveralLiveSideBySide) {
  Runtime one({.carriers = 1});
  Runtime two({.carriers = 2});
  Semaphore ping(0);
  Semaphore pong(0);
  const int rounds = test::Rounds(2000);
  VirtualThread left = one.Spawn([&]() -> absl::Status {
    for (int i = 0; i < rounds; ++i) {
      ping.Release();
      BOBBIN_RETURN_IF_ERROR(pong.Acquire());
    }
    return absl::OkStatus();
  });
  VirtualThread right = two.Spawn([&]() -> absl::Status {
    for (int i = 0; i < rounds; ++i) {
      BOBBIN_RETURN_IF_ERROR(ping.Acquire());
      pong.Release();
    }
    return absl::OkStatus();
  });
  EXPECT_OK(left.Join());
  EXPECT_OK(right.Join());
}

TEST(RuntimeTest, OneAfterAnotherWithChangingNumbersOfCarriers) {
  for (int round = 0; round < test::Rounds(100); ++round) {
    Runtime runtime({.carriers = 1 + round % 4});
    std::atomic<int> ran{0};
    std::vector<VirtualThread> threads;
    for (int i = 0; i < 10; ++i) threads.push_back(runtime.Spawn([&ran] { ran.fetch_add(1); }));
    for (VirtualThread& thread : threads) ASSERT_OK(thread.Join());
    ASSERT_EQ(ran.load(), 10);
    EXPECT_OK(runtime.AwaitIdle());
    ASSERT_EQ(runtime.Statistics().live(), 0u);
  }
}

TEST(RuntimeTest, AnIdleOneUsesNoCpu) {
  Runtime runtime({.carriers = 4});
  std::vector<VirtualThread> parked;
  Event never;
  for (int i = 0; i < 1000; ++i) {
    parked.push_back(
        runtime.Spawn({.placement = Placement::kSpread}, [&] { return never.Wait(); }));
  }
  auto cpu = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  // It comes to rest, the monitor included: a second without turns, and without CPU time worth the
  // name. Other processes may delay that, so it has a while.
  bool is_at_rest = false;
  for (int second = 0; second < 15 && !is_at_rest; ++second) {
    const auto cpu_before = cpu();
    const uint64_t turns_before = runtime.Statistics().turns;
    std::this_thread::sleep_for(milliseconds(1000));
    is_at_rest = runtime.Statistics().started == 1000 &&
                 runtime.Statistics().turns == turns_before && cpu() - cpu_before < milliseconds(5);
  }
  EXPECT_TRUE(is_at_rest);
  never.Set();
}

TEST(RuntimeTest, WorkFromOutsideWakesASleepingCarrier) {
  Runtime runtime({.carriers = 3});
  for (int round = 0; round < test::Rounds(2000); ++round) {
    VirtualThread thread = runtime.Spawn([] {});
    ASSERT_OK(thread.Join());
  }
}

// The handshake of sleep and wake, at every instant of it.
TEST(RuntimeTest, NoWakeUpIsLostWhileCarriersFallAsleep) {
  Runtime runtime({.carriers = 2});
  const int rounds = test::Rounds(20'000);
  Semaphore there(0);
  Semaphore back(0);
  VirtualThread echo = runtime.Spawn([&]() -> absl::Status {
    for (int i = 0; i < rounds; ++i) {
      BOBBIN_RETURN_IF_ERROR(there.Acquire());
      back.Release();
    }
    return absl::OkStatus();
  });
  test::Random random(1);
  for (int i = 0; i < rounds; ++i) {
    there.Release();
    // Meet the carrier in another phase of falling asleep each time.
    for (uint64_t spin = random.Below(2000); spin > 0; --spin) __asm__ __volatile__("");
    ASSERT_OK(back.Acquire());
  }
  EXPECT_OK(echo.Join());
}

TEST(RuntimeTest, IdleCarriersTakeThreadsThatHaveNotStarted) {
  Runtime runtime({.carriers = 2});
  VirtualThread spawner = runtime.Spawn([&] {
    std::atomic<bool> is_over{false};
    TaskGroup group;
    for (int i = 0; i < 4; ++i) {
      group.Spawn([&] { is_over.store(true); });
    }
    // This carrier is busy until another has run one of them.
    while (!is_over.load()) {
    }
    return group.Wait();
  });
  EXPECT_OK(spawner.Join());
  EXPECT_GE(runtime.Statistics().stolen, 1u);
}

// A single one is not worth a wake when it is spawned; the monitor sees to it that it does not wait
// for long.
TEST(RuntimeTest, AThreadSpawnedByACarrierInALongRunIsStartedElsewhere) {
  Runtime runtime({.carriers = 2});
  VirtualThread hog = runtime.Spawn([&] {
    std::atomic<bool> has_run{false};
    VirtualThread other = Spawn([&] { has_run.store(true); });
    while (!has_run.load()) {
    }
    return other.Join();
  });
  EXPECT_OK(hog.Join());
}

// The same for what comes from outside, dealt out in turn: half of it to the carrier in a long run.
TEST(RuntimeTest, AThreadGivenToACarrierInALongRunIsStartedElsewhere) {
  Runtime runtime({.carriers = 2});
  std::atomic<bool> is_hogged{false};
  std::atomic<bool> is_over{false};
  VirtualThread hog = runtime.Spawn([&] {
    is_hogged.store(true);
    while (!is_over.load()) {
    }
  });
  while (!is_hogged.load()) std::this_thread::yield();
  for (int round = 0; round < 4; ++round) {
    EXPECT_OK(runtime.Spawn({.placement = Placement::kSpread}, [] {}).Join());
  }
  is_over.store(true);
  EXPECT_OK(hog.Join());
}

// A carrier whose runs were short guesses that new threads are no work, and must find out.
TEST(RuntimeTest, LongRunsAreSpreadAlthoughAllBeforeWereShort) {
  Runtime runtime({.carriers = 2});
  VirtualThread spawner = runtime.Spawn([&]() -> absl::Status {
    {
      TaskGroup shorts;
      for (int i = 0; i < 10'000; ++i) shorts.Spawn([] {});
      BOBBIN_RETURN_IF_ERROR(shorts.Wait());
    }
    // Each is through only when the other one runs at the same time.
    std::atomic<int> inside{0};
    TaskGroup group;
    for (int i = 0; i < 2; ++i) {
      group.Spawn([&] {
        ++inside;
        while (inside < 2) {
        }
      });
    }
    return group.Wait();
  });
  EXPECT_OK(spawner.Join());
}

// Where a carrier sleeps until it is woken and, if it has one, its gate is open.
class GatedPoller final : public Poller {
 public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
  };
  GatedPoller(Gate& gate, bool is_gated) : gate_(gate), is_gated_(is_gated) {}

  void Poll() noexcept override {}
  void PollUntil(Deadline until) noexcept override {
    const auto may_go = [this] { return is_woken_ && (!is_gated_ || gate_.is_open); };
    std::unique_lock<std::mutex> lock(gate_.mutex);
    if (is_gated_ || until.is_never()) {
      gate_.changed.wait(lock, may_go);
    } else {
      const std::chrono::nanoseconds end(until.nanoseconds());
      gate_.changed.wait_until(lock, std::chrono::steady_clock::time_point(end), may_go);
    }
    is_woken_ = false;
  }
  void Wake() noexcept override {
    const std::lock_guard<std::mutex> lock(gate_.mutex);
    is_woken_ = true;
    gate_.changed.notify_all();
  }
  std::string_view name() const noexcept override { return "gated"; }

 private:
  Gate& gate_;
  const bool is_gated_;
  bool is_woken_ = false;  // Guarded by the gate's mutex.
};

TEST(RuntimeTest, WhatIsSpreadIsNotTakenFromACarrierThatIsBeingWoken) {
  GatedPoller::Gate gate;
  std::atomic<int> pollers{0};
  Runtime runtime({.carriers = 2, .poller = [&] {
                     return std::make_unique<GatedPoller>(gate, pollers.fetch_add(1) == 1);
                   }});
  test::AwaitTrue([&] { return runtime.Statistics().sleeps >= 2; });
  std::atomic<int> started{0};
  constexpr int kRounds = 50;
  for (int round = 1; round <= kRounds; ++round) {
    // One for each; the carrier that is awake has time to look for more between the rounds.
    for (int i = 0; i < 2; ++i) {
      runtime.Spawn({.placement = Placement::kSpread}, [&] { ++started; }).Detach();
    }
    test::AwaitTrue([&] { return started >= round; });
  }
  EXPECT_EQ(started, kRounds);
  {
    const std::lock_guard<std::mutex> lock(gate.mutex);
    gate.is_open = true;
    gate.changed.notify_all();
  }
  EXPECT_OK(runtime.AwaitIdle());
  EXPECT_EQ(started, 2 * kRounds);
}

// Where a carrier sleeps until it is woken; tells how many sleep, and counts the wakes.
class CountingPoller final : public Poller {
 public:
  struct Counts {
    std::mutex mutex;
    std::condition_variable changed;
    int sleepers = 0;
    int wakes = 0;

    bool IsAsleep(int carriers) {
      const std::lock_guard<std::mutex> lock(mutex);
      return sleepers == carriers;
    }
    int Wakes() {
      const std::lock_guard<std::mutex> lock(mutex);
      return wakes;
    }
  };
  explicit CountingPoller(Counts& counts) : counts_(counts) {}

  void Poll() noexcept override {}
  void PollUntil(Deadline) noexcept override {
    std::unique_lock<std::mutex> lock(counts_.mutex);
    ++counts_.sleepers;
    counts_.changed.wait(lock, [this] { return is_woken_; });
    --counts_.sleepers;
    is_woken_ = false;
  }
  void Wake() noexcept override {
    const std::lock_guard<std::mutex> lock(counts_.mutex);
    ++counts_.wakes;
    is_woken_ = true;
    counts_.changed.notify_all();
  }
  std::string_view name() const noexcept override { return "counting"; }

 private:
  Counts& counts_;
  bool is_woken_ = false;  // Guarded by the mutex of the counts.
};

TEST(RuntimeTest, ABurstOfWakesFromElsewhereWakesASleepingCarrierOnce) {
  constexpr int kReceivers = 100;
  CountingPoller::Counts counts;
  const auto poller = [&] { return std::make_unique<CountingPoller>(counts); };
  test::WithRuntime({.carriers = 2, .poller = poller}, [&](Runtime& runtime) {
    std::vector<Event> go(kReceivers);
    std::atomic<int> begun{0};
    std::atomic<bool> is_over{false};
    int wakes = 0;
    // It keeps its carrier, so that all receivers are the other one's.
    VirtualThread sender = runtime.Spawn([&] {
      while (begun < kReceivers || !counts.IsAsleep(1)) {
      }
      const int before = counts.Wakes();
      for (Event& event : go) event.Set();
      wakes = counts.Wakes() - before;
      is_over = true;
    });
    test::AwaitTrue([&] { return runtime.Statistics().started == 1; });
    std::vector<VirtualThread> receivers;
    for (Event& event : go) {
      receivers.push_back(runtime.Spawn([&] {
        ++begun;
        EXPECT_OK(event.Wait());
        // Whoever goes on first does not let the carrier fall asleep again.
        while (!is_over) {
        }
      }));
    }
    EXPECT_OK(sender.Join());
    EXPECT_EQ(wakes, 1);
    for (VirtualThread& receiver : receivers) EXPECT_OK(receiver.Join());
  });
}

TEST(RuntimeTest, AwaitIdleDoesNotWaitForWhoOnlyKeepsHouseAndAShutdownDoes) {
  Runtime runtime({.carriers = 2});
  std::atomic<bool> has_begun{false};
  std::atomic<bool> is_cancelled{false};
  runtime
      .Spawn([&] {
        const internal::HousekeepingScope scope;
        has_begun = true;
        is_cancelled = absl::IsCancelled(SleepFor(hours(1)));
      })
      .Detach();
  test::AwaitTrue([&] { return has_begun.load(); });
  std::atomic<int> ended{0};
  for (int i = 0; i < 100; ++i) {
    runtime
        .Spawn([&] {
          SleepFor(microseconds(100)).IgnoreError();
          ++ended;
        })
        .Detach();
  }
  EXPECT_OK(runtime.AwaitIdle());
  EXPECT_EQ(ended, 100);
  EXPECT_FALSE(is_cancelled);
  EXPECT_OK(runtime.Shutdown());
  EXPECT_TRUE(is_cancelled);
}

TEST(RuntimeTest, SpreadPlacementUsesEveryCarrier) {
  Runtime runtime({.carriers = 3});
  std::vector<std::atomic<int>> per_carrier(3);
  // Nobody ends before all have begun, so that nobody is done before another carrier wakes.
  std::atomic<int> begun{0};
  Event all_begun;
  std::vector<VirtualThread> threads;
  for (int i = 0; i < 30; ++i) {
    threads.push_back(runtime.Spawn({.placement = Placement::kSpread}, [&] {
      if (begun.fetch_add(1) == 29) all_begun.Set();
      return all_begun.Wait();
    }));
  }
  for (VirtualThread& thread : threads) ASSERT_OK(thread.Join());
  EXPECT_EQ(runtime.Statistics().started, 30u);
}

TEST(RuntimeTest, TrySpawnAnswersAtTheLimit) {
  Runtime runtime({.carriers = 1, .virtual_threads_max = 300});
  VirtualThread main = runtime.Spawn([&]() -> absl::Status {
    std::vector<VirtualThread> threads;
    while (true) {
      absl::StatusOr<VirtualThread> thread = TrySpawn({}, [] { return SleepFor(hours(1)); });
      if (!thread.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(thread.status()));
        EXPECT_THAT(std::string(thread.status().message()), testing::HasSubstr("300"));
        break;
      }
      threads.push_back(*std::move(thread));
    }
    EXPECT_EQ(threads.size(), 299u);
    EXPECT_TRUE(absl::IsResourceExhausted(runtime.TrySpawn({}, [] {}).status()));
    threads.pop_back();
    EXPECT_OK(runtime.TrySpawn({}, [] {}).status());
    EXPECT_OK(TrySpawn({}, [] {}).status());
    return absl::OkStatus();
  });
  EXPECT_OK(main.Join());
}

TEST(RuntimeTest, WhereGuardsAreScarceAllThreadsUpToTheLimitGetAStack) {
  Runtime runtime({.carriers = 2,
                   .stack_bytes = size_t{64} << 10,
                   .virtual_threads_max = 4000,
                   .forces_mprotect_guards = true});
  std::atomic<int> begun{0};
  Event release;
  std::vector<VirtualThread> threads;
  for (int i = 0; i < 3900; ++i) {
    threads.push_back(runtime.Spawn({.placement = Placement::kSpread}, [&] {
      begun.fetch_add(1);
      return release.Wait();
    }));
  }
  while (begun.load() != 3900) std::this_thread::yield();
  release.Set();
  for (VirtualThread& thread : threads) ASSERT_OK(thread.Join());
}

std::atomic<int> signals_seen{0};
std::atomic<int> signals_on_carriers{0};

// A signal of the process finds a foreign thread: a handler that was not written for small stacks
// is never run on one, and no system call of a carrier is cut short by it.
TEST(RuntimeTest, SignalsOfTheProcessAreHandledByForeignThreads) {
  struct sigaction action {};
  struct sigaction before[2];
  action.sa_handler = [](int) {
    ++signals_seen;
    const internal::Thread* const thread = internal::CurrentOrNull();
    const bool is_foreign = thread == nullptr || thread->role() == Role::kForeign;
    if (!is_foreign) ++signals_on_carriers;
  };
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGTERM, &action, &before[0]), 0);
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before[1]), 0);
  {
    Runtime runtime({.carriers = 2});
    std::atomic<bool> is_over{false};
    VirtualThread main = runtime.Spawn([&] {
      TaskGroup group({.placement = Placement::kSpread});
      for (int i = 0; i < 8; ++i) {
        group.Spawn([&]() -> absl::Status {
          while (!is_over.load()) {
            Yield();
            BOBBIN_RETURN_IF_ERROR(RunBlocking([] {}));
            BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::microseconds(10)));
          }
          return absl::OkStatus();
        });
      }
      return group.Wait();
    });
    // This thread would be the first choice: it may not take them, so that all others are asked.
    sigset_t all;
    sigset_t mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    for (int i = 0; i < 1000; ++i) {
      kill(getpid(), i % 2 == 0 ? SIGTERM : SIGUSR1);
      if (i % 50 == 0) std::this_thread::yield();
    }
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);  // Now it takes them.
    test::AwaitTrue([] { return signals_seen > 0; });
    is_over.store(true);
    EXPECT_OK(main.Join());
  }
  EXPECT_EQ(signals_on_carriers, 0);
  ASSERT_EQ(sigaction(SIGTERM, &before[0], nullptr), 0);
  ASSERT_EQ(sigaction(SIGUSR1, &before[1], nullptr), 0);
}

TEST(RuntimeDeathTest, ShuttingDownFromInsideAborts) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        VirtualThread thread = runtime.Spawn([&] { return runtime.Shutdown(); });
        static_cast<void>(thread.Join());
      },
      "from inside");
}

// One pair that hands a turn back and forth must not keep timers and others from running.
TEST(FairnessTest, APingPongPairStarvesNobody) {
  Runtime runtime({.carriers = 1});
  VirtualThread main = runtime.Spawn([&]() -> absl::Status {
    std::atomic<bool> is_over{false};
    Semaphore ping(0);
    Semaphore pong(0);
    TaskGroup pair;
    pair.Spawn([&] {
      while (!is_over.load() && ping.Acquire().ok()) pong.Release();
    });
    pair.Spawn([&] {
      while (!is_over.load()) {
        ping.Release();
        if (!pong.Acquire().ok()) return;
      }
    });
    int yields = 0;
    TaskGroup others;
    others.Spawn([&] {
      for (; yields < 1000; ++yields) Yield();
    });
    others.Spawn([&]() -> absl::Status {
      for (int i = 0; i < 5; ++i) BOBBIN_RETURN_IF_ERROR(SleepFor(milliseconds(1)));
      return absl::OkStatus();
    });
    BOBBIN_RETURN_IF_ERROR(others.Wait());
    EXPECT_EQ(yields, 1000);
    is_over.store(true);
    pair.Cancel();
    return pair.Wait();
  });
  EXPECT_OK(main.Join());
}

TEST(FairnessTest, FreshThreadsStartAlthoughOthersAreAlwaysReady) {
  Runtime runtime({.carriers = 1});
  VirtualThread main = runtime.Spawn([&]() -> absl::Status {
    std::atomic<bool> is_over{false};
    TaskGroup busy;
    for (int i = 0; i < 4; ++i) {
      busy.Spawn([&] {
        while (!is_over.load()) Yield();
      });
    }
    Yield();
    VirtualThread late = Spawn([&] { is_over.store(true); });
    BOBBIN_RETURN_IF_ERROR(late.Join());
    return busy.Wait();
  });
  EXPECT_OK(main.Join());
}

TEST(FairnessTest, TheOldestFreshThreadStartsAlthoughNewOnesKeepComing) {
  Runtime runtime({.carriers = 1});
  VirtualThread main = runtime.Spawn([&]() -> absl::Status {
    std::atomic<bool> is_over{false};
    TaskGroup group;
    group.Spawn([&] { is_over.store(true); });  // The oldest.
    struct Chain {
      TaskGroup& group;
      std::atomic<bool>& is_over;
      void operator()() const {
        if (!is_over.load()) group.Spawn(*this);
      }
    };
    group.Spawn(Chain{group, is_over});
    return group.Wait();
  });
  EXPECT_OK(main.Join());
}

}  // namespace
}  // namespace bobbin
