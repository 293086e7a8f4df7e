// SPDX-License-Identifier: Apache-2.0
//
// Barrier: virtual threads go from phase to phase, on one carrier and on two; beside them OS
// threads with std::barrier. One iteration is one arrival.

#include <barrier>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"

#include <bobbin/core/barrier.h>
#include <bobbin/core/check.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

constexpr int kPhases = 256;

void Phases(benchmark::State& state, int carriers) {
  const auto parties = static_cast<int>(state.range(0));
  OnVirtualThread({.carriers = carriers}, [&state, parties] {
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(parties) * kPhases)) {
      Barrier barrier(parties);
      TaskGroup group({.placement = Placement::kSpread});
      for (int i = 0; i < parties; ++i) {
        group.Spawn([&barrier] {
          for (int phase = 0; phase < kPhases; ++phase) {
            BOBBIN_CHECK(barrier.ArriveAndWait().ok(), "nobody cancels it");
          }
        });
      }
      BOBBIN_CHECK(group.Wait().ok(), "it cannot fail");
    }
  });
}
BENCHMARK_CAPTURE(Phases, OneCarrier, 1)
    ->Name("Barrier/OneCarrier")
    ->ArgName("parties")
    ->Arg(2)
    ->Arg(64);
BENCHMARK_CAPTURE(Phases, TwoCarriers, 2)->Name("Barrier/TwoCarriers")->ArgName("parties")->Arg(64);

void PhasesOfOsThreads(benchmark::State& state) {
  const auto parties = static_cast<int>(state.range(0));
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(parties) * kPhases)) {
    std::barrier barrier(parties);
    std::vector<std::jthread> threads;
    for (int i = 0; i < parties; ++i) {
      threads.emplace_back([&barrier] {
        for (int phase = 0; phase < kPhases; ++phase) barrier.arrive_and_wait();
      });
    }
  }
}
BENCHMARK(PhasesOfOsThreads)->Name("Barrier/OsThreads/std")->ArgName("parties")->Arg(2)->Arg(64);

}  // namespace
}  // namespace bobbin::bench
