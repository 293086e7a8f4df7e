// SPDX-License-Identifier: Apache-2.0
//
// Url: where a request goes and what it asks for.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        INVALID_ARGUMENT; UNIMPLEMENTED for schemes other than http and https.

#ifndef BOBBIN_IO_SRC_HTTP_URL_H_
#define BOBBIN_IO_SRC_HTTP_URL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bobbin::io::http::internal {

struct Url {
  // "http://host:port/path?query#fragment", or "https://...". An IPv6 host stands in brackets.
  static absl::StatusOr<Url> Parse(std::string_view text);
  // What `location`, in a response to a request for this one, means.
  absl::StatusOr<Url> Resolve(std::string_view location) const;

  std::string_view scheme() const { return is_secure ? "https" : "http"; }
  std::string ToString() const;

  bool is_secure = false;  // https.
  std::string host;        // Without brackets.
  uint16_t port = 80;
  std::string authority;  // As it is written; of the Host field.
  std::string target;     // Path and query.

  bool HasSameOrigin(const Url& other) const {
    return is_secure == other.is_secure && host == other.host && port == other.port;
  }
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_URL_H_
