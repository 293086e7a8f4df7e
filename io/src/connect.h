// SPDX-License-Identifier: Apache-2.0
//
// Connect: connect(2) in two steps, for those who wait in between by their own means.
//
// A connect that was begun goes on by itself; the socket becomes writable when it is over.
//
//   Called from   any thread that has the socket for itself.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_CONNECT_H_
#define BOBBIN_IO_SRC_CONNECT_H_

#include <sys/socket.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

// Begins it: 0 if it is over, and well; -EAGAIN if it goes on.
Result BeginConnect(int fd, const sockaddr* address, socklen_t bytes) noexcept;
// What has come of it; -EAGAIN if it still goes on.
Result ConnectOutcome(int fd) noexcept;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_CONNECT_H_
