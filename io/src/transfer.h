// SPDX-License-Identifier: Apache-2.0
//
// Transfer: the parts of a read or a write that are still to do, as the kernel wants them.
//
// Any number of parts, of any length; a call takes so many of them as fit into its vectors.
//
//   Called from   the thread that reads or writes.
//   Suspends      never.
//   Lifetime      the parts must outlive it.
//   Cost          about 1 KiB of stack; a call: a walk over the vectors that it takes.

#ifndef BOBBIN_IO_SRC_TRANSFER_H_
#define BOBBIN_IO_SRC_TRANSFER_H_

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "io/src/limits.h"

namespace bobbin::io::internal {

// `Byte` is std::byte where they are read, const std::byte where they are written.
template <typename Byte>
class Transfer {
 public:
  explicit Transfer(std::span<const std::span<Byte>> parts) : parts_(parts) { SkipEmpty(); }

  bool is_done() const { return parts_.empty(); }
  size_t moved() const { return moved_; }

  // The next call's vectors: at most so many bytes. They stay until the next call of this.
  std::span<iovec> Next(size_t bytes_max) {
    size_t count = 0;
    size_t skip = skip_;
    for (size_t i = 0; i < parts_.size() && count < vectors_.size() && bytes_max > 0; ++i) {
      const std::span<Byte> part = parts_[i].subspan(skip);
      const size_t bytes = std::min(part.size(), bytes_max);
      // The kernel takes what it writes from as it takes what it writes to.
      if (bytes > 0) vectors_[count++] = {const_cast<std::byte*>(part.data()), bytes};
      bytes_max -= bytes;
      skip = 0;
    }
    return std::span(vectors_).first(count);
  }

  void Advance(size_t bytes) {
    moved_ += bytes;
    skip_ += bytes;
    SkipEmpty();
  }

 private:
  void SkipEmpty() {
    while (!parts_.empty() && skip_ >= parts_.front().size()) {
      skip_ -= parts_.front().size();
      parts_ = parts_.subspan(1);
    }
  }

  std::span<const std::span<Byte>> parts_;
  size_t skip_ = 0;  // Of the first part.
  size_t moved_ = 0;
  std::array<iovec, kVectorsMax> vectors_;
};

// What the vectors hold together.
inline size_t SizeOf(std::span<const iovec> vectors) {
  size_t bytes = 0;
  for (const iovec& vector : vectors) bytes += vector.iov_len;
  return bytes;
}

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TRANSFER_H_
