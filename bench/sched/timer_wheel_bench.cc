// SPDX-License-Identifier: Apache-2.0
//
// One more deadline for a carrier that has a million armed already. One iteration arms and disarms
// it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>

#include "benchmark/benchmark.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/timer_node.h>
#include <bobbin/core/semaphore.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

using internal::Dispatcher;
using internal::TimerNode;

// Deadlines of a server's kind: from ten seconds to ten minutes ahead, none of which comes while
// the benchmark runs. The generator has always the same seed.
class Deadlines {
 public:
  explicit Deadlines(size_t count) {
    std::mt19937_64 random;
    std::uniform_int_distribution<int64_t> ahead(10'000'000'000, 600'000'000'000);
    const int64_t now = MonotonicNow().time_since_epoch().count();
    for (size_t i = 0; i < count; ++i) {
      nodes_.emplace_back(internal::Current(), now + ahead(random));
    }
  }

  size_t size() const { return nodes_.size(); }
  TimerNode& operator[](size_t index) { return nodes_[index]; }

  void Arm(Dispatcher& carrier) {
    for (TimerNode& node : nodes_) BOBBIN_CHECK(carrier.ArmTimer(node), "it is ahead");
  }
  void Disarm(Dispatcher& carrier) {
    for (TimerNode& node : nodes_) carrier.DisarmTimer(node);
  }

 private:
  std::deque<TimerNode> nodes_;
};

constexpr size_t kArmed = 1'000'000;

void ArmDisarm1000000(benchmark::State& state) {
  OnVirtualThread([&state] {
    Dispatcher& carrier = *internal::Current().dispatcher();
    Deadlines armed(kArmed);
    armed.Arm(carrier);
    Deadlines measured(4096);
    size_t i = 0;
    for ([[maybe_unused]] auto _ : state) {
      TimerNode& node = measured[i++ % measured.size()];
      benchmark::DoNotOptimize(carrier.ArmTimer(node));
      carrier.DisarmTimer(node);
    }
    armed.Disarm(carrier);
  });
}
BENCHMARK(ArmDisarm1000000)->Name("Timer/ArmDisarm/1000000");

// What a program sees of it: a DeadlineScope around a wait that suspends. Compare with the same
// wait without a scope, Semaphore/PingPong.
void DeadlineScope1000000(benchmark::State& state) {
  OnVirtualThread([&state] {
    Dispatcher& carrier = *internal::Current().dispatcher();
    Deadlines armed(kArmed);
    armed.Arm(carrier);
    Semaphore asked(0);
    Semaphore answered(0);
    VirtualThread other = Spawn([&] {
      while (asked.Acquire().ok()) answered.Release();
    });
    for ([[maybe_unused]] auto _ : state) {
      const DeadlineScope scope(std::chrono::seconds(30));
      asked.Release();
      BOBBIN_CHECK(answered.Acquire().ok(), "the answer takes no 30 seconds");
    }
    other.Cancel();
    static_cast<void>(other.Join());
    armed.Disarm(carrier);
  });
}
BENCHMARK(DeadlineScope1000000)->Name("Timer/DeadlineScope/1000000");

}  // namespace
}  // namespace bobbin::bench
