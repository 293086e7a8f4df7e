// SPDX-License-Identifier: Apache-2.0
//
// What the ring itself is worth: the same echo server as a bare epoll loop on one thread, a read
// and a write for each event.

#ifndef BOBBIN_BENCH_BASELINE_RAW_EPOLL_SERVER_H_
#define BOBBIN_BENCH_BASELINE_RAW_EPOLL_SERVER_H_

#include "bench/echo/server_options.h"

namespace bobbin::bench {

// Serves until told to stop, prints the report, returns the program's exit code.
int RunRawEpollServer(const ServerOptions& options);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_BASELINE_RAW_EPOLL_SERVER_H_
