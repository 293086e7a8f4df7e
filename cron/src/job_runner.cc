// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <bobbin/core/status.h>
#include <bobbin/cron/job_runner.h>

namespace bobbin::cron {

absl::StatusOr<VirtualThread> ExecutorRunner::Start(std::string_view job,
                                                    absl::AnyInvocable<void() &&> run) {
  // The run has a span itself.
  BOBBIN_RETURN_IF_ERROR(executor_.Submit({.name = job, .span = TaskSpan::kNone},
                                          [run = std::move(run)]() mutable { std::move(run)(); }));
  return VirtualThread();
}

absl::StatusOr<VirtualThread> VirtualThreadRunner::Start(std::string_view job,
                                                         absl::AnyInvocable<void() &&> run) {
  // Runtime::Spawn would wait at the limit, and with it all other jobs.
  return runtime_.TrySpawn({.name = job, .placement = Placement::kSpread},
                           [run = std::move(run)]() mutable { std::move(run)(); });
}

absl::StatusOr<VirtualThread> PoolRunner::Start(std::string_view /*job*/,
                                                absl::AnyInvocable<void() &&> run) {
  BOBBIN_RETURN_IF_ERROR(pool_.Submit(std::move(run)));
  return VirtualThread();
}

}  // namespace bobbin::cron
