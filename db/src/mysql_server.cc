// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/db/mysql_server.h>

#include "db/src/hex.h"

namespace bobbin::db {

namespace {

absl::Status Malformed(std::string_view cause) {
  // Not the text itself: there may be a password in it.
  return MakeStatus(absl::StatusCode::kInvalidArgument, fmt::format("mysql address: {}", cause));
}

absl::StatusOr<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? internal::HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? internal::HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return Malformed("a % without two digits behind it");
    decoded += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return decoded;
}

// What stands before the first `mark` of `rest`, which becomes what stands behind it; all, if there
// is none.
std::string_view TakeUntil(std::string_view& rest, char mark) {
  const size_t at = rest.find(mark);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == rest.npos ? rest.size() : at + 1);
  return taken;
}

absl::Status ParseHost(std::string_view text, MySqlServer& server) {
  // An IPv6 address is in brackets.
  const size_t bracket = text.find(']');
  const size_t colon = text.find(':', bracket == text.npos ? 0 : bracket);
  std::string_view host = text.substr(0, colon);
  if (bracket != text.npos) {
    if (!host.starts_with('[') || !host.ends_with(']')) return Malformed("misplaced brackets");
    host = host.substr(1, host.size() - 2);
  }
  BOBBIN_ASSIGN_OR_RETURN(std::string name, Decoded(host));
  if (!name.empty()) server.host = std::move(name);
  if (colon == text.npos) return absl::OkStatus();
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), server.port);
  if (error != std::errc() || end != port.data() + port.size() || server.port == 0) {
    return Malformed(fmt::format("\"{}\" is no port", port));
  }
  return absl::OkStatus();
}

absl::StatusOr<MySqlTls> ParseTls(std::string_view mode) {
  if (mode == "DISABLED") return MySqlTls::kDisabled;
  if (mode == "REQUIRED") return MySqlTls::kRequired;
  if (mode == "VERIFY_CA") return MySqlTls::kVerifyCa;
  if (mode == "VERIFY_IDENTITY") return MySqlTls::kVerifyIdentity;
  return Malformed(fmt::format(
      "ssl-mode={} is none of DISABLED, REQUIRED, VERIFY_CA and VERIFY_IDENTITY", mode));
}

absl::Status ParseOption(std::string_view name, std::string value, MySqlServer& server) {
  if (name == "socket") {
    server.socket = std::move(value);
  } else if (name == "ssl-ca") {
    server.ca_file = std::move(value);
  } else if (name == "ssl-mode") {
    BOBBIN_ASSIGN_OR_RETURN(server.tls, ParseTls(value));
  } else {
    return Malformed(fmt::format("what is {}?", name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MySqlServer> MySqlServer::Parse(std::string_view url) {
  constexpr std::string_view kScheme = "mysql://";
  if (!url.starts_with(kScheme)) return Malformed("it does not begin with mysql://");
  url.remove_prefix(kScheme.size());
  MySqlServer server;
  std::string_view place = TakeUntil(url, '?');
  std::string_view authority = TakeUntil(place, '/');
  if (const size_t at = authority.rfind('@'); at != authority.npos) {
    std::string_view password = authority.substr(0, at);
    BOBBIN_ASSIGN_OR_RETURN(server.user, Decoded(TakeUntil(password, ':')));
    BOBBIN_ASSIGN_OR_RETURN(server.password, Decoded(password));
    authority.remove_prefix(at + 1);
  }
  BOBBIN_RETURN_IF_ERROR(ParseHost(authority, server));
  BOBBIN_ASSIGN_OR_RETURN(server.database, Decoded(place));
  while (!url.empty()) {
    std::string_view value = TakeUntil(url, '&');
    const std::string_view name = TakeUntil(value, '=');
    BOBBIN_ASSIGN_OR_RETURN(std::string decoded, Decoded(value));
    BOBBIN_RETURN_IF_ERROR(ParseOption(name, std::move(decoded), server));
  }
  return server;
}

}  // namespace bobbin::db
