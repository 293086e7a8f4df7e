// SPDX-License-Identifier: Apache-2.0
//
// Condition: waits, without the mutex, for a change of what the mutex protects.
//
// Whoever changes the data notifies; whoever waits looks at the data again, with the mutex held.
// The form with a predicate does that loop. For something that happens once use Event; to hand over
// values use Channel.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Wait and WaitUntil, until notified; then, if need be, until the mutex is free
//                 again.
//   Cancellation  Wait returns CANCELLED or DEADLINE_EXCEEDED. The mutex is held again in every
//                 case: the wait for it ignores both. A thread that is to stop does not give the
//                 mutex up at all.
//   Order         NotifyOne unparks the one that waits longest. No wake-up is spurious; yet a third
//                 thread may change the data before the notified one has the mutex.
//   Memory        That of the mutex.
//   Lifetime      A notified thread does not touch it again, so that it may be destroyed right
//                 after a NotifyAll; waits that a deadline or a cancel ends must have returned.
//                 Destroying it with waiters aborts.
//   Cost          A wait: two spin locks and a park. A notify without waiters: a load.
//
// All threads that wait at the same time must pass the same mutex. A notifier need not hold it, but
// must have held it for the change that it notifies of.
//
// Example:
//   MutexLock lock(mutex_);
//   BOBBIN_RETURN_IF_ERROR(changed_.Wait(mutex_, [&] { return !queue_.empty(); }));

#ifndef BOBBIN_CORE_CONDITION_H_
#define BOBBIN_CORE_CONDITION_H_

#include <cstdint>
#include <type_traits>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>
#include <bobbin/core/mutex.h>

namespace bobbin {

class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition();

  // Gives `mutex` up and waits for a notify, in one step; holds it again when it returns. REQUIRES:
  // the caller holds it.
  [[nodiscard]] absl::Status Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // The same, until `deadline` at most.
  [[nodiscard]] absl::Status WaitUntil(Mutex& mutex, Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Waits until `predicate()`, which is called with the mutex held, is true. OK means that it is.
  template <typename Predicate>
  requires std::is_invocable_r_v<bool, Predicate&>
  [[nodiscard]] absl::Status Wait(Mutex& mutex, Predicate predicate)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (!predicate()) {
      if (absl::Status stopped = Wait(mutex); !stopped.ok()) {
        return predicate() ? absl::OkStatus() : stopped;
      }
    }
    return absl::OkStatus();
  }

  // The same, until `deadline` at most.
  template <typename Predicate>
  requires std::is_invocable_r_v<bool, Predicate&>
  [[nodiscard]] absl::Status WaitUntil(Mutex& mutex, Deadline deadline, Predicate predicate)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const DeadlineScope scope(deadline);
    return Wait(mutex, predicate);
  }

  // Ends the longest wait, if there is one; never suspends.
  void NotifyOne() {
    if (word_.Load() != 0) NotifyOneSlow();
  }

  // Ends all waits; never suspends.
  void NotifyAll() {
    if (word_.Load() != 0) NotifyAllSlow();
  }

 private:
  using Word = uint32_t;
  static constexpr Word kLocked = 1;
  static constexpr Word kHasWaiters = 2;

  void NotifyOneSlow();
  void NotifyAllSlow();
  Word Flags() const { return waiters_.empty() ? 0 : kHasWaiters; }

  // States: 0; kHasWaiters. Why a notify may trust what it reads without the lock: a waiter joins
  // the queue before it unlocks the mutex, and the notifier locked it after that, to make its
  // change.
  internal::WordLock<Word, kLocked> word_{0};
  internal::WaitQueue waiters_;  // Guarded by the lock in word_.
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_CONDITION_H_
