// SPDX-License-Identifier: Apache-2.0
//
// ServerOptions: what every echo server of this folder is told, whichever way it waits.

#ifndef BOBBIN_BENCH_ECHO_SERVER_OPTIONS_H_
#define BOBBIN_BENCH_ECHO_SERVER_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace bobbin::bench {

struct ServerOptions {
  // A numeric address, IPv4 or IPv6.
  std::string host = "127.0.0.1";

  // 0 lets the kernel pick a free one; the server prints it.
  uint16_t port = 0;

  // OS threads that serve. The raw servers have one and refuse more.
  int carriers = 1;

  // The most one receive takes.
  size_t buffer_bytes = 4096;

  // Of each virtual thread; the raw servers have none.
  size_t stack_bytes = size_t{256} << 10;

  // 0 serves until SIGTERM or SIGINT.
  double seconds = 0;

  // The one CPU to run on; -1 leaves the choice to the kernel.
  int cpu = -1;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_SERVER_OPTIONS_H_
