// SPDX-License-Identifier: Apache-2.0
//
// HandshakeCounters: what the handshakes of a context have come to.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_TLS_HANDSHAKE_COUNTERS_H_
#define BOBBIN_IO_SRC_TLS_HANDSHAKE_COUNTERS_H_

#include <cstdint>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/io/tls_options.h>

#include "io/src/tls/tls_channel.h"

namespace bobbin::io::internal {

class HandshakeCounters {
 public:
  void CountFailed() {
    failed_.fetch_add(1, std::memory_order_relaxed);  // relaxed: counted for people.
  }
  void CountDone(const TlsChannel& channel) {
    handshakes_.fetch_add(1, std::memory_order_relaxed);  // relaxed: as above.
    if (!channel.is_resumed()) return;
    resumed_.fetch_add(1, std::memory_order_relaxed);  // relaxed: as above.
  }
  TlsStatistics Statistics() const {
    return {.handshakes = handshakes_.load(), .resumed = resumed_.load(), .failed = failed_.load()};
  }

 private:
  // Added to by who has shaken hands, read by statistics; they order nothing.
  bobbin::internal::Atomic<uint64_t> handshakes_{0};
  bobbin::internal::Atomic<uint64_t> resumed_{0};
  bobbin::internal::Atomic<uint64_t> failed_{0};
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_HANDSHAKE_COUNTERS_H_
