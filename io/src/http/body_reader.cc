// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/body_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <bobbin/core/status.h>

namespace bobbin::io::http::internal {

namespace {

// What is read for nothing at a time.
constexpr size_t kDiscardBytes = 2048;

absl::Status EndedEarly() {
  return MakeStatus(absl::StatusCode::kUnavailable, "read body: the peer ended before its end");
}

absl::Status TooLarge() {
  return MakeStatus(absl::StatusCode::kResourceExhausted, "read body: it is too large");
}

}  // namespace

void BodyReader::Begin(Kind kind, uint64_t length, uint64_t bytes_max) {
  kind_ = kind == Kind::kLength && length == 0 ? Kind::kNone : kind;
  left_ = length;
  bytes_max_ = bytes_max;
  chunks_ = ChunkDecoder();
}

absl::StatusOr<size_t> BodyReader::Read(std::span<std::byte> buffer) {
  switch (kind_) {
    case Kind::kNone:
      return size_t{0};
    case Kind::kLength:
      return ReadLength(buffer);
    case Kind::kChunked:
      return ReadChunk(buffer);
    case Kind::kToEnd:
      return ReadToEnd(buffer);
  }
  return size_t{0};
}

bool BodyReader::Discard(uint64_t bytes) {
  std::array<std::byte, kDiscardBytes> buffer;
  while (!is_done()) {
    const auto read = Read(buffer);
    if (!read.ok() || *read > bytes) return false;
    bytes -= *read;
  }
  return true;
}

absl::StatusOr<size_t> BodyReader::ReadLength(std::span<std::byte> buffer) {
  const auto wanted = static_cast<size_t>(std::min<uint64_t>(left_, buffer.size()));
  BOBBIN_ASSIGN_OR_RETURN(const size_t read, ReadSome(buffer.first(wanted)));
  if (read == 0) return EndedEarly();
  left_ -= read;
  if (left_ == 0) kind_ = Kind::kNone;
  return read;
}

absl::StatusOr<size_t> BodyReader::ReadChunk(std::span<std::byte> buffer) {
  while (true) {
    input_.Use(chunks_.TakeFraming(input_.unused()));
    switch (chunks_.state()) {
      case ChunkDecoder::State::kDone:
        kind_ = Kind::kNone;
        return size_t{0};
      case ChunkDecoder::State::kMalformed:
        return MakeStatus(absl::StatusCode::kInvalidArgument, "read body: malformed chunk");
      case ChunkDecoder::State::kBytes: {
        if (chunks_.left() > bytes_max_) return TooLarge();
        // Never beyond the chunk: what follows is for the decoder.
        const auto wanted = static_cast<size_t>(std::min<uint64_t>(chunks_.left(), buffer.size()));
        BOBBIN_ASSIGN_OR_RETURN(const size_t read, ReadSome(buffer.first(wanted)));
        if (read == 0) return EndedEarly();
        bytes_max_ -= read;
        chunks_.TakeBytes(read);
        return read;
      }
      case ChunkDecoder::State::kFraming: {
        BOBBIN_ASSIGN_OR_RETURN(const size_t received, transport_.Read(input_.Room()));
        if (received == 0) return EndedEarly();
        input_.Received(received);
        break;
      }
    }
  }
}

absl::StatusOr<size_t> BodyReader::ReadToEnd(std::span<std::byte> buffer) {
  BOBBIN_ASSIGN_OR_RETURN(const size_t read, ReadSome(buffer));
  if (read == 0) kind_ = Kind::kNone;
  if (read > bytes_max_) return TooLarge();
  bytes_max_ -= read;
  return read;
}

absl::StatusOr<size_t> BodyReader::ReadSome(std::span<std::byte> buffer) {
  if (input_.empty()) return transport_.Read(buffer);
  const std::string_view unused = input_.unused().substr(0, buffer.size());
  std::memcpy(buffer.data(), unused.data(), unused.size());
  const size_t bytes = unused.size();
  input_.Use(bytes);
  return bytes;
}

}  // namespace bobbin::io::http::internal
