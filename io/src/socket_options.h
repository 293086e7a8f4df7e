// SPDX-License-Identifier: Apache-2.0
//
// Socket options: what sockets of all kinds have.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          a system call each.

#ifndef BOBBIN_IO_SRC_SOCKET_OPTIONS_H_
#define BOBBIN_IO_SRC_SOCKET_OPTIONS_H_

#include <cstddef>

#include "absl/status/statusor.h"

#include <bobbin/io/address.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

// Sets an option that is a number: 0, or a negative error number.
Result SetNumber(int fd, int level, int name, int value) noexcept;
// SO_RCVBUF or SO_SNDBUF; 0 leaves the size to the system.
Result SetBufferBytes(int fd, int name, size_t bytes) noexcept;

absl::StatusOr<SocketAddress> LocalAddress(int fd);
absl::StatusOr<SocketAddress> PeerAddress(int fd);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_SOCKET_OPTIONS_H_
