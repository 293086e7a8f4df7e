// SPDX-License-Identifier: Apache-2.0
//
// SharedMutex: many threads inside that only read, or one that writes. SharedLock, ExclusiveLock:
// for the length of a scope.
//
// For data that is read often and for long. Each shared lock writes to the mutex, so that for a
// few instructions inside a Mutex is as good. There is no way from a shared lock to an exclusive
// one but to unlock and to look again.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      lock and LockUntil, while anybody else is inside; lock_shared and
//                 LockSharedUntil, while a writer is inside or anybody waits.
//   Cancellation  lock and lock_shared ignore it. LockUntil and LockSharedUntil return CANCELLED or
//                 DEADLINE_EXCEEDED and hold nothing.
//   Order         First come, first served; readers that stand next to each other in the queue go
//                 in together. So neither readers nor writers starve. When a writer gives up,
//                 the readers behind it join those inside.
//   Memory        An unlock happens before every lock that follows it; an unlock_shared before the
//                 next exclusive lock.
//   Lifetime      May be destroyed by its last holder, right after its lock returned: an unlock
//                 does not touch it once others can have it. Destroying it while it is held aborts.
//   Cost          Uncontended: one compare-exchange each way, shared or not. Contended: a spin lock
//                 and a park.
//
// Locking a mutex that the thread holds exclusively, and unlocking one that is not held that way,
// abort. A thread that holds it shared must not lock it again, in either way: a writer that came
// in between would wait for the thread, and the thread for the writer.
//
// Example:
//   bobbin::SharedLock lock(mutex_);
//   return routes_.find(host)->second;

#ifndef BOBBIN_CORE_SHARED_MUTEX_H_
#define BOBBIN_CORE_SHARED_MUTEX_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin {

class ABSL_LOCKABLE SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;
  ~SharedMutex();

  // Waits until the caller is the only one inside. REQUIRES: the caller does not hold it.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (__builtin_expect(!word_.TryChange(0, WordOf(internal::Current())), 0)) {
      LockSlow(Access::kExclusive);
    }
  }

  // Takes it if nobody holds it; never suspends.
  [[nodiscard]] bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return word_.TryChange(0, WordOf(internal::Current()));
  }

  // Waits until the caller is the only one inside, or `deadline`, or a request to stop. OK means
  // that it is held, which the compiler's analysis cannot know.
  [[nodiscard]] absl::Status LockUntil(Deadline deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Hands it to the one who waits longest. REQUIRES: the caller holds it exclusively.
  void unlock() ABSL_UNLOCK_FUNCTION() {
    if (__builtin_expect(!word_.TryChange(WordOf(internal::Current()), 0), 0)) UnlockSlow();
  }

  // Waits until no writer is inside or before the caller. REQUIRES: the caller does not hold it.
  void lock_shared() ABSL_SHARED_LOCK_FUNCTION() {
    const Word word = word_.Load();
    if (__builtin_expect(!CanShare(word) || !word_.TryChange(word, WithReader(word)), 0)) {
      LockSlow(Access::kShared);
    }
  }

  // Takes it if no writer is inside and nobody waits; never suspends.
  [[nodiscard]] bool try_lock_shared() ABSL_SHARED_TRYLOCK_FUNCTION(true);

  // Waits until no writer is inside or before the caller, or `deadline`, or a request to stop. OK
  // means that it is held, which the compiler's analysis cannot know.
  [[nodiscard]] absl::Status LockSharedUntil(Deadline deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // The last one out hands it to the one who waits longest. REQUIRES: the caller holds it shared.
  void unlock_shared() ABSL_UNLOCK_FUNCTION() {
    const Word word = word_.Load();
    if (__builtin_expect(!CanLeave(word) || !word_.TryChange(word, WithoutReader(word)), 0)) {
      UnlockSharedSlow();
    }
  }

  // Whether the calling thread holds it exclusively. For assertions.
  bool IsHeldByCurrent() const;
  // Aborts unless the calling thread holds it exclusively; tells the compiler's analysis so.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK();
  // Aborts unless somebody holds it shared, or the calling thread exclusively; tells the compiler's
  // analysis that the calling thread may read.
  void AssertSharedHeld() const ABSL_ASSERT_SHARED_LOCK();

 private:
  enum class Access : uint8_t { kExclusive, kShared };

  // The word: the writer's address, or the number of readers with kShared; and two bits.
  using Word = uintptr_t;
  static constexpr Word kQueueLocked = 1;
  static constexpr Word kHasWaiters = 2;
  static constexpr Word kShared = 4;
  static constexpr Word kOneReader = 8;
  static_assert(internal::kCacheLineBytes >= kOneReader, "an address leaves these bits free");

  static Word WordOf(const internal::Thread& thread) { return reinterpret_cast<Word>(&thread); }
  // The writer's address, or zero.
  static Word WriterOf(Word word) {
    return (word & kShared) != 0 ? 0 : word & ~(kQueueLocked | kHasWaiters);
  }
  // Whether a reader may go in at once.
  static bool CanShare(Word word) {
    return word == 0 || (word & (kQueueLocked | kHasWaiters | kShared)) == kShared;
  }
  // Whether a reader may leave without looking at the queue.
  static bool CanLeave(Word word) {
    return (word & (kQueueLocked | kShared)) == kShared &&
           ((word & kHasWaiters) == 0 || word >= 2 * kOneReader);
  }
  static Word WithReader(Word word) { return (word | kShared) + kOneReader; }
  static Word WithoutReader(Word word) {
    const Word rest = word - kOneReader;
    return rest == kShared ? 0 : rest;
  }

  void LockSlow(Access access);
  absl::Status WaitUntil(Deadline deadline, Access access);
  void UnlockSlow();
  void UnlockSharedSlow();
  // Goes in and returns true, or joins the queue.
  bool TakeOrQueue(internal::Waiter& waiter, Access access, internal::Phase phase);
  // With the queue's lock held: lets those go in whose turn it is beside `inside` (zero, a writer,
  // or readers), and returns the word to unlock with.
  Word Admit(Word inside, internal::WakeList& woken);

  // States: 0 (free); a writer; readers; the last two with waiters. Invariant, when unlocked: a
  // free mutex has no waiters, and with readers inside the one at the head wants to write, or has
  // been interrupted and is about to leave.
  //
  // Why no wake-up is lost. A thread joins the queue only under its lock, and only while somebody
  // is inside who must take that lock, too, before the mutex is free: a reader leaves without it
  // only while another one stays. Whoever makes room - the last to leave, and a waiter that gives
  // up - admits all those who fit into it before the lock is given up.
  internal::WordLock<Word, kQueueLocked> word_{0};
  internal::WaitQueue waiters_;  // Guarded by the lock in word_. Waiter::amount: an Access.
};

// Rejected. Letting in all waiting readers after each writer: more of them at the same time, but a
// writer could be overtaken by readers that came after it. Counting readers by fetch_add: cheaper
// among many readers, but one that must wait has to undo it, on a mutex that may be gone by then.

// Holds a SharedMutex, as the only one, from construction to destruction.
class ABSL_SCOPED_LOCKABLE ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;
  ~ExclusiveLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  SharedMutex& mutex_;
};

// Holds a SharedMutex, beside other readers, from construction to destruction.
class ABSL_SCOPED_LOCKABLE SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_SHARED_MUTEX_H_
