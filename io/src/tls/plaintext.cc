// SPDX-License-Identifier: Apache-2.0

#include "io/src/tls/plaintext.h"

#include <algorithm>
#include <cstring>

namespace bobbin::io::internal {

size_t Plaintext::Left(size_t bytes_max) const {
  size_t left = 0;
  size_t used = used_;
  for (const std::span<const std::byte>& part : parts_) {
    left += part.size() - used;
    used = 0;
    if (left >= bytes_max) return bytes_max;
  }
  return left;
}

std::span<const std::byte> Plaintext::Next() {
  const std::span<const std::byte> first = parts_.front().subspan(used_);
  if (first.size() >= kRecordBytesMax || parts_.size() == 1) {
    const std::span<const std::byte> piece = first.first(std::min(first.size(), kRecordBytesMax));
    Advance(piece.size());
    return piece;
  }
  if (gathered_ == nullptr) {
    gathered_ = std::make_unique_for_overwrite<std::byte[]>(Left(kRecordBytesMax));
  }
  size_t have = 0;
  while (!is_done() && have < kRecordBytesMax) {
    const std::span<const std::byte> next = parts_.front().subspan(used_);
    const size_t bytes = std::min(next.size(), kRecordBytesMax - have);
    std::memcpy(gathered_.get() + have, next.data(), bytes);
    have += bytes;
    Advance(bytes);
  }
  return {gathered_.get(), have};
}

void Plaintext::SkipEmpty() {
  while (!parts_.empty() && used_ == parts_.front().size()) {
    parts_ = parts_.subspan(1);
    used_ = 0;
  }
}

void Plaintext::Advance(size_t bytes) {
  used_ += bytes;
  SkipEmpty();
}

}  // namespace bobbin::io::internal
