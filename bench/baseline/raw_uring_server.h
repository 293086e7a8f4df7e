// SPDX-License-Identifier: Apache-2.0
//
// The limit that others are compared with: an echo server as a bare io_uring loop on one thread. No
// virtual threads, no scheduler, no cancellation, no deadlines. Each request is one RECV and then
// one SEND, a submission entry each, as a blocking read and a blocking write are for a virtual
// thread: so the distance to it is the runtime's own cost and not another way of using the ring.

#ifndef BOBBIN_BENCH_BASELINE_RAW_URING_SERVER_H_
#define BOBBIN_BENCH_BASELINE_RAW_URING_SERVER_H_

#include "bench/echo/server_options.h"

namespace bobbin::bench {

// Serves until told to stop, prints the report, returns the program's exit code.
int RunRawUringServer(const ServerOptions& options);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_BASELINE_RAW_URING_SERVER_H_
