// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/chunk_decoder.h"

#include <bobbin/core/check.h>

#include "io/src/http/ascii.h"

namespace bobbin::io::http::internal {

namespace {

// -1: it is no hexadecimal digit.
int DigitOf(char c) {
  const char lower = ToLower(c);
  if (IsDigit(c)) return c - '0';
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

size_t ChunkDecoder::TakeFraming(std::string_view input) {
  size_t taken = 0;
  while (taken < input.size() && state_ == State::kFraming) Step(input[taken++]);
  return taken;
}

void ChunkDecoder::TakeBytes(uint64_t bytes) {
  BOBBIN_DCHECK(state_ == State::kBytes && bytes <= left_, "these bytes are not of the chunk");
  left_ -= bytes;
  if (left_ == 0) state_ = State::kFraming;
}

void ChunkDecoder::Step(char c) {
  switch (at_) {
    case At::kSize:
    case At::kMoreSize:
      if (const int digit = DigitOf(c); digit >= 0) {
        if (++digits_ > kDigitsMax) break;
        left_ = left_ << 4 | static_cast<uint64_t>(digit);
        at_ = At::kMoreSize;
        return;
      }
      if (at_ == At::kSize) break;
      if (c == '\r') {
        at_ = At::kSizeLf;
        return;
      }
      if (c != ';') break;
      skipped_ = 0;
      at_ = At::kExtension;
      return;
    case At::kExtension:
      return Skip(c, At::kSizeLf);
    case At::kSizeLf:
      if (c != '\n') break;
      return EndSize();
    case At::kBytesCr:
      return Expect(c, '\r', At::kBytesLf);
    case At::kBytesLf:
      return Expect(c, '\n', At::kSize);
    case At::kTrailer:
      if (c == '\r') {
        at_ = At::kLastLf;
        return;
      }
      at_ = At::kMoreTrailer;
      return Skip(c, At::kTrailerLf);
    case At::kMoreTrailer:
      return Skip(c, At::kTrailerLf);
    case At::kTrailerLf:
      return Expect(c, '\n', At::kTrailer);
    case At::kLastLf:
      if (c != '\n') break;
      state_ = State::kDone;
      return;
  }
  state_ = State::kMalformed;
}

void ChunkDecoder::Expect(char c, char wanted, At next) {
  if (c != wanted) {
    state_ = State::kMalformed;
  } else {
    at_ = next;
  }
}

void ChunkDecoder::Skip(char c, At at_cr) {
  if (c == '\r') {
    at_ = at_cr;
  } else if (!IsFieldValue({&c, 1}) || ++skipped_ > kSkippedMax) {
    state_ = State::kMalformed;
  }
}

void ChunkDecoder::EndSize() {
  digits_ = 0;
  if (left_ == 0) {
    skipped_ = 0;
    at_ = At::kTrailer;
  } else {
    at_ = At::kBytesCr;
    state_ = State::kBytes;
  }
}

}  // namespace bobbin::io::http::internal
