// SPDX-License-Identifier: Apache-2.0

#include <bobbin/io/http/request.h>

#include "io/src/http/head.h"
#include "io/src/http/read_all.h"
#include "io/src/http/server_session.h"

namespace bobbin::io::http {

const internal::RequestHead& Request::head() const { return session_.head(); }

std::string_view Request::method() const { return head().method; }
std::string_view Request::target() const { return head().target; }

std::string_view Request::path() const {
  std::string_view path = target().substr(0, target().find('?'));
  // To a proxy, and so to a server, the whole URL may be sent.
  const size_t authority = path.find("://");
  if (path.starts_with('/') || authority == path.npos) return path;
  const size_t slash = path.find('/', authority + 3);
  return slash == path.npos ? std::string_view("/") : path.substr(slash);
}

std::string_view Request::query() const {
  const size_t mark = target().find('?');
  return mark == std::string_view::npos ? std::string_view() : target().substr(mark + 1);
}

int Request::minor_version() const { return head().minor_version; }

std::span<const FieldView> Request::fields() const { return head().fields; }

std::optional<std::string_view> Request::Find(std::string_view name) const {
  return head().Find(name);
}

std::optional<uint64_t> Request::content_length() const {
  if (head().is_chunked) return std::nullopt;
  return head().content_length.value_or(0);
}

absl::StatusOr<size_t> Request::ReadBody(std::span<std::byte> buffer) {
  return session_.ReadBody(buffer);
}

absl::StatusOr<std::string> Request::ReadAll() { return internal::ReadAll(*this); }

absl::StatusOr<SocketAddress> Request::peer_address() const { return session_.peer_address(); }

std::string_view Request::route() const { return session_.route(); }
void Request::set_route(std::string_view route) { session_.set_route(route); }

}  // namespace bobbin::io::http
