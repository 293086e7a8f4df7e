// SPDX-License-Identifier: Apache-2.0
//
// Now: the monotonic clock in nanoseconds, as turns, timers and dumps count them.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          that of MonotonicNow.

#ifndef BOBBIN_SCHED_SRC_NOW_H_
#define BOBBIN_SCHED_SRC_NOW_H_

#include <cstdint>

#include <bobbin/core/clock.h>

namespace bobbin::internal {

inline int64_t Now() noexcept { return MonotonicNow().time_since_epoch().count(); }

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_NOW_H_
