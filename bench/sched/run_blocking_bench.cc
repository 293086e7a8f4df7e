// SPDX-License-Identifier: Apache-2.0
//
// RunBlocking: a virtual thread has a platform thread call something. One iteration is one call.

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/sched/run_blocking.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

void RoundTrip(benchmark::State& state) {
  OnVirtualThread([&state] {
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(RunBlocking([] {}).ok(), "nobody cancels it");
    }
  });
}
BENCHMARK(RoundTrip)->Name("RunBlocking/RoundTrip");

}  // namespace
}  // namespace bobbin::bench
