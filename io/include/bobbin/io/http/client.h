// SPDX-License-Identifier: Apache-2.0
//
// Client: sends HTTP requests, over TLS where the scheme is https, and keeps the connections for
// the next ones.
//
// Send returns when the header of the response is there; the body is read from the response, which
// holds the connection meanwhile. A response that is read to its end gives it back to the client;
// one that is dropped before closes it.
//
// A server may close a connection that it has kept at the moment at which it is used again. If so,
// and not a byte of a response has come, a request that may be repeated (GET, HEAD, PUT, DELETE,
// OPTIONS, TRACE, with a body that is no stream) is sent once more, on a new connection. Others
// fail: whether the server has acted on them nobody knows.
//
// A request has a span (sched/span.h), and tells the server of it by `traceparent` and
// `tracestate`, unless it has such fields already.
//
//   Called from   virtual threads of a runtime with an I/O poller, platform and foreign threads;
//                 any number at a time. A response: one thread at a time.
//   Suspends      Send and Get, until the header is there, and while the origin has
//                 `connections_per_origin_max`; ReadBody and ReadAll, until something has come.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED, and the connection is closed. There
//                 are no deadlines but those of scopes: see core/deadline.h.
//   Errors        INVALID_ARGUMENT: the request cannot be sent. UNAVAILABLE: there is no
//                 connection, or it broke. NOT_FOUND: there is no such host (see tcp.h).
//                 RESOURCE_EXHAUSTED: header or body are larger than allowed. INTERNAL: what came
//                 is not HTTP. UNIMPLEMENTED: the scheme is neither http nor https.
//                 UNAUTHENTICATED: the server is not who it should be. FAILED_PRECONDITION: more
//                 redirects than `redirects_max`, or https without a TLS context. A status such as
//                 404 is no error.
//   Order         Who waits for a connection is served first come, first served.
//   Lifetime      Responses may outlive the client. Views into one live as long as it does.
//   Cost          One write and, as a rule, one read; a short lock at either end.
//
// Example:
//   bobbin::DeadlineScope scope(2s);
//   bobbin::io::http::Client client;
//   BOBBIN_ASSIGN_OR_RETURN(auto response, client.Get("http://127.0.0.1:8080/hello"));
//   BOBBIN_ASSIGN_OR_RETURN(const std::string text, response.ReadAll());

#ifndef BOBBIN_IO_HTTP_CLIENT_H_
#define BOBBIN_IO_HTTP_CLIENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/http/body_writer.h>
#include <bobbin/io/http/fields.h>
#include <bobbin/io/tls_client_context.h>

namespace bobbin::io::http {

namespace internal {
class ClientExchange;
class ClientPool;
}  // namespace internal

struct ClientOptions {
  // To one scheme, host and port, in use or kept.
  int64_t connections_per_origin_max = 64;
  // How long a connection without a request is kept. Looked at when its origin is used.
  std::chrono::nanoseconds idle_duration = std::chrono::seconds(30);
  // Of responses.
  size_t header_bytes_max = size_t{64} << 10;
  uint64_t body_bytes_max = uint64_t{64} << 20;
  // With `expects_continue`: how long the body is held back for a server that does not say.
  std::chrono::nanoseconds continue_duration = std::chrono::seconds(1);
  // For https: whom it believes. Holds nothing: there is no https.
  TlsClientContext tls = {};
};

struct ClientRequest {
  std::string method = "GET";
  // "http://host:port/path?query", or "https://..."; the port may be left out, and the path. The
  // host is a name or numeric.
  std::string url;
  // Host, Content-Length and Transfer-Encoding are the client's.
  Fields fields = {};
  std::string body = {};
  // Makes the body instead. If it returns an error the connection is closed, and Send returns it.
  absl::AnyInvocable<absl::Status(BodyWriter&)> stream = {};
  // How much `stream` will write, where that is known.
  std::optional<uint64_t> stream_bytes = std::nullopt;
  // Asks the server whether it wants the body, before it is sent.
  bool expects_continue = false;
  // How many redirects are followed. 0: the response that redirects is returned.
  int redirects_max = 0;
};

class ClientResponse {
 public:
  ClientResponse(ClientResponse&&) noexcept;
  ClientResponse& operator=(ClientResponse&&) noexcept;
  ~ClientResponse();

  int status() const;
  std::span<const FieldView> fields() const;
  // The value of the first field of that name.
  std::optional<std::string_view> Find(std::string_view name) const;

  // Of the body, where it was said.
  std::optional<uint64_t> content_length() const;
  // Waits until some of the body has come and returns how much; 0 at its end.
  absl::StatusOr<size_t> ReadBody(std::span<std::byte> buffer);
  // The rest of the body.
  absl::StatusOr<std::string> ReadAll();

 private:
  friend class Client;
  explicit ClientResponse(std::unique_ptr<internal::ClientExchange> exchange);

  std::unique_ptr<internal::ClientExchange> exchange_;
};

struct ClientStatistics {
  // Now.
  uint64_t connections = 0;  // In use or kept.
  uint64_t kept = 0;         // Without a request.
  // Ever.
  uint64_t connected = 0;
  uint64_t reused = 0;
  uint64_t repeated = 0;  // Requests that met the end of a kept connection.
};

class Client {
 public:
  explicit Client(ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // Closes the connections that are kept.
  ~Client();

  absl::StatusOr<ClientResponse> Send(ClientRequest request);
  absl::StatusOr<ClientResponse> Get(std::string_view url);

  ClientStatistics Statistics() const;

 private:
  std::shared_ptr<internal::ClientPool> pool_;
};

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_CLIENT_H_
