// SPDX-License-Identifier: Apache-2.0
//
// ReadAll: the rest of a message's body, as a string.
//
//   Called from   whoever may read the body.
//   Suspends      as its ReadBody.

#ifndef BOBBIN_IO_SRC_HTTP_READ_ALL_H_
#define BOBBIN_IO_SRC_HTTP_READ_ALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

#include <bobbin/core/status.h>

namespace bobbin::io::http::internal {

template <typename Message>
absl::StatusOr<std::string> ReadAll(Message& message) {
  // By how much it grows at a time where nobody said how long it is. A length that was said is
  // believed up to the second number. Not tuned.
  constexpr size_t kPieceBytes = 8192;
  constexpr uint64_t kBelievedBytes = uint64_t{1} << 20;

  std::string all;
  size_t have = 0;
  size_t want =
      static_cast<size_t>(std::min(message.content_length().value_or(kPieceBytes), kBelievedBytes));
  while (true) {
    if (have == all.size()) all.resize(have + std::max<size_t>(want, 1));
    BOBBIN_ASSIGN_OR_RETURN(const size_t read,
                            message.ReadBody(std::as_writable_bytes(std::span(all).subspan(have))));
    have += read;
    if (read == 0) break;
    want = std::max(have, kPieceBytes);
  }
  all.resize(have);
  return all;
}

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_READ_ALL_H_
