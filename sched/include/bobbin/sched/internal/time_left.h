// SPDX-License-Identifier: Apache-2.0
//
// TimeLeft: what the deadline in force leaves of the calling thread's time, for hooks of a stop
// that share it out. Never less than nothing; the largest duration where there is no deadline.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_SCHED_INTERNAL_TIME_LEFT_H_
#define BOBBIN_SCHED_INTERNAL_TIME_LEFT_H_

#include <algorithm>
#include <chrono>

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>

namespace bobbin::internal {

inline std::chrono::nanoseconds TimeLeft() {
  const DeadlineScope here(Deadline::Never());
  const Deadline end = here.effective();
  if (end.is_never()) return std::chrono::nanoseconds::max();
  const std::chrono::nanoseconds left(end.nanoseconds() -
                                      MonotonicNow().time_since_epoch().count());
  return std::max(left, std::chrono::nanoseconds::zero());
}

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_TIME_LEFT_H_
