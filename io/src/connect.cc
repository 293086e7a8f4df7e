// SPDX-License-Identifier: Apache-2.0

#include "io/src/connect.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

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
  pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&entry, 1, 0) <= 0) return -EAGAIN;
  int error = 0;
  socklen_t bytes = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? -error : -errno;
}

}  // namespace bobbin::io::internal
