// SPDX-License-Identifier: Apache-2.0
//
// Head: the header of a message with its first line, found, checked and taken apart.
//
// Two steps. HeadScan finds where a head ends, in bytes that come in any pieces, and refuses what
// could end elsewhere for somebody else: lines that do not end in CR LF, lines that go on on the
// next one. Then ParseRequestHead and ParseResponseHead take the whole head apart. They refuse what
// would let two readers see different messages in the same bytes: a length that is not one number,
// or is there twice, or beside a Transfer-Encoding; encodings other than chunked.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          A scan looks at each byte once; parsing allocates nothing if the head's vector
//                 has been used before.

#ifndef BOBBIN_IO_SRC_HTTP_HEAD_H_
#define BOBBIN_IO_SRC_HTTP_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <bobbin/io/http/fields.h>

namespace bobbin::io::http::internal {

class HeadScan {
 public:
  enum class State { kIncomplete, kComplete, kMalformed };

  // Looks at what has come since the last call. REQUIRES: `bytes` begins with what it was then.
  State Scan(std::string_view bytes);
  // Of the head, its empty line included. REQUIRES: it is complete.
  size_t bytes() const { return line_; }
  // Of the first line as far as it is known, its end included.
  size_t first_line_bytes(std::string_view bytes) const {
    return first_line_ == 0 ? bytes.size() : first_line_;
  }

 private:
  size_t line_ = 0;  // Where the line begins whose end has not been found.
  size_t first_line_ = 0;
};

// Why a message is refused: the status that says so. kNone: it is not.
enum class Refusal : int {
  kNone = 0,
  kStatus = 1,  // Of a response; nobody is told.
  kBadRequest = 400,
  kDeadline = 408,
  kBodyTooLarge = 413,
  kTargetTooLong = 414,
  kHeaderTooLarge = 431,
  kNotImplemented = 501,
  kVersion = 505,
};

// What heads have in common. Views into the bytes that were parsed.
struct MessageHead {
  int minor_version = 1;
  std::vector<FieldView> fields;
  std::optional<uint64_t> content_length;
  bool is_chunked = false;
  // Whether the sender wants the connection to be used again.
  bool keeps_alive = true;

  std::optional<std::string_view> Find(std::string_view name) const;
};

struct RequestHead : MessageHead {
  std::string_view method;
  std::string_view target;
  bool expects_continue = false;
};

struct ResponseHead : MessageHead {
  int status = 0;
  std::string_view reason;
};

// REQUIRES: `bytes` is a whole head, as HeadScan finds it.
Refusal ParseRequestHead(std::string_view bytes, RequestHead& head);
Refusal ParseResponseHead(std::string_view bytes, ResponseHead& head);

// Whether HTTP defines the method, or one of its extensions that are in use does.
bool IsKnownMethod(std::string_view method);

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_HEAD_H_
