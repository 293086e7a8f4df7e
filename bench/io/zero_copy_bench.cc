// SPDX-License-Identifier: Apache-2.0
//
// ZeroCopy: a write to a TCP stream of the machine's own, and the reads that take it, on one
// carrier. ZeroCopy/Copied is WriteAll. On the machine itself the kernel copies what it was not to
// copy, when the peer's side takes it: what shows here is what it costs beyond that, to be weighed
// against a copy that is saved on a network.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/io/io.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/spawn.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

struct Ends {
  io::TcpStream writer;
  io::TcpStream reader;
};

Ends Connect() {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  BOBBIN_CHECK(listener.ok(), "it listens");
  auto writer = io::TcpStream::Connect(listener->local_address());
  auto reader = listener->Accept();
  BOBBIN_CHECK(writer.ok() && reader.ok(), "they are connected");
  return {*std::move(writer), *std::move(reader)};
}

// `write` writes all of what it is given.
template <typename Write>
void Transfer(benchmark::State& state, Write write) {
  OnVirtualThread({.carriers = 1, .poller = io::UringPoller()}, [&] {
    Ends ends = Connect();
    VirtualThread reader = Spawn([&] {
      std::vector<std::byte> buffer(size_t{1} << 18);
      while (true) {
        const auto read = ends.reader.Read(buffer);
        if (!read.ok() || *read == 0) return;
      }
    });
    const std::vector<std::byte> bytes(static_cast<size_t>(state.range(0)));
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(write(ends.writer, bytes), "it is written");
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
    ends.writer.Close();
    BOBBIN_CHECK(reader.Join().ok(), "the reader has ended");
  });
}

void Copied(benchmark::State& state) {
  Transfer(state, [](io::TcpStream& stream, std::span<const std::byte> bytes) {
    return stream.WriteAll(bytes).ok();
  });
}
BENCHMARK(Copied)->Name("ZeroCopy/Copied")->RangeMultiplier(4)->Range(4 << 10, 1 << 20);

void ZeroCopy(benchmark::State& state) {
  Transfer(state, [](io::TcpStream& stream, std::span<const std::byte> bytes) {
    return stream.WriteZeroCopy(bytes).status.ok();
  });
}
BENCHMARK(ZeroCopy)->Name("ZeroCopy/ZeroCopy")->RangeMultiplier(4)->Range(4 << 10, 1 << 20);

}  // namespace
}  // namespace bobbin::bench
