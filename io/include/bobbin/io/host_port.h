// SPDX-License-Identifier: Apache-2.0
//
// HostPort: where a service is, as people write it - a host and a port.
//
// The host may be a name (`example.org:80`), an IPv4 address (`127.0.0.1:80`) or an IPv6 address in
// brackets (`[::1]:80`, `[fe80::1%eth0]:80`). What it names is not looked up here: SocketAddress
// takes numeric hosts, Resolver names, TcpStream::Connect both.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT says what is wrong.
//   Lifetime      The host is a part of the text that was split.
//   Cost          Splitting allocates nothing, unless it fails.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto [host, port], bobbin::io::HostPort::Split("example.org:80"));

#ifndef BOBBIN_IO_HOST_PORT_H_
#define BOBBIN_IO_HOST_PORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bobbin::io {

struct HostPort {
  // From `host:port`; the host comes without brackets.
  static absl::StatusOr<HostPort> Split(std::string_view text);
  // As Split takes it: with brackets, where the host has a colon.
  std::string ToString() const;

  std::string_view host;
  uint16_t port = 0;

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_HOST_PORT_H_
