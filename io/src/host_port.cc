// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/io/host_port.h>

#include "io/src/wrong_address.h"

namespace bobbin::io {

namespace {

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return port;
}

}  // namespace

absl::StatusOr<HostPort> HostPort::Split(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return internal::WrongAddress(text, "no port; write host:port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']') && host.size() >= 2) {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == host.npos) return internal::WrongAddress(text, "brackets are for IPv6");
  } else if (host.find(':') != host.npos) {
    return internal::WrongAddress(text, "an IPv6 host stands in brackets: [::1]:80");
  } else if (host.empty()) {
    return internal::WrongAddress(text, "no host; write host:port");
  }
  const std::optional<uint16_t> port = ParsePort(text.substr(colon + 1));
  if (!port) return internal::WrongAddress(text, "the port is not a number from 0 to 65535");
  return HostPort{.host = host, .port = *port};
}

std::string HostPort::ToString() const {
  if (host.find(':') == host.npos) return fmt::format("{}:{}", host, port);
  return fmt::format("[{}]:{}", host, port);
}

}  // namespace bobbin::io
