// SPDX-License-Identifier: Apache-2.0
//
// Event: something that happens once, and those who wait for it.
//
// Once set it stays set: there is no reset, so nobody can miss it. To count several things down use
// WaitGroup; to wait for a changing condition use Condition.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Wait and WaitUntil, while it is not set.
//   Cancellation  A wait for an event that is not set returns CANCELLED or DEADLINE_EXCEEDED. For
//                 one that is set it returns OK, also to a thread that is to stop.
//   Order         Set unparks all waiters, the one that waits longest first.
//   Memory        Set happens before the return of every Wait, and before every IsSet that says
//                 true.
//   Lifetime      May be destroyed by a thread that has seen it set, if no other thread is in a
//                 Wait: Set does not touch it once others can see it set. Destroying it with
//                 waiters aborts.
//   Cost          Set without waiters: one compare-exchange. Wait for a set event: a load.
//
// Example:
//   Event ready;
//   group.Spawn([&] { Load(table); ready.Set(); });
//   BOBBIN_RETURN_IF_ERROR(ready.Wait());

#ifndef BOBBIN_CORE_EVENT_H_
#define BOBBIN_CORE_EVENT_H_

#include <cstdint>

#include "absl/status/status.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin {

namespace internal {
class EventPlace;
}  // namespace internal

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  // Makes it happen, and unparks everyone who waits. Setting it again does nothing.
  void Set() {
    if (__builtin_expect(!word_.TryChange(0, kSet), 0)) SetSlow();
  }

  // Whether it has happened; never suspends.
  [[nodiscard]] bool IsSet() const { return (word_.Load() & kSet) != 0; }

  // Waits until it is set.
  [[nodiscard]] absl::Status Wait() { return IsSet() ? absl::OkStatus() : WaitSlow(); }

  // The same, until `deadline` at most.
  [[nodiscard]] absl::Status WaitUntil(Deadline deadline);

 private:
  friend class internal::EventPlace;
  using Word = uint32_t;
  static constexpr Word kLocked = 1;
  static constexpr Word kHasWaiters = 2;
  static constexpr Word kSet = 4;

  void SetSlow();
  absl::Status WaitSlow();
  // Takes out a waiter whose wait has ended; whether it is set now.
  bool Forget(internal::Waiter& waiter);

  // States: 0; kHasWaiters; kSet. A set event has no waiters, for Set takes them all out.
  internal::WordLock<Word, kLocked> word_{0};
  internal::WaitQueue waiters_;  // Guarded by the lock in word_.
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_EVENT_H_
