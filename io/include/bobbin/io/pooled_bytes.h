// SPDX-License-Identifier: Apache-2.0
//
// PooledBytes: bytes that were received into a buffer of the carrier's pool.
//
// For servers with many connections at rest: a stream that waits in ReadPooled holds no buffer. It
// gets one when bytes have come, and the buffer goes back when these are dropped.
//
//   Called from   any thread; a buffer that goes back on another carrier, or none, finds its way.
//   Suspends      never.
//   Lifetime      The bytes stay until it is destroyed or assigned to, also when the stream and the
//                 runtime are gone. Who keeps many of them makes the pool allocate more.
//   Cost          A buffer is neither allocated nor freed while the pool has one.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(const bobbin::io::PooledBytes received, peer.ReadPooled());
//   BOBBIN_RETURN_IF_ERROR(peer.WriteAll(received.bytes()));

#ifndef BOBBIN_IO_POOLED_BYTES_H_
#define BOBBIN_IO_POOLED_BYTES_H_

#include <cstddef>
#include <span>
#include <utility>

namespace bobbin::io {

namespace internal {
class BufferPool;
class Socket;
}  // namespace internal

class PooledBytes {
 public:
  // The most that one read brings.
  static constexpr size_t kBytesMax = 4096;

  // No bytes: the end of a stream.
  PooledBytes() = default;
  PooledBytes(PooledBytes&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  PooledBytes& operator=(PooledBytes&& other) noexcept {
    PooledBytes old(std::move(other));
    std::swap(pool_, old.pool_);
    std::swap(bytes_, old.bytes_);
    return *this;
  }
  ~PooledBytes() {
    if (!bytes_.empty()) GiveBack();
  }

  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

 private:
  friend class internal::Socket;
  PooledBytes(internal::BufferPool* pool, std::span<std::byte> bytes)
      : pool_(pool), bytes_(bytes) {}
  void GiveBack() noexcept;

  internal::BufferPool* pool_ = nullptr;  // Null: a buffer that was allocated.
  std::span<std::byte> bytes_;            // From the beginning of the buffer on, of kBytesMax.
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_POOLED_BYTES_H_
