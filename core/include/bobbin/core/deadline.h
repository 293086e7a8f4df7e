// SPDX-License-Identifier: Apache-2.0
//
// Deadline: a point in time, or never. DeadlineScope: every wait inside ends by then.
//
// A scope covers all waits that the thread makes while it stands, however deep in other people's
// code. Scopes nest and only shorten: an inner scope that is later than the outer one changes
// nothing. Once the deadline has passed, every further wait in the scope answers DEADLINE_EXCEEDED
// at once, until the scope ends. A CancelShield inside hides the deadline, too.
//
//   Called from   any thread; a scope must end on the thread that began it, innermost first.
//   Suspends      never; it bounds the waits of others.
//   Cancellation  independent of it.
//   Cost          a few stores. Its one timer is armed at the first wait that really suspends, and
//                 disarmed when the scope ends; of a thread that migrates, at each such wait.
//
// Example:
//   bobbin::DeadlineScope scope(std::chrono::seconds(2));
//   BOBBIN_ASSIGN_OR_RETURN(auto peer, bobbin::io::TcpStream::Connect("127.0.0.1:7000"));

#ifndef BOBBIN_CORE_DEADLINE_H_
#define BOBBIN_CORE_DEADLINE_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/timer_node.h>

namespace bobbin {

class Deadline {
 public:
  // Never passes.
  static constexpr Deadline Never() { return Deadline(kNever); }
  // Passes at `time`.
  static constexpr Deadline At(MonotonicTime time) {
    return Deadline(time.time_since_epoch().count());
  }
  // Passes `delay` from now; a negative delay has passed, an overlong one is Never.
  static Deadline After(std::chrono::nanoseconds delay);

  constexpr bool is_never() const { return nanoseconds_ == kNever; }
  // True when it has passed at `now`.
  constexpr bool HasPassed(MonotonicTime now) const {
    return now.time_since_epoch().count() >= nanoseconds_;
  }
  // The point in time, in nanoseconds of the monotonic clock; the largest int64_t for Never.
  constexpr int64_t nanoseconds() const { return nanoseconds_; }

  friend constexpr auto operator<=>(Deadline, Deadline) = default;

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  explicit constexpr Deadline(int64_t nanoseconds) : nanoseconds_(nanoseconds) {}
  int64_t nanoseconds_;
};

class DeadlineScope {
 public:
  // Covers the calling thread's waits until the scope ends.
  explicit DeadlineScope(Deadline deadline);
  // The same, `delay` from now.
  template <typename Rep, typename Period>
  explicit DeadlineScope(std::chrono::duration<Rep, Period> delay)
      : DeadlineScope(Deadline::After(std::chrono::ceil<std::chrono::nanoseconds>(delay))) {}
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;
  ~DeadlineScope();

  // The deadline in force inside: the earlier of this scope's and the outer ones'.
  Deadline effective() const;

 private:
  internal::TimerNode node_;
  internal::TimerNode* outer_;
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_DEADLINE_H_
