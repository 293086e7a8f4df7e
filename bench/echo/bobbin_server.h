// SPDX-License-Identifier: Apache-2.0
//
// The echo server as a user of bobbin writes it: one virtual thread a connection, blocking reads
// and writes; by a ring or by epoll, into a buffer of its own or into one that is lent to it. What
// it costs beyond the raw servers is the price of that.

#ifndef BOBBIN_BENCH_ECHO_BOBBIN_SERVER_H_
#define BOBBIN_BENCH_ECHO_BOBBIN_SERVER_H_

#include <cstdint>

#include <bobbin/sched/poller.h>

#include "bench/echo/server_options.h"

namespace bobbin::bench {

enum class EchoBuffers : uint8_t {
  kOwn,     // On the stack of each virtual thread.
  kPooled,  // The carrier's, from when bytes have come until they are sent.
};

// Serves until told to stop, prints the report, returns the program's exit code.
int RunBobbinServer(const ServerOptions& options, EchoBuffers buffers, PollerFactory poller);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_BOBBIN_SERVER_H_
