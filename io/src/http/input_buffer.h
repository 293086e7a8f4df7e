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
// The storage is a buffer of the carrier's pool, in which bytes have come, as long as that is large
// enough, and then one of its own.
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
#include <bobbin/io/pooled_bytes.h>

namespace bobbin::io::http::internal {

class InputBuffer {
 public:
  std::string_view unused() const { return {storage_ + begin_, end_ - begin_}; }
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
    return std::as_writable_bytes(std::span(storage_ + end_, capacity_ - end_));
  }
  void Received(size_t bytes) { end_ += bytes; }

  // Takes over what was received. REQUIRES: it is empty, and nothing is pinned.
  void Adopt(PooledBytes received) {
    BOBBIN_DCHECK(empty() && pinned_ == 0, "a buffer in use is replaced");
    own_.reset();
    pooled_ = std::move(received);
    storage_ = reinterpret_cast<char*>(pooled_.bytes().data());
    capacity_ = PooledBytes::kBytesMax;
    begin_ = 0;
    end_ = pooled_.size();
  }
  // Holds no memory until there is something again. REQUIRES: as Adopt.
  void Release() {
    BOBBIN_DCHECK(empty() && pinned_ == 0, "a buffer in use is released");
    own_.reset();
    pooled_ = PooledBytes();
    storage_ = nullptr;
    capacity_ = begin_ = end_ = 0;
  }
  size_t capacity() const { return capacity_; }

 private:
  static constexpr size_t kBytesMin = 4096;

  void Grow(size_t capacity) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > begin_) std::memcpy(larger.get(), storage_ + begin_, end_ - begin_);
    own_ = std::move(larger);
    pooled_ = PooledBytes();
    storage_ = own_.get();
    capacity_ = capacity;
    end_ -= begin_;
    begin_ = 0;
  }
  void Move(size_t to) {
    std::memmove(storage_ + to, storage_ + begin_, end_ - begin_);
    end_ -= begin_ - to;
    begin_ = to;
  }

  char* storage_ = nullptr;  // One of the next two.
  std::unique_ptr<char[]> own_;
  PooledBytes pooled_;
  size_t capacity_ = 0;
  size_t pinned_ = 0;  // Where what is pinned ends; 0: nothing is.
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_INPUT_BUFFER_H_
