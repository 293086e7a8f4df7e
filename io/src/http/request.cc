// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include <bobbin/core/status.h>
#include <bobbin/io/http/request.h>

#include "io/src/http/head.h"
#include "io/src/http/server_session.h"

namespace bobbin::io::http {

namespace {

// By how much a body grows at a time that is read into a string. Not tuned.
constexpr size_t kPieceBytes = 8192;

}  // namespace

const internal::RequestHead& Request::head() const { return session_.head(); }

std::string_view Request::method() const { return head().method; }
std::string_view Request::target() const { return head().target; }

std::string_view Request::path() const { return target().substr(0, target().find('?')); }

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

absl::StatusOr<std::string> Request::ReadAll() {
  std::string all;
  while (true) {
    const size_t have = all.size();
    all.resize(have + kPieceBytes);
    BOBBIN_ASSIGN_OR_RETURN(const size_t read,
                            ReadBody(std::as_writable_bytes(std::span(all)).subspan(have)));
    all.resize(have + read);
    if (read == 0) return all;
  }
}

absl::StatusOr<SocketAddress> Request::peer_address() const { return session_.peer_address(); }

}  // namespace bobbin::io::http
