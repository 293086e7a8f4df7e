// SPDX-License-Identifier: Apache-2.0
//
// BodyReader: the body of one message, out of a connection's buffer and from the connection.
//
//   Called from   one thread at a time.
//   Suspends      Read, until something has come.
//   Cancellation  Read returns what the transport's does.
//   Errors        INVALID_ARGUMENT: it is not chunked as it should be. RESOURCE_EXHAUSTED: it is
//                 larger than allowed. UNAVAILABLE: the peer has ended before its end. After an
//                 error the connection is of no more use.

#ifndef BOBBIN_IO_SRC_HTTP_BODY_READER_H_
#define BOBBIN_IO_SRC_HTTP_BODY_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

#include "io/src/http/chunk_decoder.h"
#include "io/src/http/head.h"
#include "io/src/http/input_buffer.h"
#include "io/src/http/transport.h"

namespace bobbin::io::http::internal {

class BodyReader {
 public:
  enum class Kind { kNone, kLength, kChunked, kToEnd };
  // The room that a chunked body wants behind what is pinned. Not tuned.
  static constexpr size_t kRoom = 4096;

  BodyReader(InputBuffer& input, Transport& transport) : input_(input), transport_(transport) {}

  // Begins with a body of that kind; `length` is for kLength, and at most `bytes_max`.
  void Begin(Kind kind, uint64_t length, uint64_t bytes_max);

  bool is_done() const { return kind_ == Kind::kNone; }
  // Some of it; 0 at its end. REQUIRES: `buffer` is not empty.
  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  // Reads the rest for nothing. False: it is more than `bytes`, or there was an error.
  bool Discard(uint64_t bytes);

 private:
  absl::StatusOr<size_t> ReadLength(std::span<std::byte> buffer);
  absl::StatusOr<size_t> ReadChunk(std::span<std::byte> buffer);
  absl::StatusOr<size_t> ReadToEnd(std::span<std::byte> buffer);
  // From the buffer, or else from the transport.
  absl::StatusOr<size_t> ReadSome(std::span<std::byte> buffer);

  InputBuffer& input_;
  Transport& transport_;
  Kind kind_ = Kind::kNone;
  uint64_t left_ = 0;
  uint64_t bytes_max_ = 0;  // That may still come.
  ChunkDecoder chunks_;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_BODY_READER_H_
