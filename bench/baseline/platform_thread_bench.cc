// SPDX-License-Identifier: Apache-2.0
//
// The same work on plain OS threads: waking one another, starting and joining, and handing a cache
// line over, of which everything that crosses carriers is made.

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <thread>

#include "benchmark/benchmark.h"

#include "bench/support/rally.h"

namespace bobbin::bench {
namespace {

// Ties the calling thread to one of the CPUs that it may use, counted from 0; does nothing if there
// are not so many.
void PinToUsableCpu(int index) {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof(usable), &usable) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

// Two threads, each on a CPU of its own. One iteration is one round trip.
template <typename Baton>
void ParkUnpark(benchmark::State& state) {
  Rally<Baton> rally;
  std::thread answering([&rally] {
    PinToUsableCpu(1);
    rally.Answer();
  });
  std::thread measuring([&rally, &state] {
    PinToUsableCpu(0);
    rally.Measure(state);
  });
  measuring.join();
  answering.join();
}

// Whoever waits sleeps in the kernel.
class ConditionBaton {
 public:
  void Signal() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_signalled_ = true;
    }
    changed_.notify_one();
  }
  void Await() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_signalled_; });
    is_signalled_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_signalled_ = false;  // Guarded by mutex_.
};
BENCHMARK(ParkUnpark<ConditionBaton>)->Name("ParkUnpark/PlatformThreads");

// Whoever waits spins for some microseconds before it sleeps, so that here nobody sleeps, as a
// rule.
class SpinningBaton {
 public:
  void Signal() { signals_.release(); }
  void Await() { signals_.acquire(); }

 private:
  std::binary_semaphore signals_{0};
};
BENCHMARK(ParkUnpark<SpinningBaton>)->Name("ParkUnpark/PlatformThreadsSpinning");

// Whoever waits never does anything else: what the path between two CPUs allows.
class PollingBaton {
 public:
  void Signal() {
    is_signalled_.store(true, std::memory_order_release);  // Pairs with the acquire in Await.
  }
  void Await() {
    while (!is_signalled_.load(std::memory_order_acquire)) {  // Pairs with the release in Signal.
    }
    is_signalled_.store(false, std::memory_order_relaxed);  // relaxed: the other one answers first.
  }

 private:
  std::atomic<bool> is_signalled_{false};  // Set by one of the two, cleared by the other.
};
BENCHMARK(ParkUnpark<PollingBaton>)->Name("ParkUnpark/PlatformThreadsPolling");

void SpawnJoin(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) std::thread([] {}).join();
}
BENCHMARK(SpawnJoin)->Name("SpawnJoin/PlatformThreads");

// Two threads write one cache line in turns, each on a CPU of its own. One iteration is one write,
// which finds the line at the other CPU.
void LineWrittenElsewhere(benchmark::State& state) {
  constexpr uint64_t kEnd = uint64_t{1} << 63;
  // Even when it is the measuring thread's turn, odd when it is the other one's.
  alignas(64) std::atomic<uint64_t> turns{0};
  std::thread answering([&turns] {
    PinToUsableCpu(1);
    while (true) {
      const uint64_t turn = turns.load(std::memory_order_acquire);
      if (turn >= kEnd) return;
      if (turn % 2 == 1) turns.store(turn + 1, std::memory_order_release);
    }
  });
  std::thread measuring([&turns, &state] {
    PinToUsableCpu(0);
    uint64_t turn = 0;
    while (state.KeepRunningBatch(2)) {
      turns.store(turn + 1, std::memory_order_release);
      turn += 2;
      while (turns.load(std::memory_order_acquire) != turn) {
      }
    }
    turns.store(kEnd, std::memory_order_release);
  });
  measuring.join();
  answering.join();
}
BENCHMARK(LineWrittenElsewhere)->Name("Line/WrittenElsewhere")->UseRealTime();

}  // namespace
}  // namespace bobbin::bench
