// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <bobbin/io/http/server.h>

#include "io/src/http/server_session.h"
#include "io/src/http/transport.h"

namespace bobbin::io::http {

Server::Server(ServerOptions options, TcpListener listener, Handler handler)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      server_({.name = options_.name, .connections_max = options_.connections_max},
              std::move(listener), [this](ServerConnection& connection) {
                internal::TcpTransport transport(connection.stream());
                return internal::ServerSession(options_, handler_,
                                               counters_.PlaceOf(connection.number()), connection,
                                               transport)
                    .Serve();
              }) {}

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
