// SPDX-License-Identifier: Apache-2.0
//
// Now: the monotonic clock in nanoseconds, as turns, timers and dumps count them. Seconds: a
// duration as people are told it.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          that of MonotonicNow.

#ifndef BOBBIN_SCHED_SRC_NOW_H_
#define BOBBIN_SCHED_SRC_NOW_H_

#include <chrono>
#include <cstdint>

#include <bobbin/core/clock.h>

namespace bobbin::internal {

inline int64_t Now() noexcept { return MonotonicNow().time_since_epoch().count(); }

inline double Seconds(std::chrono::nanoseconds duration) noexcept {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_NOW_H_
