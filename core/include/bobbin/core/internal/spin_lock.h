// SPDX-License-Identifier: Apache-2.0
//
// SpinLock: mutual exclusion for a few dozen instructions, on any kind of thread.
//
// It never suspends, so that it can protect the queues in which threads wait. Its holder must not
// wait for anything. When the holder's OS thread has been preempted, contenders give up their time
// slice instead of burning it.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          one exchange to take, one store to release.

#ifndef BOBBIN_CORE_INTERNAL_SPIN_LOCK_H_
#define BOBBIN_CORE_INTERNAL_SPIN_LOCK_H_

#include "absl/base/thread_annotations.h"

#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

class ABSL_LOCKABLE SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void Lock() noexcept ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    // Pairs with the release in Unlock.
    if (is_held_.exchange(true, std::memory_order_acquire)) LockSlow();
  }
  bool TryLock() noexcept ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    // Pairs with the release in Unlock.
    return !is_held_.exchange(true, std::memory_order_acquire);
  }
  void Unlock() noexcept ABSL_UNLOCK_FUNCTION() {
    // Pairs with the acquire in Lock, LockSlow and TryLock.
    is_held_.store(false, std::memory_order_release);
  }

 private:
  void LockSlow() noexcept;

  Atomic<bool> is_held_{false};  // Written and read by whoever wants the lock.
};

// Holds a SpinLock for a scope.
class ABSL_SCOPED_LOCKABLE SpinLockHolder {
 public:
  explicit SpinLockHolder(SpinLock& lock) noexcept ABSL_EXCLUSIVE_LOCK_FUNCTION(lock)
      : lock_(lock) {
    lock_.Lock();
  }
  SpinLockHolder(const SpinLockHolder&) = delete;
  SpinLockHolder& operator=(const SpinLockHolder&) = delete;
  ~SpinLockHolder() ABSL_UNLOCK_FUNCTION() { lock_.Unlock(); }

 private:
  SpinLock& lock_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_SPIN_LOCK_H_
