// SPDX-License-Identifier: Apache-2.0
//
// Request: what came in, as a server's handler has it.
//
// The header has been read; the body is read by the handler, or not at all. What the handler leaves
// of it is thrown away, or the connection is closed if that is too much. To a client that waits for
// `100 Continue` it is sent when the body is first read.
//
//   Called from   its handler's virtual thread.
//   Suspends      ReadBody and ReadAll, until something has come.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED, the latter also at the server's
//                 deadline for bodies.
//   Errors        RESOURCE_EXHAUSTED: the body is larger than the server allows. INVALID_ARGUMENT:
//                 it is not chunked as it should be. UNAVAILABLE: the peer has gone before its
//                 end. A handler that returns such a status has the connection answered as it
//                 deserves (413, 400, 408), and closed.
//   Lifetime      Views into it are valid until the handler, and the response's `stream`, have
//                 returned.
//   Cost          Views into the connection's buffer: nothing is copied. A body of known length is
//                 received where the handler wants it, but for what came with the header.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(const std::string text, request.ReadAll());

#ifndef BOBBIN_IO_HTTP_REQUEST_H_
#define BOBBIN_IO_HTTP_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include <bobbin/io/address.h>
#include <bobbin/io/http/fields.h>

namespace bobbin::io::http {

class Router;

namespace internal {
class ServerSession;
struct RequestHead;
}  // namespace internal

class Request {
 public:
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // As it was sent: "GET".
  std::string_view method() const;
  // As it was sent, nothing decoded: "/notes?of=today". The part before the question mark, without
  // the host of a whole URL, and the part behind it.
  std::string_view target() const;
  std::string_view path() const;
  std::string_view query() const;
  // 1 for HTTP/1.1, 0 for HTTP/1.0.
  int minor_version() const;

  std::span<const FieldView> fields() const;
  // The value of the first field of that name.
  std::optional<std::string_view> Find(std::string_view name) const;

  // Of the body: nothing where it is chunked, 0 where there is none.
  std::optional<uint64_t> content_length() const;
  // Waits until some of the body has come and returns how much; 0 at its end.
  absl::StatusOr<size_t> ReadBody(std::span<std::byte> buffer);
  // The rest of the body.
  absl::StatusOr<std::string> ReadAll();

  absl::StatusOr<SocketAddress> peer_address() const;

  // The path of the pattern that a Router has found for it: "/notes"; empty before, and without.
  std::string_view route() const;

 private:
  friend class internal::ServerSession;
  friend class Router;
  explicit Request(internal::ServerSession& session) : session_(session) {}
  const internal::RequestHead& head() const;
  // What lives as long as the server.
  void set_route(std::string_view route);

  internal::ServerSession& session_;
};

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_REQUEST_H_
