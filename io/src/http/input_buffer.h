// SPDX-License-Identifier: Apache-2.0
//
// InputBuffer: what a connection has received and nobody has used yet.
//
//   storage   | pinned | used | unused | room |
//             0     pinned  begin     end   capacity
//
// The pinned part is the header that is being looked at through views: it stays where it is until
// Unpin. While it is pinned the buffer does not grow.
//
//   Called from   one thread at a time.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_HTTP_INPUT_BUFFER_H_
#define BOBBIN_IO_SRC_HTTP_INPUT_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <bobbin/core/check.h>

namespace bobbin::io::http::internal {

class InputBuffer {
 public:
  std::string_view unused() const { return {storage_.get() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }

  // Has used `bytes`. REQUIRES: they are there.
  void Use(size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = pinned_;
  }

  // Makes room for `bytes` from the first unused one on, which may move them. REQUIRES: nothing is
  // pinned.
  void Reserve(size_t bytes) {
    if (capacity_ - begin_ >= bytes) return;
    if (capacity_ >= bytes) return Move(0);
    Grow(std::max(bytes, kBytesMin));
  }

  // Uses `bytes` and keeps them in place. REQUIRES: they are there, and nothing is pinned.
  void Pin(size_t bytes) {
    begin_ += bytes;
    pinned_ = begin_;
  }
  void Unpin() {
    pinned_ = 0;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  // Where to receive to, at least a byte. REQUIRES: if something is pinned, there is room behind
  // it that is not in use.
  std::span<std::byte> Room() {
    if (end_ == capacity_) {
      if (begin_ > pinned_) {
        Move(pinned_);
      } else {
        BOBBIN_CHECK(pinned_ == 0, "a buffer grows while it is pinned");
        Grow(std::max(kBytesMin, 2 * capacity_));
      }
    }
    return std::as_writable_bytes(std::span(storage_.get() + end_, capacity_ - end_));
  }
  void Received(size_t bytes) { end_ += bytes; }

 private:
  static constexpr size_t kBytesMin = 4096;

  void Grow(size_t capacity) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > begin_) std::memcpy(larger.get(), storage_.get() + begin_, end_ - begin_);
    storage_ = std::move(larger);
    capacity_ = capacity;
    end_ -= begin_;
    begin_ = 0;
  }
  void Move(size_t to) {
    std::memmove(storage_.get() + to, storage_.get() + begin_, end_ - begin_);
    end_ -= begin_ - to;
    begin_ = to;
  }

  std::unique_ptr<char[]> storage_;
  size_t capacity_ = 0;
  size_t pinned_ = 0;  // Where what is pinned ends; 0: nothing is.
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_INPUT_BUFFER_H_
