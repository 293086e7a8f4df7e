// SPDX-License-Identifier: Apache-2.0

#include "io/src/connect.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "io/src/op_call.h"

namespace bobbin::io::internal {

Result BeginConnect(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const int error = ::connect(fd, address, bytes) == 0 ? 0 : errno;
  ::fcntl(fd, F_SETFL, flags);
  // An interrupted connect goes on, too.
  return error == EINPROGRESS || error == EINTR ? -EAGAIN : -error;
}

Result ConnectOutcome(int fd) noexcept {
  if (const int32_t seen = Look(fd, POLLOUT); seen < 0) return seen;
  int error = 0;
  socklen_t bytes = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? -error : -errno;
}

}  // namespace bobbin::io::internal
