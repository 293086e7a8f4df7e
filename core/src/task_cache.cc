// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/debugger.h>
#include <bobbin/core/internal/task_cache.h>

#include "core/src/sanitizer.h"

namespace bobbin::internal {

namespace {
// Blocks may take one of so many parts of the address space; 192 bytes beside a stack of 256 KiB.
constexpr size_t kBlocksShare = 32;
}  // namespace

TaskPool::TaskPool(size_t tasks_max) noexcept : tasks_max_(tasks_max) {
  BOBBIN_CHECK(tasks_max > 0, "a runtime needs room for at least one virtual thread");
  // Of a limited address space the stacks need far more than the blocks.
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    tasks_max_ = std::min(tasks_max_,
                          std::max(space.rlim_cur / kBlocksShare / sizeof(Task), kTasksPerChunk));
  }
  while (chunks_ == nullptr) {
    // One chunk more, to cut out a part that is aligned to its size: a huge page, and the way from
    // a block to its chunk.
    const size_t bytes = ChunkCount(tasks_max_) * kChunkBytes;
    void* const reserved = mmap(nullptr, bytes + kChunkBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
      BOBBIN_CHECK(tasks_max_ > kTasksPerChunk, "no address space for virtual threads");
      tasks_max_ /= 2;
      continue;
    }
    char* const low = static_cast<char*>(reserved);
    const size_t skipped = -reinterpret_cast<uintptr_t>(low) & (kChunkBytes - 1);
    chunks_ = low + skipped;
    if (skipped != 0) munmap(low, skipped);
    munmap(chunks_ + bytes, kChunkBytes - skipped);
    madvise(chunks_, bytes, MADV_HUGEPAGE);  // A wish; small pages do as well.
  }
  DebuggerView::Add(*this);
}

TaskPool::~TaskPool() {
  DebuggerView::Remove(*this);
  for (size_t chunk = 0; chunk < ChunkCount(carved()); ++chunk) {
    sanitizer::RootEnds(chunks_ + chunk * kChunkBytes, kChunkBytes);
  }
  munmap(chunks_, ChunkCount(tasks_max_) * kChunkBytes);
}

size_t TaskPool::carved() noexcept {
  SpinLockHolder hold(lock_);
  return carved_;
}

uint64_t TaskPool::TakeIds(uint64_t count) noexcept {
  SpinLockHolder hold(lock_);
  const uint64_t first = next_id_;
  next_id_ += count;
  return first;
}

TaskBatch TaskPool::Allocate(size_t count) noexcept {
  TaskBatch batch;
  SpinLockHolder hold(lock_);
  while (batch.count < count && free_first_ != nullptr) {
    Task* const task = free_first_;
    free_first_ = task->link_;
    task->link_ = batch.first;
    batch.first = task;
    ++batch.count;
  }
  while (batch.count < count && carved_ < tasks_max_) {
    if (carved_ % kTasksPerChunk == 0) {
      char* const chunk = chunks_ + carved_ / kTasksPerChunk * kChunkBytes;
      ::new (static_cast<void*>(chunk)) ChunkHead{this};
      sanitizer::RootBegins(chunk, kChunkBytes);
    }
    Task* const task = ::new (static_cast<void*>(BytesAt(carved_))) Task();
    ++carved_;
    task->link_ = batch.first;
    batch.first = task;
    ++batch.count;
  }
  return batch;
}

void TaskPool::Free(TaskBatch batch) noexcept {
  if (batch.first == nullptr) return;
  Task* last = batch.first;
  while (last->link_ != nullptr) last = last->link_;
  SpinLockHolder hold(lock_);
  last->link_ = free_first_;
  free_first_ = batch.first;
}

void TaskPool::Free(Task& task) noexcept {
  task.link_ = nullptr;
  Free(TaskBatch{&task, 1});
}

bool TaskCache::Refill() noexcept {
  const TaskBatch batch = pool_.Allocate(kBatch);
  first_ = batch.first;
  count_ = batch.count;
  return first_ != nullptr;
}

void TaskCache::RefillIds() noexcept {
  next_id_ = pool_.TakeIds(kBatch);
  end_id_ = next_id_ + kBatch;
}

void TaskCache::GiveBack(size_t count) noexcept {
  if (count == 0) return;
  TaskBatch batch{first_, count};
  Task* last = first_;
  for (size_t i = 1; i < count; ++i) last = last->link_;
  first_ = last->link_;
  last->link_ = nullptr;
  count_ -= count;
  pool_.Free(batch);
}

}  // namespace bobbin::internal
