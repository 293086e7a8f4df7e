// SPDX-License-Identifier: Apache-2.0
//
// MeasureUnits: a trial whose threads all do the same - start together, repeat an operation until
// the time is over, end.
//
// The threads are started by one of their kind and wait until the last of them is there, so that
// starting is no part of the figures.
//
//   Called from   a foreign thread.
//   Suspends      until the trial is over.
//   Errors        RESOURCE_EXHAUSTED when there are not as many threads as wanted: it says how many
//                 there were. Else the first failure of a unit, which ends the others.

#ifndef BOBBIN_BENCH_COMPARE_UNITS_H_
#define BOBBIN_BENCH_COMPARE_UNITS_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "bench/compare/crew.h"
#include "bench/compare/measurement.h"
#include "bench/compare/trial.h"

namespace bobbin::compare {

// What one thread does: operations, each recorded, until Record says that the time is over. `unit`
// counts from 0.
using UnitBody = absl::FunctionRef<absl::Status(size_t unit, Measurement& measurement)>;

absl::StatusOr<Figures> MeasureUnits(const Trial& trial, UnitBody body);
// The same with a crew of the caller's.
absl::StatusOr<Figures> MeasureUnits(const Trial& trial, Crew& crew, UnitBody body);

// The status of a crew that has `started` threads and gets no more.
absl::Status ThreadsRanOut(size_t started);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_UNITS_H_
