// SPDX-License-Identifier: Apache-2.0
//
// SocketAddress: a numeric IPv4 or IPv6 address with a port.
//
// It never looks up names. Text is `127.0.0.1:7000` or `[::1]:80`; a link-local IPv6 address may
// name its interface, `[fe80::1%eth0]:80`.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT says which part of a text is wrong.
//   Cost          a value of 28 bytes; printing allocates.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto address, bobbin::io::SocketAddress::Parse("127.0.0.1:7000"));

#ifndef BOBBIN_IO_ADDRESS_H_
#define BOBBIN_IO_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bobbin::io {

class SocketAddress {
 public:
  // 0.0.0.0:0.
  SocketAddress();

  // From `host:port`, in which an IPv6 host stands in brackets.
  static absl::StatusOr<SocketAddress> Parse(std::string_view text);
  // From a host alone, without brackets.
  static absl::StatusOr<SocketAddress> Parse(std::string_view host, uint16_t port);
  // From what the system uses. INVALID_ARGUMENT for other families and wrong lengths.
  static absl::StatusOr<SocketAddress> FromSockaddr(const sockaddr* address, socklen_t bytes);

  // As Parse takes it.
  std::string ToString() const;

  uint16_t port() const;
  bool is_ipv6() const { return address_.any.sa_family == AF_INET6; }
  // AF_INET or AF_INET6.
  int family() const { return address_.any.sa_family; }
  // For system calls.
  const sockaddr* data() const { return &address_.any; }
  socklen_t bytes() const { return is_ipv6() ? sizeof(address_.v6) : sizeof(address_.v4); }

  // Whether family, host, port and interface are the same.
  friend bool operator==(const SocketAddress& a, const SocketAddress& b);

 private:
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_ADDRESS_H_
