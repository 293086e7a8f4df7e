// SPDX-License-Identifier: Apache-2.0
//
// ServerSpan, ClientSpan: the spans of requests, named as OpenTelemetry's conventions for HTTP ask.
//
// A server's span is a child of what the request's `traceparent` says, and covers the handler and
// the sending of its answer. A client's covers one exchange, from the search for a connection to
// the header of the response, and its `traceparent` is what the server is told. What a query holds
// is nobody's business: it is not said.
//
//   Called from   as Span: one thread, and the innermost ends first.
//   Suspends      never, if the sink does not.
//   Cost          Where nothing is traced, a load and a look through the fields of the request.

#ifndef BOBBIN_IO_SRC_HTTP_SPANS_H_
#define BOBBIN_IO_SRC_HTTP_SPANS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/address.h>
#include <bobbin/io/http/fields.h>
#include <bobbin/sched/span.h>

#include "io/src/http/head.h"
#include "io/src/http/url.h"

namespace bobbin::io::http::internal {

class ServerSpan {
 public:
  // Whether the request belongs to a trace, or may begin one.
  static bool IsWanted(const RequestHead& head) {
    return Tracing::IsOn() || head.Find("traceparent").has_value();
  }

  ServerSpan(const RequestHead& head, std::string_view scheme, std::string_view path,
             const absl::StatusOr<SocketAddress>& peer);

  // What was answered: `route` is empty if no router has found one. `sent` is OK, or why not all of
  // the answer was sent.
  void End(std::string_view method, std::string_view route, int status, const absl::Status& sent);

 private:
  Span span_;
};

class ClientSpan {
 public:
  // `resends`: how many requests of the same Send have come before.
  ClientSpan(std::string_view method, const Url& url, int resends);

  void End(int status);
  void End(const absl::Status& failure);

 private:
  Span span_;
};

// Appends the fields that tell a server of the span in force, if there is one and `fields` does not
// tell it already.
void AppendTrace(const Fields& fields, std::string& text);

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_SPANS_H_
