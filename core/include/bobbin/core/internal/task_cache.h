// SPDX-License-Identifier: Apache-2.0
//
// TaskPool: the control blocks of one runtime. TaskCache: one carrier's free ones.
//
// A pool reserves address space for all the blocks it may ever have, in one mapping, and carves
// them from it in chunks of 2 MiB (one huge page where the system grants it). Blocks are reused for
// ever and given back when the pool ends. The pool's capacity is the limit on live virtual threads.
// A cache takes and gives blocks in batches, so that the pool's lock is met once in kBatch spawns.
//
//   Called from   TaskPool: any thread. TaskCache: its carrier.
//   Suspends      never.
//   Cost          from the cache: two loads and a store. A new chunk: a page fault for
//                 10,922 blocks.

#ifndef BOBBIN_CORE_INTERNAL_TASK_CACHE_H_
#define BOBBIN_CORE_INTERNAL_TASK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/task.h>

namespace bobbin::internal {

// Blocks that hang together by Task::link_.
struct TaskBatch {
  Task* first = nullptr;
  size_t count = 0;
};

class TaskPool {
 public:
  static constexpr size_t kChunkBytes = size_t{2} << 20;

  // Reserves fewer when the address space is limited (RLIMIT_AS); aborts when there is none.
  explicit TaskPool(size_t tasks_max) noexcept;
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  ~TaskPool();

  // Up to `count` blocks; none when the limit is reached or the system has no memory.
  TaskBatch Allocate(size_t count) noexcept;
  void Free(TaskBatch batch) noexcept;
  // Frees one block from whatever thread; carriers use their cache.
  void Free(Task& task) noexcept;

  size_t tasks_max() const noexcept { return tasks_max_; }
  // How many blocks have been carved so far.
  size_t carved() noexcept;
  // Unique among this pool's virtual threads; `count` of them from the result on.
  uint64_t TakeIds(uint64_t count) noexcept;

  // A block that was carved, live or not. REQUIRES: index < carved().
  Task& At(size_t index) const noexcept {
    return *std::launder(reinterpret_cast<Task*>(BytesAt(index)));
  }
  // How many blocks lie one behind the other from `index` on, up to the end of its chunk.
  static constexpr size_t RunLengthAt(size_t index) noexcept {
    return kTasksPerChunk - index % kTasksPerChunk;
  }
  // Calls `visit(task)` for every block that was ever in use, live or not.
  template <typename Visit>
  void ForEach(Visit visit) {
    const size_t carved_now = carved();
    for (size_t i = 0; i < carved_now; ++i) visit(At(i));
  }

 private:
  friend class Task;
  friend struct DebuggerView;
  // The head of a chunk, which is aligned to its size: how a block finds its pool.
  struct alignas(kCacheLineBytes) ChunkHead {
    TaskPool* pool;
  };
  static constexpr size_t kTasksPerChunk = (kChunkBytes - sizeof(ChunkHead)) / sizeof(Task);
  static size_t ChunkCount(size_t tasks) noexcept {
    return (tasks + kTasksPerChunk - 1) / kTasksPerChunk;
  }
  char* BytesAt(size_t index) const noexcept {
    return chunks_ + index / kTasksPerChunk * kChunkBytes + sizeof(ChunkHead) +
           index % kTasksPerChunk * sizeof(Task);
  }

  size_t tasks_max_;
  char* chunks_ = nullptr;  // The reservation, aligned to a chunk.
  TaskPool* next_pool_ = nullptr;  // For debuggers: see debugger.h.
  SpinLock lock_;
  size_t carved_ ABSL_GUARDED_BY(lock_) = 0;
  Task* free_first_ ABSL_GUARDED_BY(lock_) = nullptr;
  uint64_t next_id_ ABSL_GUARDED_BY(lock_) = 1;
};

class TaskCache {
 public:
  static constexpr size_t kBatch = 256;

  explicit TaskCache(TaskPool& pool) noexcept : pool_(pool) {}
  TaskCache(const TaskCache&) = delete;
  TaskCache& operator=(const TaskCache&) = delete;
  ~TaskCache() { GiveBack(count_); }

  // A block that nobody uses, or null when the pool's limit is reached.
  Task* Take() noexcept {
    if (__builtin_expect(first_ == nullptr, 0) && !Refill()) return nullptr;
    Task* const task = first_;
    first_ = task->link_;
    --count_;
    return task;
  }
  void Give(Task& task) noexcept {
    task.link_ = first_;
    first_ = &task;
    if (__builtin_expect(++count_ > 4 * kBatch, 0)) GiveBack(2 * kBatch);
  }
  uint64_t TakeId() noexcept {
    if (__builtin_expect(next_id_ == end_id_, 0)) RefillIds();
    return next_id_++;
  }
  TaskPool& pool() noexcept { return pool_; }

 private:
  bool Refill() noexcept;
  void RefillIds() noexcept;
  void GiveBack(size_t count) noexcept;

  TaskPool& pool_;
  Task* first_ = nullptr;
  size_t count_ = 0;
  uint64_t next_id_ = 0;
  uint64_t end_id_ = 0;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_TASK_CACHE_H_
