// SPDX-License-Identifier: Apache-2.0
//
// ChunkDecoder: takes a chunked body apart, in pieces of any size.
//
//   chunk   = size [ ";" extension ] CR LF bytes CR LF
//   body    = *chunk 1*"0" [ ";" extension ] CR LF *trailer CR LF
//
// Strict: a size is up to 16 hexadecimal digits, lines end in CR LF, there is no blank before a
// size. Extensions and trailers are read and thrown away, up to a bound, for nobody here knows
// them.
//
//   Called from   one thread at a time.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_HTTP_CHUNK_DECODER_H_
#define BOBBIN_IO_SRC_HTTP_CHUNK_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bobbin::io::http::internal {

class ChunkDecoder {
 public:
  enum class State { kFraming, kBytes, kDone, kMalformed };

  // Takes what stands between the bytes of chunks at the front of `input`, and returns how much
  // that was. Afterwards: kFraming, it wants more; kBytes, what follows belongs to the body.
  size_t TakeFraming(std::string_view input);
  State state() const { return state_; }

  // In kBytes: how many of what follows are of the chunk.
  uint64_t left() const { return left_; }
  // The caller has taken so many of them. REQUIRES: there were.
  void TakeBytes(uint64_t bytes);

 private:
  enum class At {
    kSize,       // The first digit of a size.
    kMoreSize,   // Another, or what ends them.
    kExtension,  // Up to the CR.
    kSizeLf,
    kBytesCr,  // After a chunk's bytes.
    kBytesLf,
    kTrailer,      // The first byte of a line.
    kMoreTrailer,  // Up to the CR.
    kTrailerLf,
    kLastLf,
  };
  // Of one extension; and of all trailers. Not tuned.
  static constexpr size_t kSkippedMax = 8192;
  static constexpr int kDigitsMax = 16;

  void Step(char c);
  void Expect(char c, char wanted, At next);
  void Skip(char c, At at_cr);
  void EndSize();

  State state_ = State::kFraming;
  At at_ = At::kSize;
  int digits_ = 0;
  uint64_t left_ = 0;
  size_t skipped_ = 0;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_CHUNK_DECODER_H_
