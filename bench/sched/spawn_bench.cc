// SPDX-License-Identifier: Apache-2.0
//
// Starting and joining virtual threads that do nothing, or next to nothing. One iteration is one
// thread.

#include <cstddef>
#include <cstdint>
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

// Starts `batch` threads, then joins them, over and over.
template <typename Body>
void MeasureBatches(benchmark::State& state, int carriers, size_t batch, Body body) {
  OnVirtualThread({.carriers = carriers, .pins_carriers = true}, [&state, batch, body] {
    std::vector<VirtualThread> threads;
    threads.reserve(batch);
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(batch))) {
      for (size_t i = 0; i < batch; ++i) threads.push_back(Spawn(body));
      for (VirtualThread& thread : threads) {
        BOBBIN_CHECK(thread.Join().ok(), "doing nothing cannot fail");
      }
      threads.clear();
    }
  });
}

void Batch1000(benchmark::State& state, int carriers) {
  MeasureBatches(state, carriers, 1000, [] {});
}
BENCHMARK_CAPTURE(Batch1000, 1, 1)->Name("SpawnJoin/Batch1000");
BENCHMARK_CAPTURE(Batch1000, 2, 2)->Name("SpawnJoin/Batch1000/2");

// So many that the other carrier is woken to take its share.
void Batch3000(benchmark::State& state, int carriers) {
  MeasureBatches(state, carriers, 3000, [] {});
}
BENCHMARK_CAPTURE(Batch3000, 1, 1)->Name("SpawnJoin/Batch3000");
BENCHMARK_CAPTURE(Batch3000, 2, 2)->Name("SpawnJoin/Batch3000/2");

// About 150 ns, which a second carrier is worth.
void Compute() {
  uint64_t value = 1;
  for (int i = 0; i < 180; ++i) {
    value = value * 6364136223846793005 + 1442695040888963407;
    benchmark::DoNotOptimize(value);
  }
}

void Batch1000Computing(benchmark::State& state, int carriers) {
  MeasureBatches(state, carriers, 1000, Compute);
}
BENCHMARK_CAPTURE(Batch1000Computing, 1, 1)->Name("SpawnJoin/Batch1000Computing");
BENCHMARK_CAPTURE(Batch1000Computing, 2, 2)->Name("SpawnJoin/Batch1000Computing/2");

}  // namespace
}  // namespace bobbin::bench
