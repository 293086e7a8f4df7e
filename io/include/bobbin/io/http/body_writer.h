// SPDX-License-Identifier: Apache-2.0
//
// BodyWriter: where the body of a message goes that is made while it is sent.
//
//   Called from   the function that makes the body: Response::stream, ClientRequest::stream.
//   Suspends      Write and Flush, while the peer takes nothing.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED; the message is then cut off, and its
//                 connection closed.
//   Errors        UNAVAILABLE: the peer has gone. OUT_OF_RANGE: more than the length that was
//                 announced.
//   Cost          small pieces are gathered; one of 16 KiB and more is sent from where it lies.
//
// Example:
//   response.stream = [](bobbin::io::http::BodyWriter& body) -> absl::Status {
//     for (int i = 0; i < 1000; ++i) BOBBIN_RETURN_IF_ERROR(body.Write(RowAsText(i)));
//     return absl::OkStatus();
//   };

#ifndef BOBBIN_IO_HTTP_BODY_WRITER_H_
#define BOBBIN_IO_HTTP_BODY_WRITER_H_

#include <string_view>

#include "absl/status/status.h"

namespace bobbin::io::http {

class BodyWriter {
 public:
  BodyWriter(const BodyWriter&) = delete;
  BodyWriter& operator=(const BodyWriter&) = delete;

  // Takes `bytes`, which need not live longer than the call.
  virtual absl::Status Write(std::string_view bytes) = 0;
  // Sends what has been gathered, for a peer that waits for it.
  virtual absl::Status Flush() = 0;

 protected:
  BodyWriter() = default;
  ~BodyWriter() = default;
};

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_BODY_WRITER_H_
