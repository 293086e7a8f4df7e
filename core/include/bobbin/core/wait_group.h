// SPDX-License-Identifier: Apache-2.0
//
// WaitGroup: counts up, counts down, and lets threads wait for zero.
//
// For parts of work that are not virtual threads of their own: callbacks, requests in flight. For
// virtual threads use TaskGroup (bobbin/sched/task_group.h), which also owns them.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Wait and WaitUntil, while the count is not zero.
//   Cancellation  A wait while the count is not zero returns CANCELLED or DEADLINE_EXCEEDED. At
//                 zero it returns OK, also to a thread that is to stop.
//   Order         The Done that reaches zero unparks all waiters, the one that waits longest first.
//   Memory        Every Done happens before the return of the Wait that it helped to end.
//   Lifetime      May be destroyed by a thread whose Wait returned OK, if no other thread is in a
//                 Wait: Done does not touch it once others can see zero. Destroying it with waiters
//                 aborts.
//   Cost          Add, Done: one compare-exchange. Wait at zero: a load.
//
// It may be used again: an Add after zero begins a new round, which those released before do not
// see.
//
// Example:
//   WaitGroup in_flight;
//   in_flight.Add();
//   client.Send(request, [&] { in_flight.Done(); });
//   BOBBIN_RETURN_IF_ERROR(in_flight.Wait());

#ifndef BOBBIN_CORE_WAIT_GROUP_H_
#define BOBBIN_CORE_WAIT_GROUP_H_

#include <cstdint>

#include "absl/status/status.h"

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin {

class WaitGroup {
 public:
  // Leaves room for the word's two flags, and makes sums of counts safe from overflow.
  static constexpr int64_t kCountMax = int64_t{1} << 40;

  WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;
  ~WaitGroup();

  // Adds `count` things to wait for. Comes before the Wait that is to see them. REQUIRES: 0 <
  // count, and the sum is at most kCountMax.
  void Add(int64_t count = 1);

  // One of them is done; the last one unparks all waiters. REQUIRES: the count is not zero.
  void Done() {
    Word word = word_.Load();
    while (true) {
      BOBBIN_CHECK(CountOf(word) > 0, "Done of a wait group whose count is zero");
      if ((word & kLocked) != 0 || word == (kOne | kHasWaiters)) break;
      if (word_.TryChange(word, word - kOne)) return;
      word = word_.Load();
    }
    DoneSlow();
  }

  // Waits until the count is zero.
  [[nodiscard]] absl::Status Wait() {
    return CountOf(word_.Load()) == 0 ? absl::OkStatus() : WaitSlow();
  }

  // The same, until `deadline` at most.
  [[nodiscard]] absl::Status WaitUntil(Deadline deadline);

  // The count at this moment. For people and tests: it is old when it is read.
  int64_t count() const { return CountOf(word_.Load()); }

 private:
  // The word: the count, above two flags.
  using Word = uint64_t;
  static constexpr Word kLocked = 1;
  static constexpr Word kHasWaiters = 2;
  static constexpr Word kOne = 4;

  static constexpr int64_t CountOf(Word word) { return static_cast<int64_t>(word / kOne); }

  void DoneSlow();
  absl::Status WaitSlow();

  // Invariant, when unlocked: at zero there are no waiters, for the last Done takes them all out.
  internal::WordLock<Word, kLocked> word_{0};
  internal::WaitQueue waiters_;  // Guarded by the lock in word_.
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_WAIT_GROUP_H_
