// SPDX-License-Identifier: Apache-2.0
//
// SharedMutex, beside the standard library's. One iteration is one lock and one unlock.

#include <mutex>
#include <shared_mutex>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/shared_mutex.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

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

// On one carrier 64 virtual threads, of which each writes once in so many times and lets the others
// run while it is inside: what a reader keeps waiting is the writers only. Beside it a Mutex.
template <typename Lockable, typename Read, typename Write>
void YieldInside(benchmark::State& state) {
  OnVirtualThread([&state] {
    constexpr int kThreads = 64;
    constexpr int kRounds = 64;
    constexpr int kWriteEvery = 16;
    Lockable mutex;
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(kThreads) * kRounds)) {
      TaskGroup group;
      for (int i = 0; i < kThreads; ++i) {
        group.Spawn([&mutex, i] {
          for (int round = 0; round < kRounds; ++round) {
            if ((round + i) % kWriteEvery == 0) {
              const Write lock(mutex);
              Yield();
            } else {
              const Read lock(mutex);
              Yield();
            }
          }
        });
      }
      BOBBIN_CHECK(group.Wait().ok(), "locking cannot fail");
    }
  });
}
BENCHMARK((YieldInside<SharedMutex, SharedLock, ExclusiveLock>))
    ->Name("SharedMutex/64ThreadsYieldInside");
BENCHMARK((YieldInside<Mutex, MutexLock, MutexLock>))
    ->Name("SharedMutex/64ThreadsYieldInside/Mutex");

}  // namespace
}  // namespace bobbin::bench
