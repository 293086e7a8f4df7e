// SPDX-License-Identifier: Apache-2.0
//
// RunTrial: runs a trial in a process of its own.
//
// What one trial leaves behind - stacks kept for reuse, memory that the allocator keeps, threads
// that idle - would otherwise be counted for the next one. And a trial that goes down takes nobody
// along.
//
//   Called from   the main thread.
//   Suspends      blocks until the trial is over.
//   Errors        none: the result says what went wrong.

#ifndef BOBBIN_BENCH_COMPARE_TRIAL_PROCESS_H_
#define BOBBIN_BENCH_COMPARE_TRIAL_PROCESS_H_

#include <string_view>

#include "absl/functional/function_ref.h"

#include "bench/compare/trial.h"

namespace bobbin::compare {

// How a process that runs a trial is told to.
inline constexpr std::string_view kTrialFlag = "--trial";

// Runs `trial`. Calls `goes_on` several times a second meanwhile; false ends the trial at once,
// with Outcome::kInterrupted.
TrialResult RunTrial(const Trial& trial, absl::FunctionRef<bool()> goes_on);

// The other side: what the process started by RunTrial does. Returns its exit code.
int RunTrialHere(std::string_view trial);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_TRIAL_PROCESS_H_
