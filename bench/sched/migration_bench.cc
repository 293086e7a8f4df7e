// SPDX-License-Identifier: Apache-2.0
//
// Work that was dealt out unequally over two carriers, with threads that stay where they began and
// with such that migrate. One iteration is the whole of it: wall time counts.
//
// All begin before any of them works, so nothing can be made good by who begins where. Every second
// one, and with it one of the carriers, has most of the work.

#include "benchmark/benchmark.h"

#include <bobbin/core/barrier.h>
#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

constexpr int kThreads = 8;
constexpr int kManyUnits = 40;
constexpr int kFewUnits = 1;

// Some 50 us.
void ComputeUnit() {
  for (int i = 0; i < 50'000; ++i) benchmark::DoNotOptimize(i);
}

void UnequalWork(benchmark::State& state, bool migrates) {
  OnVirtualThread({.carriers = 2}, [&state, migrates] {
    for ([[maybe_unused]] auto _ : state) {
      Barrier all_have_begun(kThreads);
      TaskGroup group({.placement = Placement::kSpread});
      for (int i = 0; i < kThreads; ++i) {
        group.Spawn({.migrates = migrates}, [&all_have_begun, i]() -> absl::Status {
          BOBBIN_RETURN_IF_ERROR(all_have_begun.ArriveAndWait());
          for (int unit = i % 2 == 0 ? kManyUnits : kFewUnits; unit > 0; --unit) {
            ComputeUnit();
            Yield();
          }
          return absl::OkStatus();
        });
      }
      BOBBIN_CHECK(group.Wait().ok(), "computing cannot fail");
    }
  });
}
BENCHMARK_CAPTURE(UnequalWork, staying, false)
    ->Name("UnequalWork/Staying")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(UnequalWork, migrating, true)
    ->Name("UnequalWork/Migrating")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bobbin::bench
