// SPDX-License-Identifier: Apache-2.0
//
// Server: answers HTTP/1.1 and HTTP/1.0 requests, over TLS if it is given a context for that.
//
// Each connection has a virtual thread, on which its requests are handled one after the other, in
// plain blocking code. Requests that a client sends ahead are answered in their order; their
// answers are gathered and sent together, unless they are large, before anything is waited for. An
// answer so never waits for a handler of a later request that waits, only for one that computes.
//
// What is not clearly one request is refused, and its connection closed, because somebody in
// between might see another one in it: see docs/http.md.
//
// A request has a span (sched/span.h), under the one that its `traceparent` names.
//
//   Called from   as io::Server. Many threads call the handler at the same time.
//   Suspends      Wait, Drain and the destructor.
//   Cancellation  As io::Server. A handler is cancelled when a drain's grace is over, or when the
//                 server goes. What it answers then is still sent, if that takes no longer than
//                 0.1 s; a CANCELLED that it returns is a 503.
//   Errors        A handler's status becomes an answer: see router.h. An exception, and what
//                 becomes a 500, is a line of the log (sched/log.h). Requests that are refused are
//                 counted; handshakes that fail are, too, by the TLS context.
//   Lifetime      What the handler refers to must outlive the server.
//   Cost          A request: one read and one write; parsing allocates nothing once a connection
//                 has seen a request of that size. A connection at rest holds no buffer, and
//                 soon takes some 5 KB, of which 4 are the page on which its thread waits.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("0.0.0.0:8080"));
//   bobbin::io::http::Server server({}, std::move(listener), [](bobbin::io::http::Request&) {
//     return bobbin::io::http::Response{.body = "hello\n"};
//   });
//   return server.Wait();

#ifndef BOBBIN_IO_HTTP_SERVER_H_
#define BOBBIN_IO_HTTP_SERVER_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/io/http/router.h>
#include <bobbin/io/server.h>
#include <bobbin/io/tls_server_context.h>

namespace bobbin::io::http {

struct ServerOptions {
  // As io::ServerOptions.
  std::string name = "http";
  int64_t connections_max = 10'000;

  // Of a request line: beyond it 414. Of a whole header, that line included: beyond it 431.
  size_t request_line_bytes_max = size_t{8} << 10;
  size_t header_bytes_max = size_t{16} << 10;
  // Of a body: beyond it 413.
  uint64_t body_bytes_max = uint64_t{8} << 20;

  // From a header's first byte to its last: beyond it 408.
  std::chrono::nanoseconds header_duration = std::chrono::seconds(10);
  // From the end of the header to the end of the body, the time of handlers included: beyond it
  // 408.
  std::chrono::nanoseconds body_duration = std::chrono::seconds(60);
  // Until the peer takes something more of an answer: beyond it the connection is closed.
  std::chrono::nanoseconds write_duration = std::chrono::seconds(30);
  // Without a request: beyond it the connection is closed.
  std::chrono::nanoseconds idle_duration = std::chrono::seconds(75);

  // Holds nothing: the server speaks plain HTTP.
  TlsServerContext tls = {};
  // Of a TLS handshake: beyond it the connection is closed.
  std::chrono::nanoseconds handshake_duration = std::chrono::seconds(10);
};

struct ServerStatistics {
  io::ServerStatistics connections;
  // Ever.
  uint64_t requests = 0;    // That were given to the handler.
  uint64_t refused = 0;     // That were not, because something was wrong with them.
  uint64_t exceptions = 0;  // Out of the handler.
};

namespace internal {

class Transport;

// What a server's sessions count, each at one of several places so that carriers do not meet.
class ServerCounters {
 public:
  struct alignas(64) Place {
    // Added to by sessions, read by statistics; they order nothing.
    bobbin::internal::Atomic<uint64_t> requests{0};
    bobbin::internal::Atomic<uint64_t> refused{0};
    bobbin::internal::Atomic<uint64_t> exceptions{0};
  };
  Place& PlaceOf(uint64_t connection) { return places_[connection % places_.size()]; }
  const auto& places() const { return places_; }

 private:
  std::array<Place, 16> places_;
};

}  // namespace internal

class Server {
 public:
  // Begins to accept.
  Server(ServerOptions options, TcpListener listener, Handler handler);

  // As io::Server's. A drain has answers close their connection.
  absl::Status Wait() { return server_.Wait(); }
  DrainResult Drain(const DrainOptions& options = {}) { return server_.Drain(options); }
  StopHook StopWith(Lifecycle& life) { return server_.StopWith(life); }

  const SocketAddress& local_address() const { return server_.local_address(); }
  ServerStatistics Statistics() const;

 private:
  absl::Status Serve(ServerConnection& connection);
  // Shakes hands.
  absl::StatusOr<std::unique_ptr<internal::Transport>> AcceptTls(TcpStream& stream);

  const ServerOptions options_;
  const Handler handler_;
  internal::ServerCounters counters_;
  io::Server server_;  // Last: its threads use the others.
};

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_SERVER_H_
