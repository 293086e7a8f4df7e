// SPDX-License-Identifier: Apache-2.0
//
// RunHttpLoad: holds connections to an HTTP server, keeps a number of requests in flight on each,
// and counts the answers.
//
// The first answer of a connection tells how long answers are; all others must be as long, and
// begin as the first one does. A request's time runs from its sending to the last byte of its
// answer. The client spins, as that of the echo servers does, and for the same reason.

#ifndef BOBBIN_BENCH_HTTP_HTTP_LOAD_H_
#define BOBBIN_BENCH_HTTP_HTTP_LOAD_H_

#include <cstdint>
#include <string>

namespace bobbin::bench {

struct HttpLoadOptions {
  // A numeric address.
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  std::string path = "/";
  uint32_t connections = 64;
  // Requests in flight on each connection.
  uint32_t depth = 1;
  // How long to measure, after a warm-up that is not measured.
  double seconds = 3;
  double warmup_seconds = 1;
  // The one CPU to run on; -1 leaves the choice to the kernel.
  int cpu = -1;
  // Whose CPU time is measured, besides its children's; 0: nobody's.
  int server_pid = 0;
};

struct HttpLoadResult {
  // Of the measured time alone.
  uint64_t requests = 0;
  double requests_per_second = 0;
  double server_cpu_us_per_request = 0;
  double p50_us = 0;
  double p99_us = 0;
  // What went wrong; empty if nothing did.
  std::string error;
};

HttpLoadResult RunHttpLoad(const HttpLoadOptions& options);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_HTTP_HTTP_LOAD_H_
