// SPDX-License-Identifier: Apache-2.0
//
// Plaintext: parts of a write, taken as records.
//
// A record is sealed in one piece. Where a part is long, the piece lies in it; where parts are
// short, they are put together first, so that a header and a small body do not become two records.
//
//   Called from   one thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_TLS_PLAINTEXT_H_
#define BOBBIN_IO_SRC_TLS_PLAINTEXT_H_

#include <cstddef>
#include <memory>
#include <span>

namespace bobbin::io::internal {

class Plaintext {
 public:
  // What TLS allows.
  static constexpr size_t kRecordBytesMax = size_t{16} << 10;

  explicit Plaintext(std::span<const std::span<const std::byte>> parts) : parts_(parts) {
    SkipEmpty();
  }

  bool is_done() const { return parts_.empty(); }
  // How much is left, up to `bytes_max`.
  size_t Left(size_t bytes_max) const;
  // The next record's; valid until the next call. REQUIRES: !is_done().
  std::span<const std::byte> Next();

 private:
  void SkipEmpty();
  void Advance(size_t bytes);

  std::span<const std::span<const std::byte>> parts_;  // The first one is not all used.
  size_t used_ = 0;                                    // Of the first.
  std::unique_ptr<std::byte[]> gathered_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_PLAINTEXT_H_
