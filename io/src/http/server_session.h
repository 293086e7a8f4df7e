// SPDX-License-Identifier: Apache-2.0
//
// ServerSession: one connection of an HTTP server, from its first request to its end.
//
//   AwaitHead     sends what has been gathered, if it must wait; idle until a first byte comes
//   Answer        the handler; its answer is gathered. What has been gathered before is sent if the
//                 handler waits (stand_in.h)
//   AfterBody     what the handler has left of the body goes
//
// and again, until one side wants the end. Whatever is refused is answered, and then the session
// ends: what follows on the connection cannot be trusted.
//
//   Called from   the connection's virtual thread.
//   Suspends      Serve.
//   Cancellation  Serve ends. Answers that are there are still sent, for a moment.

#ifndef BOBBIN_IO_SRC_HTTP_SERVER_SESSION_H_
#define BOBBIN_IO_SRC_HTTP_SERVER_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/deadline.h>
#include <bobbin/io/http/server.h>

#include "io/src/http/body_reader.h"
#include "io/src/http/head.h"
#include "io/src/http/input_buffer.h"
#include "io/src/http/output.h"
#include "io/src/http/stand_in.h"
#include "io/src/http/transport.h"

namespace bobbin::io::http::internal {

class ServerSession {
 public:
  ServerSession(const ServerOptions& options, const Handler& handler,
                ServerCounters::Place& counters, ServerConnection& connection,
                Transport& transport);

  // Returns when the connection is at its end.
  absl::Status Serve();

  // For Request.
  const RequestHead& head() const { return head_; }
  absl::StatusOr<size_t> ReadBody(std::span<std::byte> buffer);
  absl::StatusOr<SocketAddress> peer_address() { return connection_.stream().peer_address(); }
  std::string_view route() const { return route_; }
  void set_route(std::string_view route) { route_ = route; }

 private:
  enum class Next { kRequest, kRefusal, kEnd };

  Next AwaitHead();
  Next AwaitFirstByte();
  // Waits for it; after a while without memory.
  absl::StatusOr<PooledBytes> ReadFirstBytes();
  // Gives back what the next request can have anew.
  void Rest();
  // Receives more of a head. kRequest: there is more.
  Next ReceiveMore(Deadline deadline);
  Next Refuse(Refusal refusal);
  Next TakeHead();

  absl::Status Answer();
  // The handler, and its answer; in a span.
  absl::Status AnswerInSpan(Request& request);
  // The same without.
  absl::Status AnswerRequest(Request& request);
  Response AnswerOf(absl::StatusOr<Response> result);
  absl::Status Send(Response& response);
  // That of a handler which was asked to stop: for a moment the request to stop is not seen, so
  // that the client learns what became of its own. A body that is made while it is sent does see
  // it: who makes it was asked to stop, too.
  absl::Status SendLast(Response& response);
  // Sends what has been gathered; after a request to stop for a moment, too.
  absl::Status Flush();
  absl::Status SendBody(Response& response, BodyOutput::Framing framing, uint64_t bytes);
  void AppendHead(const Response& response, BodyOutput::Framing framing, uint64_t bytes);
  absl::Status AnswerRefusal();
  // What is left of a request's body. False: the connection cannot go on.
  bool AfterBody();
  // Ends the connection so that the peer gets the last answer, whatever it is still sending.
  void Linger();

  void Report(std::string_view what, std::string_view why) const;

  const ServerOptions& options_;
  const Handler& handler_;
  ServerCounters::Place& counters_;
  ServerConnection& connection_;
  Transport& transport_;

  InputBuffer input_;
  Output output_;
  StandIn stand_in_;
  BodyReader body_;
  RequestHead head_;
  std::string_view route_;
  int status_ = 0;  // Of the answer.
  Deadline body_deadline_ = Deadline::Never();
  Refusal refusal_ = Refusal::kNone;
  bool owes_continue_ = false;
  bool keeps_alive_ = true;
  absl::Status end_;

  // The Date field of this second.
  std::time_t second_ = -1;
  std::array<char, 40> date_{};
  size_t date_bytes_ = 0;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_SERVER_SESSION_H_
