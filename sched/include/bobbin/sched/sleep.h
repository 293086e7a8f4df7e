// SPDX-License-Identifier: Apache-2.0
//
// Sleep and Yield: to let time pass, and to let others go first.
//
//   Called from   virtual, platform and foreign threads (the last two block or give up their
//                 slice).
//   Suspends      yes.
//   Cancellation  SleepFor and SleepUntil return CANCELLED, or DEADLINE_EXCEEDED when a scope's
//                 deadline comes first; also where there is no time left to sleep. Yield and
//                 YieldIfDue ignore both.
//   Order         Never early. Sleeps of 10 ms and more end within a tick (about 1 ms) of their
//                 time, shorter ones within the time it takes to wake.
//   Cost          A sleep: a timer (some 30 ns) and a park. Yield: one switch.
//                 YieldIfDue: a look at the clock, about 26 ns, when it is not due.
//
// Example:
//   BOBBIN_RETURN_IF_ERROR(bobbin::SleepFor(std::chrono::seconds(1)));

#ifndef BOBBIN_SCHED_SLEEP_H_
#define BOBBIN_SCHED_SLEEP_H_

#include <chrono>

#include "absl/status/status.h"

#include <bobbin/core/deadline.h>

namespace bobbin {

// Returns OK once `time` has come.
absl::Status SleepUntil(Deadline time);

// Returns OK after `delay`; at once when it is not positive.
template <typename Rep, typename Period>
absl::Status SleepFor(std::chrono::duration<Rep, Period> delay) {
  return SleepUntil(Deadline::After(std::chrono::ceil<std::chrono::nanoseconds>(delay)));
}

// Lets every thread that is ready now run before the caller goes on.
void Yield();

// The same, and timers and completions too, if the carrier's turn has taken its 100 us; otherwise
// nothing. For loops that compute: call it every few microseconds.
void YieldIfDue();

}  // namespace bobbin

#endif  // BOBBIN_SCHED_SLEEP_H_
