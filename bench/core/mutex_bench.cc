// SPDX-License-Identifier: Apache-2.0
//
// Mutex. One iteration is one lock and one unlock.

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

void Uncontended(benchmark::State& state) {
  OnVirtualThread([&state] {
    Mutex mutex;
    for ([[maybe_unused]] auto _ : state) {
      mutex.lock();
      mutex.unlock();
    }
  });
}
BENCHMARK(Uncontended)->Name("Mutex/Uncontended");

// `section` is what each of 64 virtual threads does, `rounds` times in a batch, while it holds the
// lock.
template <typename Section>
void MeasureContended(benchmark::State& state, int rounds, Section section) {
  constexpr int kThreads = 64;
  Mutex mutex;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(kThreads) * rounds)) {
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < kThreads; ++i) {
      group.Spawn([&mutex, rounds, section] {
        for (int round = 0; round < rounds; ++round) {
          const MutexLock lock(mutex);
          section();
        }
      });
    }
    BOBBIN_CHECK(group.Wait().ok(), "locking cannot fail");
  }
}

void Contended64Threads(benchmark::State& state) {
  OnVirtualThread({.carriers = 2, .pins_carriers = true},
                  [&state] { MeasureContended(state, 1000, [] {}); });
}
BENCHMARK(Contended64Threads)->Name("Mutex/64Threads");

// On one carrier: whoever holds the lock yields, and meets all the others waiting for it.
void Contended64ThreadsYieldInside(benchmark::State& state) {
  OnVirtualThread([&state] { MeasureContended(state, 100, [] { Yield(); }); });
}
BENCHMARK(Contended64ThreadsYieldInside)->Name("Mutex/64ThreadsYieldInside");

}  // namespace
}  // namespace bobbin::bench
