// SPDX-License-Identifier: Apache-2.0

#include "io/src/buffer_pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>

namespace bobbin::io {

void PooledBytes::GiveBack() noexcept {
  if (pool_ != nullptr) {
    pool_->GiveBack(bytes_.data());
  } else {
    const std::unique_ptr<std::byte[]> last(bytes_.data());
  }
}

namespace internal {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr int kMask = BufferPool::kQueued - 1;

// Not to be inlined: what a compiler knows of the OS thread is wrong behind a wait.
[[gnu::noinline]] uintptr_t ThisOsThread() noexcept {
  return static_cast<uintptr_t>(pthread_self());
}

}  // namespace

BufferPool::BufferPool() : owner_(ThisOsThread()) {
  void* const memory = ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;  // All will be allocated one by one.
  memory_ = static_cast<std::byte*>(memory);
  free_.reserve(kBuffers);
  for (size_t i = kBuffers; i-- > 0;) free_.push_back(memory_ + i * kStride);
}

BufferPool::~BufferPool() {
  if (memory_ != nullptr) ::munmap(memory_, kMemoryBytes);
  std::free(entries_);
}

bool BufferPool::Attach(Ring& ring) {
  if (memory_ == nullptr) return false;
  void* const entries = std::aligned_alloc(kPageBytes, kPageBytes);
  if (entries == nullptr) return false;
  static_assert(kQueued * sizeof(io_uring_buf) <= kPageBytes);
  if (!ring.RegisterBuffers(entries, kQueued, kGroup)) {
    std::free(entries);
    return false;
  }
  entries_ = static_cast<io_uring_buf_ring*>(entries);
  io_uring_buf_ring_init(entries_);
  while (queued_ < kQueued) QueueFree();
  return true;
}

void BufferPool::Close(Ring* ring) noexcept {
  if (entries_ != nullptr) ring->UnregisterBuffers(kGroup);
  is_open_ = false;
  Drop();
}

std::byte* BufferPool::TakeChosen(uint32_t number) noexcept {
  users_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the owner counts itself.
  --queued_;
  if (!free_.empty()) QueueFree();
  return memory_ + number * kStride;
}

std::byte* BufferPool::Take() {
  if (free_.empty()) TakeReturned();
  users_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the owner counts itself.
  if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(kBufferBytes).release();
  std::byte* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

bool BufferPool::TakeReturned() noexcept {
  // relaxed: if it is missed now, it is found the next time.
  if (returned_.load(std::memory_order_relaxed) == nullptr) return false;
  // Pairs with the release in GiveBack.
  Returned* first = returned_.exchange(nullptr, std::memory_order_acquire);
  while (first != nullptr) {
    Returned* const next = first->next;
    Free(reinterpret_cast<std::byte*>(first));
    first = next;
  }
  return true;
}

void BufferPool::Free(std::byte* buffer) noexcept {
  if (entries_ != nullptr && queued_ < kQueued) {
    Queue(buffer);
  } else {
    free_.push_back(buffer);
  }
}

void BufferPool::Queue(std::byte* buffer) noexcept {
  const size_t number = static_cast<size_t>(buffer - memory_) / kStride;
  io_uring_buf_ring_add(entries_, buffer, kBufferBytes, static_cast<uint16_t>(number), kMask, 0);
  io_uring_buf_ring_advance(entries_, 1);
  ++queued_;
}

void BufferPool::QueueFree() noexcept {
  Queue(free_.back());
  free_.pop_back();
}

void BufferPool::GiveBack(std::byte* buffer) noexcept {
  if (!Owns(buffer)) {
    const std::unique_ptr<std::byte[]> last(buffer);
  } else if (ThisOsThread() == owner_) {
    if (is_open_) Free(buffer);
  } else {
    Returned* const returned = std::construct_at(reinterpret_cast<Returned*>(buffer));
    Returned* first = returned_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
    do {
      returned->next = first;
      // Pairs with the acquire in TakeReturned.
    } while (!returned_.compare_exchange_weak(first, returned, std::memory_order_release,
                                              std::memory_order_relaxed));  // relaxed: anew.
  }
  Drop();
}

void BufferPool::Drop() noexcept {
  // Pairs with itself: the last one comes after all others.
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    const std::unique_ptr<BufferPool> last(this);
}

}  // namespace internal

}  // namespace bobbin::io
