// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cctype>
#include <cstring>

namespace bobbin::bench {

std::optional<SocketAddress> SocketAddress::Parse(const std::string& host, uint16_t port) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage_);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length_ = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage_);
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length_ = sizeof(sockaddr_in6);
    return address;
  }
  return std::nullopt;
}

SocketAddress SocketAddress::OfSocket(int fd) {
  SocketAddress address;
  address.length_ = sizeof(address.storage_);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) != 0) {
    address.length_ = 0;
  }
  return address;
}

std::string SocketAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family() == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
    inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
  inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(v4->sin_port));
}

std::string ErrorText(int error) {
  std::string text = std::strerror(error);
  if (!text.empty()) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

}  // namespace bobbin::bench
