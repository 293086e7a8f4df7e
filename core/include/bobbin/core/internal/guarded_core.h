// SPDX-License-Identifier: Apache-2.0
//
// GuardedCore: what all guarded values have in common - the mutex, and those who wait for the value
// to be as they want it.
//
// A thread that waits leaves its predicate behind. Whoever unlocks after a change calls the
// predicates of those who wait, the longest wait first, and wakes the first one that is satisfied:
// nobody is woken in vain. Everything here is guarded by the mutex, so the predicate is called
// while its owner cannot go on, not even when its deadline has passed: to return, the owner needs
// the mutex.
//
// Why no wake-up is lost. A thread joins the queue with the mutex held, after its predicate has
// said no; every change of the value ends with an unlock that calls the predicates. One thread is
// woken at a time, and it owes the others the same: whatever it finds when it has the mutex again,
// it calls the predicates of the rest before it gives the mutex up, whether it has changed the
// value or not. A thread whose wait a deadline or a cancel has ended is passed over, and the next
// one is asked.
//
// Rejected. Waking all who wait after each change, to let them look for themselves: each change
// would cost as many switches as there are waiters. Waking all who are satisfied: all but one
// would queue for the mutex, and often find that somebody was faster.
//
//   Called from   virtual, platform and foreign threads that hold the mutex.
//   Suspends      Await.

#ifndef BOBBIN_CORE_INTERNAL_GUARDED_CORE_H_
#define BOBBIN_CORE_INTERNAL_GUARDED_CORE_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/mutex.h>

namespace bobbin::internal {

// A question about the value, on the stack of the thread that waits for a yes.
struct GuardedPredicate {
  bool (*call)(const void* function, const void* value) noexcept;
  const void* function;
  const void* value;

  // Where it runs nobody may wait, for it is another thread's question.
  bool IsTrue() const noexcept;
};

class GuardedCore {
 public:
  GuardedCore() = default;
  GuardedCore(const GuardedCore&) = delete;
  GuardedCore& operator=(const GuardedCore&) = delete;
  ~GuardedCore();

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  // Unlocks, and wakes the first who now finds what it waits for.
  void UnlockAfterChange() ABSL_UNLOCK_FUNCTION(mutex_);

  // Waits, with the mutex unlocked, until the predicate is true. The mutex is held again in every
  // case, and is to be unlocked by UnlockAfterChange.
  absl::Status Await(const GuardedPredicate& predicate) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  class Awaiter : public Waiter {
   public:
    explicit Awaiter(const GuardedPredicate& wanted) : predicate(wanted) {}
    const GuardedPredicate& predicate;
  };

  // Ends the first wait whose predicate is true.
  void ClaimSatisfied(WakeList& woken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  IntrusiveList<Awaiter> awaiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_GUARDED_CORE_H_
