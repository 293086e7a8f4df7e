// SPDX-License-Identifier: Apache-2.0
//
// Udp: a server that sends each datagram back, and so many clients that wait for theirs, all on one
// carrier: what one question and its answer take. OnCall receives one by one, Batch as many as are
// there, Ahead one by one of what the ring has received meanwhile. The clients are the same.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/udp.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

absl::Status EchoOneByOne(io::UdpSocket& socket) {
  std::array<std::byte, 2048> buffer;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const io::Datagram datagram, socket.Receive(buffer));
    BOBBIN_RETURN_IF_ERROR(socket.SendTo(std::span(buffer).first(datagram.bytes), datagram.peer));
  }
}

absl::Status EchoBatches(io::UdpSocket& socket) {
  std::array<std::array<std::byte, 2048>, io::UdpSocket::kBatchMax> buffers;
  std::array<io::DatagramSlot, buffers.size()> slots;
  for (size_t i = 0; i < slots.size(); ++i) slots[i].buffer = buffers[i];
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const size_t count, socket.ReceiveBatch(slots));
    for (const auto& [buffer, datagram] : std::span(slots).first(count)) {
      BOBBIN_RETURN_IF_ERROR(socket.SendTo(buffer.first(datagram.bytes), datagram.peer));
    }
  }
}

absl::Status Ask(const io::SocketAddress& server, int64_t rounds) {
  BOBBIN_ASSIGN_OR_RETURN(auto socket, io::UdpSocket::Connect(server));
  std::array<std::byte, 64> buffer{};
  for (int64_t i = 0; i < rounds; ++i) {
    BOBBIN_RETURN_IF_ERROR(socket.Send(buffer));
    BOBBIN_RETURN_IF_ERROR(socket.Receive(buffer).status());
  }
  return absl::OkStatus();
}

void Measure(benchmark::State& state, io::Receiving receiving,
             absl::Status (*echo)(io::UdpSocket&)) {
  constexpr int64_t kRounds = 200;
  const int64_t clients = state.range(0);
  OnVirtualThread({.carriers = 1, .poller = io::UringPoller()}, [&] {
    auto bound = io::UdpSocket::Bind("127.0.0.1:0", {.receiving = receiving});
    BOBBIN_CHECK(bound.ok(), "it is bound");
    io::UdpSocket socket = *std::move(bound);
    const io::SocketAddress address = *socket.local_address();
    VirtualThread server = Spawn([&] { return echo(socket); });
    for ([[maybe_unused]] auto _ : state) {
      TaskGroup group;
      for (int64_t i = 0; i < clients; ++i) {
        group.Spawn([&] { return Ask(address, kRounds); });
      }
      BOBBIN_CHECK(group.Wait().ok(), "all are answered");
    }
    state.SetItemsProcessed(state.iterations() * clients * kRounds);
    socket.Close();
    server.Join().IgnoreError();
  });
}

void OnCall(benchmark::State& state) { Measure(state, io::Receiving::kOnCall, EchoOneByOne); }
BENCHMARK(OnCall)->Name("Udp/OnCall")->Arg(1)->Arg(16)->Arg(64);

void Batch(benchmark::State& state) { Measure(state, io::Receiving::kOnCall, EchoBatches); }
BENCHMARK(Batch)->Name("Udp/Batch")->Arg(1)->Arg(16)->Arg(64);

void Ahead(benchmark::State& state) { Measure(state, io::Receiving::kAhead, EchoOneByOne); }
BENCHMARK(Ahead)->Name("Udp/Ahead")->Arg(1)->Arg(16)->Arg(64);

}  // namespace
}  // namespace bobbin::bench
