// SPDX-License-Identifier: Apache-2.0
//
// Channel: two virtual threads of one carrier send each other a value. One iteration is one round
// trip: two values sent, two received.

#include "benchmark/benchmark.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/check.h>

#include "bench/support/on_virtual_thread.h"
#include "bench/support/rally.h"

namespace bobbin::bench {
namespace {

class ChannelBaton {
 public:
  void Signal() { BOBBIN_CHECK(ends_.sender.Send(1).ok(), "nobody cancels it"); }
  void Await() { BOBBIN_CHECK(ends_.receiver.Receive().ok(), "nobody cancels it"); }

 private:
  ChannelEnds<int> ends_ = MakeChannel<int>({.capacity = 1});
};

void PingPong(benchmark::State& state) {
  OnVirtualThread([&state] {
    Rally<ChannelBaton> rally;
    VirtualThread other = Spawn([&rally] { rally.Answer(); });
    rally.Measure(state);
    BOBBIN_CHECK(other.Join().ok(), "it cannot fail");
  });
}
BENCHMARK(PingPong)->Name("Channel/PingPong");

}  // namespace
}  // namespace bobbin::bench
