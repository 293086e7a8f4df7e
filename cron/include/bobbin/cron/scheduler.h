// SPDX-License-Identifier: Apache-2.0
//
// Scheduler: runs jobs when they are due.
//
// One platform thread keeps the timetable and runs nothing itself: each run is handed to a runner.
// A run never overlaps the previous one of its job; a due time that finds it going on is skipped,
// and counted. A job that fails stays in the timetable. A fixed rate goes on on its own grid after
// a pause, without a burst.
//
// The thread sleeps in steps and looks at both clocks after each, so that a clock that is set, and
// a machine that was suspended, are noticed within Scheduler::kStep. Nothing starts before it is
// due, and no due time of a cron job is run twice, also if the clock is put back; only a clock that
// is put back by more than a day is taken for one that was wrong before, and the timetable begins
// anew from what it shows.
//
//   Called from   any thread. Stop and the destructor: not from a job.
//   Suspends      Add, while it reads a time zone. Stop and the destructor, until the runs have
//                 ended or the budget is spent. Nothing else.
//   Cancellation  Stop obeys it; the destructor does not.
//   Errors        INVALID_ARGUMENT: what Add was given. ALREADY_EXISTS: the name. NOT_FOUND: no
//                 such job. FAILED_PRECONDITION: stopped, running. DEADLINE_EXCEEDED: see Stop.
//   Lifetime      what a body uses must outlive its runs: Stop first. Runners and clock must
//                 outlive the scheduler.
//   Cost          a due job: two logarithmic steps in the timetable, and the runner. A look without
//                 one: two clock reads.
//
// Leases. A job with one is run by one process at a time. A lease that another one holds is a skip,
// a store that fails a failure; the job stays in the timetable. While the body runs the lease is
// extended when half of it is over, and again until it has run out if the store fails; when it is
// lost, the body is asked to stop. How long it is held is reckoned from before the claim was sent,
// on the monotonic clock.
//
// Example:
//   bobbin::cron::Scheduler scheduler;
//   BOBBIN_RETURN_IF_ERROR(scheduler.Add(
//       {.name = "nightly", .when = "0 30 2 * * *"_cron, .executor = "reports"}, SendReport));

#ifndef BOBBIN_CRON_SCHEDULER_H_
#define BOBBIN_CRON_SCHEDULER_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/cron/clock.h>
#include <bobbin/cron/job.h>
#include <bobbin/cron/job_runner.h>
#include <bobbin/cron/lease.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/runtime.h>

namespace bobbin::cron {

namespace internal {
class SchedulerCore;
}  // namespace internal

struct SchedulerOptions {
  // Whose executors run the jobs, and whose stop (lifecycle.h) stops the scheduler in its phase;
  // null is the calling thread's, which a foreign thread has not.
  Runtime* runtime = nullptr;
  // Who runs the jobs that do not say, instead of an executor.
  JobRunner* runner = nullptr;
  Clock* clock = &Clock::System();
  // Of the jobs with a lease. Called on the threads of their runners.
  LeaseStore* leases = nullptr;
  // Who extends leases; null is `runner` or, without one, the executor "scheduling-virtual". Not a
  // pool that jobs can fill: an extension would wait
  // for the very run that needs it.
  JobRunner* lease_runner = nullptr;
  // The value of a ${key}; nothing if it has none, an error if it has one that is no good. Empty
  // asks the environment, for "poll.delay" the variable POLL_DELAY; a Configuration is asked with
  // [&](std::string_view key) { return configuration.Text(key); }. Called by each Add, several at
  // once.
  absl::AnyInvocable<absl::StatusOr<std::optional<std::string>>(std::string_view key) const>
      property = {};
  // Where the jobs' numbers go, if anywhere: bobbin.scheduler.run.duration, by job and outcome, of
  // the runs whose bodies were executed; and what JobInfo counts. Must outlive the scheduler.
  Metrics* metrics = nullptr;
  // Who looks at the timetable.
  enum class Drive : uint8_t {
    kOwnThread,
    kByHand,  // The program itself, by StartDue: for tests.
  };
  Drive drive = Drive::kOwnThread;
  // How many runs of each job are remembered.
  size_t recent_max = 16;
  // For Stop and the destructor.
  std::chrono::nanoseconds stop_budget = std::chrono::seconds(25);
};

class Scheduler {
 public:
  // So long the thread sleeps at most.
  static constexpr absl::Duration kStep = absl::Seconds(10);

  explicit Scheduler(SchedulerOptions options = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  // Stops, if that has not been done, and says who is left (sched/log.h).
  ~Scheduler();

  // Puts a job into the timetable. The body takes a JobRun, or nothing, and returns a status, or
  // nothing.
  template <typename F>
  absl::Status Add(JobOptions options, F body) {
    return AddBody(std::move(options), [body = std::move(body)](const JobRun& run) mutable {
      if constexpr (std::is_invocable_r_v<absl::Status, F&, const JobRun&>) {
        return absl::Status(body(run));
      } else if constexpr (std::is_invocable_v<F&, const JobRun&>) {
        body(run);
        return absl::OkStatus();
      } else if constexpr (std::is_invocable_r_v<absl::Status, F&>) {
        return absl::Status(body());
      } else {
        body();
        return absl::OkStatus();
      }
    });
  }

  // Takes it out. A run that goes on is asked to stop, and not waited for.
  absl::Status Remove(std::string_view name);
  // While it is paused, its due times pass; RunNow runs it all the same.
  absl::Status Pause(std::string_view name);
  absl::Status Resume(std::string_view name);
  // Starts a run now, beside the timetable. FAILED_PRECONDITION if one goes on.
  absl::Status RunNow(std::string_view name);

  // Every job, by name; as data, and as a JSON array.
  std::vector<JobInfo> Jobs() const;
  std::string JobsJson() const;

  // Starts what is due, and returns when something is due next; infinite if nothing is. For
  // Drive::kByHand: with a clock that is set, a timetable of years goes by in a moment.
  absl::Time StartDue();

  // Starts nothing any more, asks running bodies to stop and waits for them: DEADLINE_EXCEEDED,
  // naming them, when the budget is spent. Called again, it waits again.
  absl::Status Stop();

 private:
  absl::Status AddBody(JobOptions options, JobBody body);

  std::shared_ptr<internal::SchedulerCore> core_;
  std::unique_ptr<PlatformPool> thread_;  // The one that keeps the timetable; or nothing.
  MetricsSource source_;
  StopHook stop_hook_;                    // The last: it may be running, and uses the others.
};

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_SCHEDULER_H_
