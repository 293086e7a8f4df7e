// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <utility>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/http/server.h>

#include "io/src/http/server_session.h"
#include "io/src/http/transport.h"
#include "io/src/tls_seam.h"

namespace bobbin::io::http {

Server::Server(ServerOptions options, TcpListener listener, Handler handler)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      server_({.name = options_.name, .connections_max = options_.connections_max},
              std::move(listener),
              [this](ServerConnection& connection) { return Serve(connection); }) {}

absl::Status Server::Serve(ServerConnection& connection) {
  const auto serve = [&](internal::Transport& transport) {
    return internal::ServerSession(options_, handler_, counters_.PlaceOf(connection.number()),
                                   connection, transport)
        .Serve();
  };
  if (!options_.tls) {
    internal::TcpTransport transport(connection.stream());
    return serve(transport);
  }
  // Who has not asked for anything yet has nothing to lose in a drain.
  connection.MarkIdle();
  absl::StatusOr<std::unique_ptr<internal::Transport>> transport = AcceptTls(connection.stream());
  connection.MarkBusy();
  BOBBIN_RETURN_IF_ERROR(transport.status());
  absl::Status end = serve(**transport);
  (*transport)->Close();
  return end;
}

absl::StatusOr<std::unique_ptr<internal::Transport>> Server::AcceptTls(TcpStream& stream) {
  const DeadlineScope scope(options_.handshake_duration);
  absl::StatusOr<std::unique_ptr<internal::Transport>> transport =
      options_.tls.server_->Accept(stream);
  // Who a client is, is its own affair; and a pool for handshakes that is full would be told of
  // once for each of those who come too many. Both are counted.
  if (!absl::IsUnauthenticated(transport.status()) &&
      !absl::IsResourceExhausted(transport.status())) {
    return transport;
  }
  return MakeStatus(absl::StatusCode::kUnavailable, MessageOf(transport.status()));
}

ServerStatistics Server::Statistics() const {
  ServerStatistics sum{.connections = server_.Statistics()};
  for (const auto& place : counters_.places()) {
    sum.requests += place.requests.load();
    sum.refused += place.refused.load();
    sum.exceptions += place.exceptions.load();
  }
  return sum;
}

}  // namespace bobbin::io::http
