// SPDX-License-Identifier: Apache-2.0
//
// The same work on plain OS threads: waking one another, starting and joining.

#include <semaphore>
#include <thread>

#include "benchmark/benchmark.h"

#include "bench/support/rally.h"

namespace bobbin::bench {
namespace {

class SemaphoreBaton {
 public:
  void Signal() { signals_.release(); }
  void Await() { signals_.acquire(); }

 private:
  std::binary_semaphore signals_{0};
};

void ParkUnparkPlatformThreads(benchmark::State& state) {
  Rally<SemaphoreBaton> rally;
  std::thread other([&rally] { rally.Answer(); });
  rally.Measure(state);
  other.join();
}
BENCHMARK(ParkUnparkPlatformThreads)->Name("ParkUnpark/PlatformThreads");

void SpawnJoinPlatformThreads(benchmark::State& state) {
  for (auto _ : state) std::thread([] {}).join();
}
BENCHMARK(SpawnJoinPlatformThreads)->Name("SpawnJoin/PlatformThreads");

}  // namespace
}  // namespace bobbin::bench
