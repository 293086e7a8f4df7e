// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_cancel.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "absl/cleanup/cleanup.h"

#include <bobbin/core/status.h>
#include <bobbin/io/readiness.h>

namespace bobbin::db::internal {

namespace {

constexpr std::string_view kOperation = "cancel postgres statement";

absl::Status Connect(int fd, const sockaddr_storage& address, socklen_t size) {
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    return absl::OkStatus();
  }
  if (const int error = errno; error != EINPROGRESS) return ErrnoStatus(error, kOperation);
  BOBBIN_RETURN_IF_ERROR(io::WaitWritable(fd));
  int error = 0;
  socklen_t error_size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, kOperation);
}

}  // namespace

absl::Status CancelPg(int socket, int32_t process, int32_t key) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return ErrnoStatus(errno, kOperation);
  }
  const int fd = ::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, kOperation);
  const absl::Cleanup close = [fd] { ::close(fd); };
  BOBBIN_RETURN_IF_ERROR(Connect(fd, address, size));

  // CancelRequest: its length, its code, whom it means, and that the sender may.
  constexpr uint32_t kCancelRequest = 80877102;
  const std::array<uint32_t, 4> request = {htonl(16), htonl(kCancelRequest),
                                           htonl(static_cast<uint32_t>(process)),
                                           htonl(static_cast<uint32_t>(key))};
  // It always fits into the empty buffer of a new socket.
  const ssize_t sent = ::send(fd, request.data(), sizeof(request), MSG_NOSIGNAL);
  if (sent != sizeof(request)) return ErrnoStatus(sent < 0 ? errno : EIO, kOperation);
  // The server says nothing: it closes, once the process has been told. A reset is as good.
  BOBBIN_RETURN_IF_ERROR(io::WaitReadable(fd));
  return absl::OkStatus();
}

}  // namespace bobbin::db::internal
