// SPDX-License-Identifier: Apache-2.0

#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/io/address.h>
#include <bobbin/io/host_port.h>

#include "io/src/wrong_address.h"

namespace bobbin::io {

namespace {

// A decimal number that fills all of `text`.
std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// The number of the interface that is called or numbered `scope`; 0 if there is none.
uint32_t ParseScope(const std::string& scope) {
  if (const std::optional<uint32_t> number = ParseNumber(scope)) return *number;
  return if_nametoindex(scope.c_str());
}

// How ParseScope takes it: by its name, unless that could be taken for a number.
std::string ScopeText(uint32_t scope) {
  char name[IF_NAMESIZE] = {};
  if (if_indextoname(scope, name) == nullptr || ParseNumber(name)) return fmt::format("{}", scope);
  return name;
}

}  // namespace

SocketAddress::SocketAddress() {
  std::memset(&address_, 0, sizeof(address_));
  address_.v4.sin_family = AF_INET;
}

absl::StatusOr<SocketAddress> SocketAddress::Parse(std::string_view text) {
  BOBBIN_ASSIGN_OR_RETURN(const HostPort parts, HostPort::Split(text));
  return Parse(parts.host, parts.port);
}

absl::StatusOr<SocketAddress> SocketAddress::Parse(std::string_view host, uint16_t port) {
  SocketAddress address;
  // The system's functions would not look beyond a zero.
  if (host.find('\0') != host.npos)
    return internal::WrongAddress(host, "there is a zero byte in it");
  const size_t percent = host.find('%');
  const std::string digits(host.substr(0, percent));
  if (percent == host.npos &&
      inet_pton(AF_INET, digits.c_str(), &address.address_.v4.sin_addr) == 1) {
    address.address_.v4.sin_port = htons(port);
    return address;
  }

  std::memset(&address.address_, 0, sizeof(address.address_));
  if (inet_pton(AF_INET6, digits.c_str(), &address.address_.v6.sin6_addr) != 1) {
    return internal::WrongAddress(host, "not a numeric IPv4 or IPv6 address");
  }
  address.address_.v6.sin6_family = AF_INET6;
  address.address_.v6.sin6_port = htons(port);
  if (percent != host.npos) {
    address.address_.v6.sin6_scope_id = ParseScope(std::string(host.substr(percent + 1)));
    if (address.address_.v6.sin6_scope_id == 0)
      return internal::WrongAddress(host, "no such interface");
  }
  return address;
}

absl::StatusOr<SocketAddress> SocketAddress::FromSockaddr(const sockaddr* address,
                                                          socklen_t bytes) {
  SocketAddress copy;
  if (bytes >= sizeof(sockaddr_in) && address->sa_family == AF_INET) {
    std::memcpy(&copy.address_.v4, address, sizeof(sockaddr_in));
  } else if (bytes >= sizeof(sockaddr_in6) && address->sa_family == AF_INET6) {
    std::memcpy(&copy.address_.v6, address, sizeof(sockaddr_in6));
  } else {
    return MakeStatus(absl::StatusCode::kInvalidArgument, "address: neither IPv4 nor IPv6");
  }
  return copy;
}

std::string SocketAddress::ToString() const {
  return HostPort{.host = HostToString(), .port = port()}.ToString();
}

std::string SocketAddress::HostToString() const {
  char host[INET6_ADDRSTRLEN] = {};
  if (!is_ipv6()) {
    inet_ntop(AF_INET, &address_.v4.sin_addr, host, sizeof(host));
    return host;
  }
  inet_ntop(AF_INET6, &address_.v6.sin6_addr, host, sizeof(host));
  const uint32_t scope = address_.v6.sin6_scope_id;
  return scope == 0 ? host : fmt::format("{}%{}", host, ScopeText(scope));
}

SocketAddress SocketAddress::WithPort(uint16_t port) const {
  SocketAddress copy = *this;
  (is_ipv6() ? copy.address_.v6.sin6_port : copy.address_.v4.sin_port) = htons(port);
  return copy;
}

bool SocketAddress::is_loopback() const {
  const auto is_of_v4_loopback = [](uint8_t first) { return first == IN_LOOPBACKNET; };
  if (!is_ipv6()) {
    return is_of_v4_loopback(static_cast<uint8_t>(ntohl(address_.v4.sin_addr.s_addr) >> 24));
  }
  const in6_addr& v6 = address_.v6.sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && is_of_v4_loopback(v6.s6_addr[12]));
}

uint16_t SocketAddress::port() const {
  return ntohs(is_ipv6() ? address_.v6.sin6_port : address_.v4.sin_port);
}

bool operator==(const SocketAddress& a, const SocketAddress& b) {
  if (a.family() != b.family() || a.port() != b.port()) return false;
  if (!a.is_ipv6()) return a.address_.v4.sin_addr.s_addr == b.address_.v4.sin_addr.s_addr;
  return a.address_.v6.sin6_scope_id == b.address_.v6.sin6_scope_id &&
         std::memcmp(&a.address_.v6.sin6_addr, &b.address_.v6.sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace bobbin::io
