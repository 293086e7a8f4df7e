// SPDX-License-Identifier: Apache-2.0
//
// BufferArena: one receive buffer for every descriptor the process may have, reserved at once and
// touched only where a connection receives. An idle connection costs no memory, a buffer is found
// by one multiplication, and nothing is allocated while serving.

#ifndef BOBBIN_BENCH_ECHO_BUFFER_ARENA_H_
#define BOBBIN_BENCH_ECHO_BUFFER_ARENA_H_

#include <sys/mman.h>

#include <cstddef>

namespace bobbin::bench {

class BufferArena {
 public:
  BufferArena(size_t count, size_t buffer_bytes)
      : stride_(buffer_bytes + kColourBytes), bytes_(count * stride_) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  BufferArena(const BufferArena&) = delete;
  BufferArena& operator=(const BufferArena&) = delete;
  ~BufferArena() {
    if (is_open()) munmap(memory_, bytes_);
  }

  bool is_open() const { return memory_ != MAP_FAILED; }
  std::byte* At(size_t index) const { return static_cast<std::byte*>(memory_) + index * stride_; }

 private:
  // Buffers that all begin at the same offset in a page share a few cache sets and evict each
  // other; one line more apiece spreads them.
  static constexpr size_t kColourBytes = 64;

  size_t stride_;
  size_t bytes_;
  void* memory_;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_BUFFER_ARENA_H_
