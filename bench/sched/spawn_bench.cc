// SPDX-License-Identifier: Apache-2.0
//
// Starting and joining virtual threads that do nothing. One iteration is one thread.

#include <vector>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/spawn.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

void Sequential(benchmark::State& state) {
  OnVirtualThread([&state] {
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(Spawn([] {}).Join().ok(), "doing nothing cannot fail");
    }
  });
}
BENCHMARK(Sequential)->Name("SpawnJoin/Sequential");

void Batch1000(benchmark::State& state, int carriers) {
  OnVirtualThread({.carriers = carriers, .pins_carriers = true}, [&state] {
    constexpr int kBatch = 1000;
    std::vector<VirtualThread> threads;
    threads.reserve(kBatch);
    while (state.KeepRunningBatch(kBatch)) {
      for (int i = 0; i < kBatch; ++i) threads.push_back(Spawn([] {}));
      for (VirtualThread& thread : threads) {
        BOBBIN_CHECK(thread.Join().ok(), "doing nothing cannot fail");
      }
      threads.clear();
    }
  });
}
BENCHMARK_CAPTURE(Batch1000, 1, 1)->Name("SpawnJoin/Batch1000");
BENCHMARK_CAPTURE(Batch1000, 2, 2)->Name("SpawnJoin/Batch1000/2");

}  // namespace
}  // namespace bobbin::bench
