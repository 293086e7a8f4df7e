// SPDX-License-Identifier: Apache-2.0
//
// The clocks of a simulation: the monotonic one is MonotonicNow, as always; the wall clock is here,
// because somebody may set it.
//
//   Called from   the threads of a simulation.
//   Suspends      never.
//
// Example:
//   bobbin::testing::StepWallClock(std::chrono::hours(-1));  // The end of summer time.

#ifndef BOBBIN_TESTING_CLOCK_H_
#define BOBBIN_TESTING_CLOCK_H_

#include <chrono>

namespace bobbin::testing {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

// What a calendar shows. Every run begins at the same instant, in the night to 2026-01-01, UTC.
WallTime WallNow();

// Sets the wall clock forward, or back; time does not pass.
void StepWallClock(std::chrono::nanoseconds step);

// Lets time pass while nobody runs, as when a machine is suspended: both clocks go forward.
void AdvanceTime(std::chrono::nanoseconds time);

}  // namespace bobbin::testing

#endif  // BOBBIN_TESTING_CLOCK_H_
