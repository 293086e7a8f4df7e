// SPDX-License-Identifier: Apache-2.0
//
// Select against the plain operation: with cases that are ready, and where it has to wait. The
// loops that receive send what they have received, so that the channels stay as full as they were;
// an iteration is both. PingPong is Channel/PingPong with a Select on either side.

#include "benchmark/benchmark.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/select.h>

#include "bench/support/on_virtual_thread.h"
#include "bench/support/rally.h"

namespace bobbin::bench {
namespace {

constexpr size_t kCapacity = 16;

ChannelEnds<int> HalfFull() {
  ChannelEnds<int> ends = MakeChannel<int>({.capacity = kCapacity});
  for (size_t i = 0; i < kCapacity / 2; ++i) {
    BOBBIN_CHECK(ends.sender.Send(1).ok(), "there is room");
  }
  return ends;
}

void PlainReceive(benchmark::State& state) {
  OnVirtualThread([&state] {
    const ChannelEnds<int> channel = HalfFull();
    for (auto _ : state) {
      absl::StatusOr<int> value = channel.receiver.Receive();
      BOBBIN_CHECK(channel.sender.Send(*std::move(value)).ok(), "there is room");
    }
  });
}
BENCHMARK(PlainReceive)->Name("Select/PlainReceive");

void TwoReadyChannels(benchmark::State& state) {
  OnVirtualThread([&state] {
    const ChannelEnds<int> left = HalfFull();
    const ChannelEnds<int> right = HalfFull();
    for (auto _ : state) {
      const absl::Status status = Select(
          OnReceive(left.receiver, [&](int value) { return left.sender.Send(std::move(value)); }),
          OnReceive(right.receiver,
                    [&](int value) { return right.sender.Send(std::move(value)); }));
      BOBBIN_CHECK(status.ok(), "both are ready");
    }
  });
}
BENCHMARK(TwoReadyChannels)->Name("Select/TwoReadyChannels");

void OneReadyOfFour(benchmark::State& state) {
  OnVirtualThread([&state] {
    const ChannelEnds<int> full = HalfFull();
    const ChannelEnds<int> empty = MakeChannel<int>();
    const ChannelEnds<int> also_empty = MakeChannel<int>();
    Event never;
    const auto fail = [](int) { return absl::InternalError("it is empty"); };
    for (auto _ : state) {
      const absl::Status status = Select(
          OnReceive(empty.receiver, fail), OnReceive(also_empty.receiver, fail),
          OnEvent(never, [] { return absl::InternalError("it is not set"); }),
          OnReceive(full.receiver, [&](int value) { return full.sender.Send(std::move(value)); }));
      BOBBIN_CHECK(status.ok(), "one is ready");
    }
  });
}
BENCHMARK(OneReadyOfFour)->Name("Select/OneReadyOfFour");

// The channel's baton, awaited beside an event that never comes.
class SelectBaton {
 public:
  void Signal() { BOBBIN_CHECK(ends_.sender.Send(1).ok(), "nobody cancels it"); }
  void Await() {
    const absl::Status status = Select(OnReceive(ends_.receiver, [](int) {}),
                                       OnEvent(stop_, [] { return absl::CancelledError(); }));
    BOBBIN_CHECK(status.ok(), "nobody stops it");
  }

 private:
  ChannelEnds<int> ends_ = MakeChannel<int>({.capacity = 1});
  Event stop_;
};

void PingPong(benchmark::State& state) {
  OnVirtualThread([&state] {
    Rally<SelectBaton> rally;
    VirtualThread other = Spawn([&rally] { rally.Answer(); });
    rally.Measure(state);
    BOBBIN_CHECK(other.Join().ok(), "it cannot fail");
  });
}
BENCHMARK(PingPong)->Name("Select/PingPong");

}  // namespace
}  // namespace bobbin::bench
