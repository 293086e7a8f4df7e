// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "io/src/http/ascii.h"

namespace bobbin::io::http::internal {

namespace {

constexpr uint16_t kHttpsPort = 443;

absl::Status Bad(std::string_view text, std::string_view why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, fmt::format("url {}: {}", text, why));
}

// What may stand in a request line, and cannot end it.
bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

absl::StatusOr<Url> Url::Parse(std::string_view text) {
  if (!IsPrintable(text)) return Bad("", "a blank, or a character that must be encoded");
  const size_t scheme_end = text.find("://");
  if (scheme_end == text.npos) return Bad(text, "no scheme");
  Url url;
  url.is_secure = IsSame(text.substr(0, scheme_end), "https");
  if (url.is_secure) url.port = kHttpsPort;
  if (!url.is_secure && !IsSame(text.substr(0, scheme_end), "http")) {
    return MakeStatus(absl::StatusCode::kUnimplemented,
                      fmt::format("url {}: the scheme is neither http nor https", text));
  }
  std::string_view rest = text.substr(scheme_end + 3);
  rest = rest.substr(0, rest.find('#'));
  const size_t path = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, path);

  url.authority = authority;
  url.target = rest.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, 1, '/');
  if (authority.find('@') != authority.npos) return Bad(text, "a user's name has no place in it");

  // The host, and a port behind it.
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == authority.npos) return Bad(text, "a bracket is open");
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) return Bad(text, "no host");
  if (port.empty()) return url;
  const char* const end = port.data() + port.size();
  const auto [parsed, error] = std::from_chars(port.data() + 1, end, url.port);
  if (port.front() != ':' || error != std::errc() || parsed != end || url.port == 0) {
    return Bad(text, "the port is none");
  }
  return url;
}

std::string Url::ToString() const { return fmt::format("{}://{}{}", scheme(), authority, target); }

absl::StatusOr<Url> Url::Resolve(std::string_view location) const {
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  const std::string origin = fmt::format("{}://{}", scheme(), authority);
  const size_t colon = location.find("://");
  if (colon != location.npos && colon < location.find_first_of("/?#")) return Parse(location);
  if (location.starts_with("//")) return Parse(fmt::format("{}:{}", scheme(), location));
  if (location.starts_with('/')) return Parse(fmt::format("{}{}", origin, location));
  if (location.starts_with('?')) return Parse(fmt::format("{}{}{}", origin, path, location));
  return Parse(fmt::format("{}{}{}", origin, path.substr(0, path.rfind('/') + 1), location));
}

}  // namespace bobbin::io::http::internal
