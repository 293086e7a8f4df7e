// SPDX-License-Identifier: Apache-2.0
//
// Mutex: at most one thread inside. MutexLock: for the length of a scope.
//
// To bound how many are inside use Semaphore; to hand over values use Channel.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      lock and LockUntil, while another thread holds it.
//   Cancellation  lock ignores it. LockUntil returns CANCELLED or DEADLINE_EXCEEDED and holds
//                 nothing.
//   Order         First come, first served: unlock hands the mutex to the one who waits longest, so
//                 that nobody can overtake the queue.
//   Memory        An unlock happens before the lock that follows it.
//   Lifetime      May be destroyed by its last holder, right after lock returned: an unlock does
//                 not touch it once another thread can have it. Destroying it while it is held
//                 aborts.
//   Cost          Uncontended: one compare-exchange each way. Contended: a second one and a park.
//
// Locking a mutex that the thread holds, and unlocking one that it does not, abort.
//
// Example:
//   bobbin::MutexLock lock(mutex_);
//   balance_[id] += amount;

#ifndef BOBBIN_CORE_MUTEX_H_
#define BOBBIN_CORE_MUTEX_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex();

  // Waits until the caller holds it. REQUIRES: the caller does not hold it.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    internal::Thread& self = internal::Current();
    if (__builtin_expect(!word_.TryChange(0, WordOf(self)), 0)) LockSlow(self);
  }

  // Takes it if nobody holds it; never suspends.
  [[nodiscard]] bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return word_.TryChange(0, WordOf(internal::Current()));
  }

  // Waits until the caller holds it, or `deadline`, or a request to stop. OK means that it is held,
  // which the compiler's analysis cannot know.
  [[nodiscard]] absl::Status LockUntil(Deadline deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Hands it to the one who waits longest. REQUIRES: the caller holds it.
  void unlock() ABSL_UNLOCK_FUNCTION() {
    if (__builtin_expect(!word_.TryChange(WordOf(internal::Current()), 0), 0)) UnlockSlow();
  }

  // Whether the calling thread holds it. For assertions.
  bool IsHeldByCurrent() const;

 private:
  // The word: the owner's address, or zero; and two bits that an address leaves free.
  using Word = uintptr_t;
  static constexpr Word kQueueLocked = 1;
  static constexpr Word kHasWaiters = 2;

  static Word WordOf(const internal::Thread& thread) {
    return reinterpret_cast<Word>(&thread);
  }
  static Word OwnerOf(Word word) { return word & ~(kQueueLocked | kHasWaiters); }

  void LockSlow(internal::Thread& self);
  void UnlockSlow();
  // Takes the mutex and returns true, or joins the queue.
  bool TakeOrQueue(internal::Waiter& waiter, internal::Phase phase);

  // States: 0 (free); owner; owner with waiters. A free mutex has no waiters, for unlock hands it
  // over.
  internal::WordLock<Word, kQueueLocked> word_{0};
  internal::WaitQueue waiters_;  // Guarded by the lock in word_.
};

// Holds a Mutex from construction to destruction.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_MUTEX_H_
