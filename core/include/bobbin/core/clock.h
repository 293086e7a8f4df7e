// SPDX-License-Identifier: Apache-2.0
//
// MonotonicTime: a point on the clock that never steps, in nanoseconds.
//
// Deadlines, timers and measurements use it. Wall time (what a calendar shows) is a different thing
// and is always passed in by whoever needs it.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          one clock read (about 26 ns where the system call is not needed).

#ifndef BOBBIN_CORE_CLOCK_H_
#define BOBBIN_CORE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace bobbin {

using MonotonicClock = std::chrono::steady_clock;
using MonotonicTime = std::chrono::time_point<MonotonicClock, std::chrono::nanoseconds>;

// Now, read from the system; in a simulation, its own time.
#if defined(BOBBIN_SIMULATED)
MonotonicTime MonotonicNow();
#else
inline MonotonicTime MonotonicNow() { return MonotonicClock::now(); }
#endif

}  // namespace bobbin

#endif  // BOBBIN_CORE_CLOCK_H_
