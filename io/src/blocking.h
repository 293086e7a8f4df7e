// SPDX-License-Identifier: Apache-2.0
//
// Blocking: socket calls for platform and foreign threads, which have no ring.
//
// Plain system calls on blocking sockets. Only where a deadline governs, the thread first waits until
// the socket is ready. A socket that is closed under them is shut down first, which ends the calls.
//
//   Called from   platform and foreign threads.
//   Suspends      blocks the OS thread.
//   Cancellation  A deadline scope ends them. A cancel is seen before a call, not during it.

#ifndef BOBBIN_IO_SRC_BLOCKING_H_
#define BOBBIN_IO_SRC_BLOCKING_H_

#include <cstddef>

#include "absl/status/status.h"

#include <bobbin/core/internal/thread.h>
#include <bobbin/io/address.h>

namespace bobbin::io::internal {

// What a call came to: a count or a descriptor, or a negative error number; unless `stop` says that it
// was given up.
struct BlockingResult {
  int64_t value = 0;
  absl::Status stop;
};

BlockingResult BlockingReceive(bobbin::internal::Thread& self, int fd, void* data, size_t bytes);
BlockingResult BlockingSend(bobbin::internal::Thread& self, int fd, const void* data, size_t bytes);
BlockingResult BlockingAccept(bobbin::internal::Thread& self, int fd);
// On failure the socket is in no useful state.
BlockingResult BlockingConnect(bobbin::internal::Thread& self, int fd, const SocketAddress& address);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_BLOCKING_H_
