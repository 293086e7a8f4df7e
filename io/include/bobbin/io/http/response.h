// SPDX-License-Identifier: Apache-2.0
//
// Response: what a handler answers to a request.
//
// The body is text, or is made by `stream` while it is sent. Content-Length, Transfer-Encoding and
// Date are the server's: it writes them. `Connection: close` among the fields closes the
// connection after this answer.
//
//   Called from   any thread; one at a time.
//   Suspends      never.
//   Errors        A response that cannot be sent - a status that is none, a field whose name or
//                 value would break the header, a field that is the server's - becomes a 500, and
//                 is reported.
//   Lifetime      `stream` runs on the handler's virtual thread after the handler has returned;
//                 the request is still there, the handler's own variables are not.
//   Cost          values; a short body and two fields allocate nothing.
//
// Example:
//   return bobbin::io::http::Response{
//       .status = 201, .fields = {{"Location", "/notes/7"}}, .body = "made\n"};

#ifndef BOBBIN_IO_HTTP_RESPONSE_H_
#define BOBBIN_IO_HTTP_RESPONSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/io/http/body_writer.h>
#include <bobbin/io/http/fields.h>

namespace bobbin::io::http {

struct Response {
  // From 200 to 599.
  int status = 200;
  Fields fields = {};
  std::string body = {};
  // Makes the body instead. If it returns an error the answer is cut off, and the connection
  // closed: the peer can tell.
  absl::AnyInvocable<absl::Status(BodyWriter&)> stream = {};
  // How much `stream` will write, where that is known.
  std::optional<uint64_t> stream_bytes = std::nullopt;
};

// "Not Found" for 404; "Unknown" for those that nobody has named.
std::string_view StatusText(int status);

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_RESPONSE_H_
