// SPDX-License-Identifier: Apache-2.0
//
// SocketAddress: a numeric IPv4 or IPv6 address with a port.
//
// It never looks up names: Resolver does. Text is `127.0.0.1:7000` or `[::1]:80`; a link-local IPv6
// address may name its interface, `[fe80::1%eth0]:80` or `[fe80::1%2]:80`. IPv4 has four decimal
// parts without leading zeros: what else people have taken for an address, is none.
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
#include <utility>

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

  // As Parse takes it: the shortest form there is, in lower case (RFC 5952), the interface by its
  // name.
  std::string ToString() const;
  // The same without port and brackets.
  std::string HostToString() const;

  // The same host and interface at another port.
  SocketAddress WithPort(uint16_t port) const;

  uint16_t port() const;
  // Whether it is of this host and no other can reach it: 127.0.0.0/8, ::1, also as
  // ::ffff:127.0.0.1.
  bool is_loopback() const;
  bool is_ipv6() const { return address_.any.sa_family == AF_INET6; }
  // AF_INET or AF_INET6.
  int family() const { return address_.any.sa_family; }
  // For system calls.
  const sockaddr* data() const { return &address_.any; }
  socklen_t bytes() const { return is_ipv6() ? sizeof(address_.v6) : sizeof(address_.v4); }

  // Whether family, host, port and interface are the same.
  friend bool operator==(const SocketAddress& a, const SocketAddress& b);
  // For containers of abseil: what is equal has the same.
  template <typename H>
  friend H AbslHashValue(H state, const SocketAddress& address) {
    state = H::combine(std::move(state), address.family(), address.port());
    if (!address.is_ipv6())
      return H::combine(std::move(state), address.address_.v4.sin_addr.s_addr);
    const sockaddr_in6& v6 = address.address_.v6;
    return H::combine_contiguous(H::combine(std::move(state), v6.sin6_scope_id),
                                 v6.sin6_addr.s6_addr, sizeof(v6.sin6_addr.s6_addr));
  }

 private:
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_ADDRESS_H_
