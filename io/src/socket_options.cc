// SPDX-License-Identifier: Apache-2.0

#include "io/src/socket_options.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>

namespace bobbin::io::internal {

namespace {

// getsockname(2) or getpeername(2).
template <typename Call>
absl::StatusOr<SocketAddress> AddressOf(int fd, Call call, std::string_view operation) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  const int error = call(fd, address, &bytes) == 0 ? 0 : errno;
  if (error != 0) return ResultStatus(-error, operation);
  return SocketAddress::FromSockaddr(address, bytes);
}

}  // namespace

Result SetNumber(int fd, int level, int name, int value) noexcept {
  return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0 ? 0 : -errno;
}

Result SetBufferBytes(int fd, int name, size_t bytes) noexcept {
  if (bytes == 0) return 0;
  constexpr size_t kMost = std::numeric_limits<int>::max();
  return SetNumber(fd, SOL_SOCKET, name, static_cast<int>(std::min(bytes, kMost)));
}

absl::StatusOr<SocketAddress> LocalAddress(int fd) {
  return AddressOf(fd, ::getsockname, "local address");
}

absl::StatusOr<SocketAddress> PeerAddress(int fd) {
  return AddressOf(fd, ::getpeername, "peer address");
}

}  // namespace bobbin::io::internal
