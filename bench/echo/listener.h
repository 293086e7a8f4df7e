// SPDX-License-Identifier: Apache-2.0
//
// Listener: the listening socket of a raw echo server.

#ifndef BOBBIN_BENCH_ECHO_LISTENER_H_
#define BOBBIN_BENCH_ECHO_LISTENER_H_

#include <string>

#include "bench/echo/server_options.h"
#include "bench/echo/unique_fd.h"

namespace bobbin::bench {

struct Listener {
  UniqueFd fd;        // Non-blocking.
  std::string error;  // "listen 127.0.0.1:7000: address already in use"; empty if it listens.
};

Listener OpenListener(const ServerOptions& options);

// Prints the line that callers wait for, "listening 127.0.0.1:40123", and flushes it.
void AnnounceListening(const Listener& listener);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_LISTENER_H_
