// SPDX-License-Identifier: Apache-2.0
//
// Yielding among virtual threads of one carrier. One iteration is one yield of one of them.

#include <cstdint>
#include <limits>

#include "benchmark/benchmark.h"

#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

// All yield at this one line, as threads that wait at the same place do: where a processor predicts
// returns by the calls before them, a thread that returns elsewhere than the last one costs more.
[[gnu::noinline]] void YieldTurns(int64_t turns, const bool& is_over) {
  for (; turns > 0 && !is_over; --turns) Yield();
}

void MeasureYield(benchmark::State& state, int threads, bool others_migrate = false) {
  // With one carrier nobody migrates; the second one sleeps, for this is not worth a wake.
  OnVirtualThread({.carriers = others_migrate ? 2 : 1}, [&state, threads, others_migrate] {
    int begun = 1;
    bool is_over = false;
    TaskGroup others;
    for (int i = 1; i < threads; ++i) {
      others.Spawn({.migrates = others_migrate}, [&begun, &is_over] {
        ++begun;
        YieldTurns(std::numeric_limits<int64_t>::max(), is_over);
      });
    }
    while (begun < threads) Yield();

    // A yield returns when each of the others has yielded once.
    const int rounds = threads < 1000 ? 1000 : 1;
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(threads) * rounds)) {
      YieldTurns(rounds, is_over);
    }
    is_over = true;
    BOBBIN_CHECK(others.Wait().ok(), "yielding cannot fail");
  });
}

void Yield2(benchmark::State& state) { MeasureYield(state, 2); }
BENCHMARK(Yield2)->Name("Yield/2");

// One of the two may migrate, and does not.
void Yield2Migrating(benchmark::State& state) { MeasureYield(state, 2, true); }
BENCHMARK(Yield2Migrating)->Name("Yield/2Migrating");

void Yield10000(benchmark::State& state) { MeasureYield(state, 10'000); }
BENCHMARK(Yield10000)->Name("Yield/10000");

}  // namespace
}  // namespace bobbin::bench
