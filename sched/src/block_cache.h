// SPDX-License-Identifier: Apache-2.0
//
// BlockCache: what a carrier keeps of small blocks of memory, for records that come and go by the
// hundred thousand a second, such as those of tasks.
//
// The C library keeps seven blocks of a size for each OS thread and takes a longer way for the
// others, which costs more than all else that a task needs. A block may be taken on one carrier and
// given back on another: each keeps so many, and what is more goes back to the library.
//
//   Called from   the carrier's OS thread.
//   Suspends      never.
//   Cost          a load and two stores; the library's, where there is none, or too many.

#ifndef BOBBIN_SCHED_SRC_BLOCK_CACHE_H_
#define BOBBIN_SCHED_SRC_BLOCK_CACHE_H_

#include <cstddef>
#include <new>

namespace bobbin::internal {

class BlockCache {
 public:
  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  ~BlockCache() {
    for (Size& size : sizes_) {
      while (size.first != nullptr) ::operator delete(Pop(size));
    }
  }

  // A block of so many bytes at least. It is given back, with the same number, here or to another
  // cache, or deleted.
  void* Take(size_t bytes) {
    if (__builtin_expect(bytes > kBytesMax, 0)) return ::operator new(bytes);
    Size& size = SizeOf(bytes);
    if (__builtin_expect(size.first == nullptr, 0)) return NewBlock(bytes);
    return Pop(size);
  }
  void Give(void* block, size_t bytes) noexcept {
    if (__builtin_expect(kIsWatched || bytes > kBytesMax, 0)) return ::operator delete(block);
    Size& size = SizeOf(bytes);
    if (__builtin_expect(size.count == kKeptMax, 0)) return ::operator delete(block);
    size.first = ::new (block) Block{size.first};
    ++size.count;
  }
  // The same where there is no cache, which one may get the block later.
  static void* NewBlock(size_t bytes) {
    return ::operator new((bytes + kStepBytes - 1) / kStepBytes * kStepBytes);
  }

 private:
  // Of each size; some 60 KiB of the blocks that a task has. Not tuned.
  static constexpr size_t kKeptMax = 256;
  static constexpr size_t kStepBytes = 64;
  static constexpr size_t kBytesMax = 512;
  // A sanitizer is to see every block that is used after its end.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kIsWatched = true;
#else
  static constexpr bool kIsWatched = false;
#endif

  struct Block {
    Block* next;
  };
  struct Size {
    Block* first = nullptr;
    size_t count = 0;
  };

  Size& SizeOf(size_t bytes) noexcept { return sizes_[(bytes - 1) / kStepBytes]; }
  static void* Pop(Size& size) noexcept {
    Block* const block = size.first;
    size.first = block->next;
    --size.count;
    return block;
  }

  Size sizes_[kBytesMax / kStepBytes];
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_BLOCK_CACHE_H_
