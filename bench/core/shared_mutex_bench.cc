// SPDX-License-Identifier: Apache-2.0
//
// SharedMutex, beside the standard library's. One iteration is one lock and one unlock.

#include <chrono>
#include <shared_mutex>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/shared_mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

constexpr auto kStay = std::chrono::microseconds(100);

template <typename Lockable>
void UncontendedShared(benchmark::State& state) {
  OnVirtualThread([&state] {
    Lockable mutex;
    for ([[maybe_unused]] auto _ : state) {
      mutex.lock_shared();
      mutex.unlock_shared();
    }
  });
}
BENCHMARK(UncontendedShared<SharedMutex>)->Name("SharedMutex/Shared");
BENCHMARK(UncontendedShared<std::shared_mutex>)->Name("SharedMutex/Shared/std");

template <typename Lockable>
void UncontendedExclusive(benchmark::State& state) {
  OnVirtualThread([&state] {
    Lockable mutex;
    for ([[maybe_unused]] auto _ : state) {
      mutex.lock();
      mutex.unlock();
    }
  });
}
BENCHMARK(UncontendedExclusive<SharedMutex>)->Name("SharedMutex/Exclusive");
BENCHMARK(UncontendedExclusive<std::shared_mutex>)->Name("SharedMutex/Exclusive/std");

// 64 virtual threads that stay inside for a while, and of which each writes once in so many times:
// what sharing is for. Beside it a Mutex. The time is that of the clock, not of the CPU.
template <typename Lockable, typename Read, typename Write>
void SleepInside(benchmark::State& state) {
  OnVirtualThread([&state] {
    constexpr int kThreads = 64;
    constexpr int kRounds = 16;
    Lockable mutex;
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(kThreads) * kRounds)) {
      TaskGroup group;
      for (int i = 0; i < kThreads; ++i) {
        group.Spawn([&mutex, i]() -> absl::Status {
          for (int round = 0; round < kRounds; ++round) {
            if (round == i % kRounds) {
              const Write lock(mutex);
              BOBBIN_RETURN_IF_ERROR(SleepFor(kStay));
            } else {
              const Read lock(mutex);
              BOBBIN_RETURN_IF_ERROR(SleepFor(kStay));
            }
          }
          return absl::OkStatus();
        });
      }
      BOBBIN_CHECK(group.Wait().ok(), "nobody cancels it");
    }
  });
}
BENCHMARK((SleepInside<SharedMutex, SharedLock, ExclusiveLock>))
    ->Name("SharedMutex/64ThreadsSleepInside");
BENCHMARK((SleepInside<Mutex, MutexLock, MutexLock>))
    ->Name("SharedMutex/64ThreadsSleepInside/Mutex");

}  // namespace
}  // namespace bobbin::bench
