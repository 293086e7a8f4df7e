// SPDX-License-Identifier: Apache-2.0
//
// The limit of what a ring can do for an echo server: a bare loop on one thread in which each
// connection has one receive that goes on (multishot), into buffers that the kernel chooses. A
// request is one SEND, and no entry for its receive. It is another way of using the ring than one
// operation after the other, and no virtual thread can wait like that: the distance to it says what
// a blocking interface costs.

#ifndef BOBBIN_BENCH_BASELINE_RAW_MULTISHOT_SERVER_H_
#define BOBBIN_BENCH_BASELINE_RAW_MULTISHOT_SERVER_H_

#include "bench/echo/server_options.h"

namespace bobbin::bench {

// Serves until told to stop, prints the report, returns the program's exit code.
int RunRawMultishotServer(const ServerOptions& options);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_BASELINE_RAW_MULTISHOT_SERVER_H_
