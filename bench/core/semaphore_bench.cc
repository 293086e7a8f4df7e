// SPDX-License-Identifier: Apache-2.0
//
// Semaphore: two virtual threads of one carrier wake each other. One iteration is one round trip.

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/semaphore.h>

#include "bench/support/on_virtual_thread.h"
#include "bench/support/rally.h"

namespace bobbin::bench {
namespace {

class SemaphoreBaton {
 public:
  void Signal() { signals_.Release(); }
  void Await() { BOBBIN_CHECK(signals_.Acquire().ok(), "nobody cancels it"); }

 private:
  Semaphore signals_{0};
};

void PingPong(benchmark::State& state) {
  OnVirtualThread([&state] {
    Rally<SemaphoreBaton> rally;
    VirtualThread other = Spawn([&rally] { rally.Answer(); });
    rally.Measure(state);
    BOBBIN_CHECK(other.Join().ok(), "it cannot fail");
  });
}
BENCHMARK(PingPong)->Name("Semaphore/PingPong");

}  // namespace
}  // namespace bobbin::bench
