// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: the buffers of one carrier, into which it receives for those who wait without one.
//
// With a ring some of the free buffers lie in a queue, from which the kernel takes one when bytes
// have come (a provided buffer ring); the queue is filled up from the others as it is used. With an
// epoll, and where the queue has run dry, a call takes one. Where there is none a buffer is
// allocated, so that nobody waits for one.
//
// A buffer
//
//   free      lies on top of others that are: the last one that was used, and is warm, is the next
//   queued    the kernel may take it
//   lent      somebody has its PooledBytes
//   returned  lies on a stack, for the owner to take: it came from another OS thread
//
//   free -> queued      the owner, when the queue has room
//   queued -> lent      the kernel chooses it, the owner learns of it with a completion
//   free -> lent        the owner, with a call
//   lent -> free        the owner, if it is given back on its OS thread
//   lent -> returned    any other OS thread
//   returned -> free    the owner, before it next needs buffers
//
// Why no buffer is lost. A push to the stack and the owner's exchange of the whole stack are
// atomic; nobody else takes from it, so nothing can be popped twice. Why none is used when the pool
// is gone: each buffer that is lent counts, as does the owner, and the memory goes with the last of
// them.
//
//   Called from   its owner's OS thread; GiveBack by any thread.
//   Suspends      never.
//   Cost          4 MiB of address space a carrier, of which what was used takes memory.

#ifndef BOBBIN_IO_SRC_BUFFER_POOL_H_
#define BOBBIN_IO_SRC_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <liburing.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/io/pooled_bytes.h>

#include "io/src/ring.h"

namespace bobbin::io::internal {

class BufferPool {
 public:
  // How many the kernel may choose from: a power of two. It takes them in turn, so all of them are
  // in use; no more than an enter brings, and some to spare. Not tuned.
  static constexpr uint32_t kQueued = 128;
  // With a thousand connections that are all answered at once, half of them hold a buffer.
  static constexpr uint32_t kBuffers = 1024;
  static constexpr size_t kBufferBytes = PooledBytes::kBytesMax;

  BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  // Called by the last user.
  ~BufferPool();

  // Has the kernel take buffers for `ring` from it; false: this kernel does not do that, and the
  // pool is as before. REQUIRES: nothing is lent.
  bool Attach(Ring& ring);
  // The owner's last call.
  void Close(Ring* ring) noexcept;

  // Whether the kernel would find a buffer.
  bool has_queued() const { return queued_ != 0; }
  // The number by which entries name it.
  static constexpr uint16_t kGroup = 0;

  // Lends one: that which the kernel has chosen, or, where the kernel has none, one that is free or
  // allocated.
  std::byte* TakeChosen(uint32_t number) noexcept;
  std::byte* Take();
  // What came back from elsewhere is free again. Returns whether there was any.
  bool TakeReturned() noexcept;

  // REQUIRES: it was lent. Called from: any thread.
  void GiveBack(std::byte* buffer) noexcept;

 private:
  struct Returned {
    Returned* next = nullptr;
  };

  // Buffers that all begin at the same place of a page would meet in a few sets of the cache.
  static constexpr size_t kStride = kBufferBytes + bobbin::internal::kCacheLineBytes;
  static constexpr size_t kMemoryBytes = kBuffers * kStride;

  bool Owns(const std::byte* buffer) const {
    return memory_ != nullptr && buffer >= memory_ && buffer < memory_ + kMemoryBytes;
  }
  void Free(std::byte* buffer) noexcept;
  void Queue(std::byte* buffer) noexcept;
  void QueueFree() noexcept;
  void Drop() noexcept;

  std::byte* memory_ = nullptr;
  const uintptr_t owner_;  // The OS thread.
  bool is_open_ = true;    // The owner's.
  std::vector<std::byte*> free_;
  uint32_t queued_ = 0;
  io_uring_buf_ring* entries_ = nullptr;
  // Pushed to by any thread, emptied by the owner.
  bobbin::internal::Atomic<Returned*> returned_{nullptr};
  // The owner, and those that are lent.
  bobbin::internal::Atomic<uint32_t> users_{1};
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_BUFFER_POOL_H_
