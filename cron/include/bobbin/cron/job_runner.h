// SPDX-License-Identifier: Apache-2.0
//
// JobRunner: where the runs of jobs take place: on an executor, on virtual threads, or in a pool of
// platform threads.
//
// The scheduler never runs a job itself. It hands each run to a runner and goes on. A job that says
// nothing runs on an executor of the scheduler's runtime, see JobOptions::thread; other runners are
// for pools of your own, and for tests.
//
//   Called from   Start: the scheduler's thread, and whoever calls Scheduler::RunNow.
//   Suspends      Start never waits.
//   Errors        Start: the run could not be started, and has been dropped.
//   Lifetime      must outlive the schedulers that use it.
//
// Example:
//   bobbin::PlatformPool reports({.name = "reports", .threads = 1});
//   bobbin::cron::PoolRunner runner(reports);
//   scheduler.Add({.name = "nightly", .when = "0 30 2 * * *"_cron, .runner = &runner}, Report);

#ifndef BOBBIN_CRON_JOB_RUNNER_H_
#define BOBBIN_CRON_JOB_RUNNER_H_

#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include <bobbin/core/vthread.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>

namespace bobbin::cron {

class JobRunner {
 public:
  virtual ~JobRunner() = default;

  // Has `run` called, once, on a thread of the runner's. Returns the virtual thread that does it;
  // an empty handle where it is none. A run that is dropped is a failure of the job.
  virtual absl::StatusOr<VirtualThread> Start(std::string_view job,
                                              absl::AnyInvocable<void() &&> run) = 0;

  // As the listing of jobs shows it.
  virtual std::string_view name() const = 0;
};

// Each run is a task of `executor`, named like its job. Returns no handle: on a virtual thread the
// scheduler asks the run itself to stop.
class ExecutorRunner final : public JobRunner {
 public:
  explicit ExecutorRunner(Executor& executor) : executor_(executor) {}
  absl::StatusOr<VirtualThread> Start(std::string_view job,
                                      absl::AnyInvocable<void() &&> run) override;
  std::string_view name() const override { return executor_.name(); }

 private:
  Executor& executor_;
};

// Each run is a virtual thread of `runtime`, named like its job.
class VirtualThreadRunner final : public JobRunner {
 public:
  explicit VirtualThreadRunner(Runtime& runtime) : runtime_(runtime) {}
  absl::StatusOr<VirtualThread> Start(std::string_view job,
                                      absl::AnyInvocable<void() &&> run) override;
  std::string_view name() const override { return "virtual"; }

 private:
  Runtime& runtime_;
};

// Each run is a task of `pool`: for jobs that block.
class PoolRunner final : public JobRunner {
 public:
  explicit PoolRunner(PlatformPool& pool) : pool_(pool) {}
  absl::StatusOr<VirtualThread> Start(std::string_view job,
                                      absl::AnyInvocable<void() &&> run) override;
  std::string_view name() const override { return pool_.name(); }

 private:
  PlatformPool& pool_;
};

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_JOB_RUNNER_H_
