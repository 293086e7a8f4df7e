// SPDX-License-Identifier: Apache-2.0
//
// The echo server as a user of bobbin writes it: one virtual thread a connection, blocking reads
// and writes; by a ring or by epoll. What it costs beyond the raw servers is the price of that.

#ifndef BOBBIN_BENCH_ECHO_BOBBIN_SERVER_H_
#define BOBBIN_BENCH_ECHO_BOBBIN_SERVER_H_

#include <bobbin/sched/poller.h>

#include "bench/echo/server_options.h"

namespace bobbin::bench {

// Serves until told to stop, prints the report, returns the program's exit code.
int RunBobbinServer(const ServerOptions& options, PollerFactory poller);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_BOBBIN_SERVER_H_
