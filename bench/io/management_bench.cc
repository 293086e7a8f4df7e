// SPDX-License-Identifier: Apache-2.0
//
// Management: so many parked threads on one carrier, and somebody who looks at them over HTTP: what
// an answer takes, from the request to its last byte. Meanwhile another thread yields without end:
// gap_ms is the longest time between two of its turns while answers were made, idle_gap_ms the
// longest in as long without them, which is the machine's own.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/io/management_server.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

// How many bytes the answer has.
absl::StatusOr<size_t> Ask(const io::SocketAddress& address, std::string_view page) {
  BOBBIN_ASSIGN_OR_RETURN(io::TcpStream stream, io::TcpStream::Connect(address));
  const std::string request = "GET " + std::string(page) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  BOBBIN_RETURN_IF_ERROR(stream.WriteAll(std::as_bytes(std::span(request))));
  std::array<std::byte, 16384> buffer;
  size_t bytes = 0;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const size_t received, stream.Read(buffer));
    if (received == 0) return bytes;
    bytes += received;
  }
}

// Someone who should never wait for long. Its fields are of one carrier.
struct Traffic {
  void Run() {
    MonotonicTime last = MonotonicNow();
    while (!is_over) {
      Yield();
      const MonotonicTime now = MonotonicNow();
      gap = std::max<std::chrono::nanoseconds>(gap, now - last);
      last = now;
    }
  }
  double TakeGapMilliseconds() {
    const std::chrono::nanoseconds taken = std::exchange(gap, {});
    return std::chrono::duration<double, std::milli>(taken).count();
  }

  bool is_over = false;
  std::chrono::nanoseconds gap{0};
};

void Measure(benchmark::State& state, std::string_view page, size_t bytes_min) {
  OnVirtualThread({.carriers = 1, .poller = io::AutoPoller()}, [&] {
    auto server = io::ManagementServer::Start(
        *CurrentRuntimeOrNull(),
        {.dump_budget = std::chrono::minutes(1), .request_budget = std::chrono::minutes(1)});
    BOBBIN_CHECK(server.ok(), "it listens");
    Event release;
    TaskGroup crowd;
    for (int64_t i = 0; i < state.range(0); ++i) crowd.Spawn([&] { return release.Wait(); });
    Yield();

    Traffic traffic;
    VirtualThread yields = Spawn([&] { traffic.Run(); });
    BOBBIN_CHECK(SleepFor(std::chrono::milliseconds(500)).ok(), "nobody stops it");
    const double idle_gap = traffic.TakeGapMilliseconds();
    size_t bytes = 0;
    for ([[maybe_unused]] auto _ : state) {
      const auto answer = Ask((*server)->local_address(), page);
      BOBBIN_CHECK(answer.ok() && *answer >= bytes_min, "it answers");
      bytes = *answer;
    }
    state.counters["gap_ms"] = traffic.TakeGapMilliseconds();
    state.counters["idle_gap_ms"] = idle_gap;
    state.counters["answer_bytes"] = static_cast<double>(bytes);

    traffic.is_over = true;
    BOBBIN_CHECK(yields.Join().ok(), "it ends");
    release.Set();
    BOBBIN_CHECK(crowd.Wait().ok(), "they end");
  });
}

void BM_ManagementHealth(benchmark::State& state) { Measure(state, "/health", 20); }
void BM_ManagementMetrics(benchmark::State& state) { Measure(state, "/metrics", 1000); }
void BM_ManagementDump(benchmark::State& state) {
  Measure(state, "/dump", static_cast<size_t>(state.range(0)));
}

BENCHMARK(BM_ManagementHealth)->Name("Management/Health")->Arg(100'000)->UseRealTime();
BENCHMARK(BM_ManagementMetrics)->Name("Management/Metrics")->Arg(100'000)->UseRealTime();
BENCHMARK(BM_ManagementDump)
    ->Name("Management/Dump")
    ->Arg(100'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bobbin::bench
