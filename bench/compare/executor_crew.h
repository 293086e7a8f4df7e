// SPDX-License-Identifier: Apache-2.0
//
// ExecutorCrew: a crew whose members are tasks of a named executor, "members", in a runtime that
// has others for what the members call.
//
// All of them are of the same kind. Each has as many places as it may need at once, so that no task
// waits for another one to end: what is compared is threads, not limits.
//
//   Called from   as Crew. Named: any thread.
//   Suspends      as Crew.
//   Errors        Start: RESOURCE_EXHAUSTED when there is no thread to be had.

#ifndef BOBBIN_BENCH_COMPARE_EXECUTOR_CREW_H_
#define BOBBIN_BENCH_COMPARE_EXECUTOR_CREW_H_

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/sched/executor.h>
#include <bobbin/sched/runtime.h>

#include "bench/compare/crew.h"
#include "bench/compare/kind.h"

namespace bobbin::compare {

// An executor's name, and how many of its tasks may be under way at once.
struct Places {
  std::string_view executor;
  size_t count = 0;
};

class ExecutorCrew final : public Crew {
 public:
  // With the carriers started, and no executor's thread.
  static absl::StatusOr<std::unique_ptr<ExecutorCrew>> Make(Kind kind, size_t members,
                                                            const std::vector<Places>& others);
  // For Make.
  explicit ExecutorCrew(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  ~ExecutorCrew() override { Join(); }

  absl::Status Start(std::string_view name, Body body) override;
  void Join() override;

  // REQUIRES: it is one of those that Make was told of.
  Executor& Named(std::string_view name);

 private:
  const std::unique_ptr<Runtime> runtime_;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_EXECUTOR_CREW_H_
