// SPDX-License-Identifier: Apache-2.0
//
// SocketAddress: a numeric IPv4 or IPv6 address with its port. Names are not looked up: a benchmark
// should not measure a resolver by accident.

#ifndef BOBBIN_BENCH_ECHO_SOCKET_ADDRESS_H_
#define BOBBIN_BENCH_ECHO_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

namespace bobbin::bench {

class SocketAddress {
 public:
  // Returns nothing where `host` is not a numeric address.
  static std::optional<SocketAddress> Parse(const std::string& host, uint16_t port);

  // Returns the address that the socket `fd` is bound to.
  static SocketAddress OfSocket(int fd);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }

  // "127.0.0.1:7000", "[::1]:7000".
  std::string ToString() const;

 private:
  SocketAddress() = default;

  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// What `error`, an errno value, means: "connection refused".
std::string ErrorText(int error);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_SOCKET_ADDRESS_H_
