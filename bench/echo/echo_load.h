// SPDX-License-Identifier: Apache-2.0
//
// RunEchoLoad: holds many connections to an echo server, keeps a number of messages in flight on
// each, and measures how many come back and after how long.
//
// Every byte that comes back is compared with the byte that was sent. A message's time runs from
// the moment it is due, that is when the one before it in its place has come back, to the moment
// its last byte is seen: the client's own delays are in it, never subtracted.
//
// The client spins: it does not sleep while it measures. On a machine where waking an idle CPU
// takes microseconds, a client that slept would add that to every answer and hide the servers'
// differences.

#ifndef BOBBIN_BENCH_ECHO_ECHO_LOAD_H_
#define BOBBIN_BENCH_ECHO_ECHO_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace bobbin::bench {

struct LoadOptions {
  static constexpr uint32_t kDepthMax = 1024;
  static constexpr size_t kMessageBytesMax = size_t{1} << 20;
  static constexpr size_t kInFlightBytesMax = size_t{1} << 30;  // Over all connections.

  // A numeric address, IPv4 or IPv6.
  std::string host = "127.0.0.1";
  uint16_t port = 0;

  // Each takes a descriptor: the process's limit bounds them.
  uint32_t connections = 1;

  // Messages in flight on each connection.
  uint32_t depth = 1;
  size_t message_bytes = 64;

  // How long to measure, after a warm-up that is not measured.
  double seconds = 3;
  double warmup_seconds = 1;

  // The one CPU to run on; -1 leaves the choice to the kernel.
  int cpu = -1;

  // Whether to spin or to sleep in the kernel while no answer is there.
  bool spin = true;
};

struct LoadResult {
  // Of the measured time alone.
  uint64_t requests = 0;
  double requests_per_second = 0;

  // Of messages that came back in the measured time or, being in flight at its end, after it.
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;

  // Of messages due in the first second of the load, warm-up included: what a cold server costs.
  double first_second_p99_us = 0;

  // The part of the measured time in which the client had its CPU. A spinning client should have
  // all of it; much less than 1 means that something else ran there and the figures are worth
  // little.
  double client_cpu_share = 0;

  uint32_t connections = 0;
  uint32_t depth = 0;

  // Wrong bytes, lost connections and messages that never came back; and what the first of them
  // was, or why nothing could be measured: "connect 127.0.0.1:7000: connection refused".
  uint64_t errors = 0;
  std::string error;
};

// Returns what is wrong with `options`, in one line; empty if nothing is.
std::string CheckLoadOptions(const LoadOptions& options);

// Runs the load on the calling thread. Raises the process's limit of open files and, if asked to,
// pins the thread; undoes neither.
LoadResult RunEchoLoad(const LoadOptions& options);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_ECHO_LOAD_H_
