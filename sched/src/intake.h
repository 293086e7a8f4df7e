// SPDX-License-Identifier: Apache-2.0
//
// Intake: new virtual threads that were given to a carrier from elsewhere, oldest first.
//
// Spawns of foreign threads and spread placements land here. The carrier moves them to its own
// deque when it passes by; while it is busy with one long run, any idle carrier may take them
// instead. While it is still being woken nobody may: else whoever is awake takes all that was meant
// to be spread.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          a short spin lock.

#ifndef BOBBIN_SCHED_SRC_INTAKE_H_
#define BOBBIN_SCHED_SRC_INTAKE_H_

#include <cstddef>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/task.h>

namespace bobbin::internal {

class Intake {
 public:
  void Push(Task& task) noexcept {
    SpinLockHolder hold(lock_);
    task.link_ = nullptr;
    *(first_ == nullptr ? &first_ : &last_->link_) = &task;
    last_ = &task;
    // Sequentially consistent: the first half of the handshake with a carrier that is about to
    // sleep.
    count_.store(count_.load(std::memory_order_relaxed) + 1);  // relaxed: the lock guards the sum.
  }

  Task* Pop() noexcept {
    if (!has_any()) return nullptr;
    SpinLockHolder hold(lock_);
    Task* const task = first_;
    if (task == nullptr) return nullptr;
    first_ = task->link_;
    // relaxed: the lock guards the sum, and a reader that sees it late looks again.
    count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    return task;
  }

  bool has_any() const noexcept {
    return count_.load(std::memory_order_relaxed) != 0;  // relaxed: a hint.
  }
  // The same for a carrier that is about to sleep.
  bool IsEmptyOrdered() const noexcept { return count_.load() == 0; }

 private:
  SpinLock lock_;
  // Linked by Task::link_: a new task is in no inbox, and its other link may be its group's.
  Task* first_ ABSL_GUARDED_BY(lock_) = nullptr;
  Task* last_ ABSL_GUARDED_BY(lock_) = nullptr;
  Atomic<size_t> count_{0};  // Written under the lock; read by carriers.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_INTAKE_H_
