// SPDX-License-Identifier: Apache-2.0
//
// Blocking: socket calls for platform and foreign threads, which have no ring.
//
// Plain system calls on blocking sockets. Only where a deadline governs, and before it accepts, the
// thread first waits until the socket is ready. A socket that is closed under them is shut down
// first, which ends the calls.
//
//   Called from   platform and foreign threads.
//   Suspends      blocks the OS thread.
//   Cancellation  A deadline scope ends them. A cancel is seen before a call, not during it.

#ifndef BOBBIN_IO_SRC_BLOCKING_H_
#define BOBBIN_IO_SRC_BLOCKING_H_

#include <sys/socket.h>

#include <cstddef>
#include <span>

#include <bobbin/core/internal/thread.h>
#include <bobbin/io/address.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

inline constexpr int kNoBell = -1;

// Waits until `fd` has one of poll(2)'s `events` or an error: 0 if it has. -ECANCELED if `bell`, an
// eventfd, was rung.
Result BlockingAwait(bobbin::internal::Thread& self, int fd, short events, int bell = kNoBell);

Result BlockingReceive(bobbin::internal::Thread& self, int fd, void* data, size_t bytes);
Result BlockingSend(bobbin::internal::Thread& self, int fd, const void* data, size_t bytes);
// The same for what msghdr says.
Result BlockingReceiveMessage(bobbin::internal::Thread& self, int fd, msghdr& message);
Result BlockingSendMessage(bobbin::internal::Thread& self, int fd, const msghdr& message);
Result BlockingReceiveMessages(bobbin::internal::Thread& self, int fd, std::span<mmsghdr> messages);
// For pipes. REQUIRES: read(2) and write(2) do not wait on `fd`.
Result BlockingRead(bobbin::internal::Thread& self, int fd, void* data, size_t bytes);
Result BlockingWrite(bobbin::internal::Thread& self, int fd, const void* data, size_t bytes);
// REQUIRES: accept(2) does not wait on `fd`.
Result BlockingAccept(bobbin::internal::Thread& self, int fd, int bell);
// 0 when connected. After anything else the socket is in no useful state.
Result BlockingConnect(bobbin::internal::Thread& self, int fd, const SocketAddress& address);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_BLOCKING_H_
