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
//   Order         Bounded, not strict. Where sections suspend, first come, first served among the
//                 threads of a carrier; other carriers' get it within about a millisecond. Where
//                 they do not, a running thread may overtake the queue for about that long.
//   Memory        An unlock happens before the lock that follows it.
//   Lifetime      May be destroyed by its last holder, right after lock returned: an unlock does
//                 not touch it once another thread can have it. Destroying it while it is held
//                 aborts.
//   Cost          Uncontended: one compare-exchange each way. Held by a thread of another carrier:
//                 a few microseconds of looking, then a park. Else contended: a park.
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
    const Word self = WordOf(internal::Current());
    if (__builtin_expect(!word_.TryChange(0, self), 0)) LockSlow();
  }

  // Takes it if nobody holds it; never suspends.
  [[nodiscard]] bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return word_.TryChange(0, WordOf(internal::Current())) || TryLockSlow();
  }

  // Waits until the caller holds it, or `deadline`, or a request to stop. OK means that it is held,
  // which the compiler's analysis cannot know.
  [[nodiscard]] absl::Status LockUntil(Deadline deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Gives it up, or to one who waits. REQUIRES: the caller holds it.
  void unlock() ABSL_UNLOCK_FUNCTION() {
    const Word self = WordOf(internal::Current());
    if (__builtin_expect(!word_.TryChange(self, 0), 0)) UnlockSlow();
  }

  // Whether the calling thread holds it. For assertions.
  bool IsHeldByCurrent() const;
  // Aborts unless the calling thread holds it; tells the compiler's analysis so. For functions that
  // are called with the mutex held, where the analysis cannot follow: callbacks, predicates.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK();

 private:
  // One thread's attempt to get it; see mutex.cc.
  class Contender;

  // The word: the owner's address, or zero, and in what an address leaves free: at the top the tag
  // of the owner's carrier, at the bottom flags.
  using Word = uintptr_t;
  static constexpr Word kQueueLocked = 1;
  static constexpr Word kHasWaiters = 2;  // The queue is not empty.
  static constexpr Word kHasRunner = 4;   // One was woken to take it, and has not yet tried.
  static constexpr Word kIsOverdue = 8;   // The first of the queue has waited too long.
  static constexpr Word kFlags = kHasWaiters | kHasRunner | kIsOverdue;
  static constexpr int kTagShift = 56;
  static constexpr Word kAddress = (Word{1} << kTagShift) - alignof(internal::Thread);

  static Word WordOf(const internal::Thread& thread) noexcept {
    return reinterpret_cast<Word>(&thread) | Word{thread.carrier_tag()} << kTagShift;
  }
  static Word OwnerOf(Word word) noexcept { return word & kAddress; }
  static uint8_t TagOf(Word word) noexcept { return static_cast<uint8_t>(word >> kTagShift); }

  // Its word, the first member, names the holder.
  static constexpr internal::WaitKind kWaitKind = {"mutex", internal::WaitObject::kAddress, 0};

  void LockSlow();
  bool TryLockSlow();
  void UnlockSlow();

  // Takes it, after some looking if that can help. False if it is better to wait.
  bool TryTake(Contender& self);
  absl::Status Contend(Contender& self, internal::Phase phase);
  // Joins the queue, if the mutex is still held.
  bool Join(Contender& self, internal::Phase phase);
  // The runner gives up, if the mutex is still held: its owner then wakes another.
  bool StepBack();
  // After a wait that a deadline or a cancel has ended.
  void Leave(Contender& self);
  // Locks the queue and returns the word, or returns zero because nobody holds the mutex.
  Word LockQueueOfHeld();
  // Who gets it or may try for it, or null: taken out of the queue, whose lock the caller holds.
  Contender* ClaimNext(const internal::Thread& self, Word word);
  Contender* ChooseNext(const internal::Thread& self, Word word);

  // States
  //
  //   0                       free
  //   runner [+ waiters]      free; one who was woken will try to take it
  //   owner [+ flags]         held
  //
  // A free mutex with waiters has a runner, so that one of them will look.
  internal::WordLock<Word, kQueueLocked> word_{0};
  internal::WaitQueue waiters_;  // Contenders. Guarded by the lock in word_.
  // How often its carrier had chosen a thread when the owner took it, if it had to contend. The
  // owner's.
  uint32_t picks_when_taken_ = 0;
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
