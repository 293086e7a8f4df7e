// SPDX-License-Identifier: Apache-2.0
//
// Crew: threads of one kind. A body cannot tell which; that is the point of the comparison.
//
// The virtual threads run on one runtime with its usual options: a carrier for each usable CPU,
// each with its ring. Only, nobody is watched: some compute on purpose, and how they keep others
// waiting is what is measured. A member of the platform kind is an OS thread of its own, with a
// small stack, so that there can be ten thousands of them.
//
//   Called from   Start: the thread that made the crew, and members. Join and the destructor: the
//                 thread that made it.
//   Suspends      Join, until no member is left.
//   Errors        Start: RESOURCE_EXHAUSTED when there is no thread to be had. MakeCrew: why the
//                 carriers cannot start.

#ifndef BOBBIN_BENCH_COMPARE_CREW_H_
#define BOBBIN_BENCH_COMPARE_CREW_H_

#include <memory>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/sched/runtime.h>

#include "bench/compare/kind.h"

namespace bobbin::compare {

class Crew {
 public:
  using Body = absl::AnyInvocable<void() &&>;

  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  // Joins, if that has not been done.
  virtual ~Crew() = default;

  // Starts a thread that runs `body`. `name` is for people.
  virtual absl::Status Start(std::string_view name, Body body) = 0;

  // Waits for the end of all members, also of those that members started.
  virtual void Join() = 0;
};

absl::StatusOr<std::unique_ptr<Crew>> MakeCrew(Kind kind);

// Of a runtime whose threads are measured.
RuntimeOptions MeasuredRuntime();

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_CREW_H_
