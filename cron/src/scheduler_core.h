// SPDX-License-Identifier: Apache-2.0
//
// SchedulerCore: the timetable, and the jobs in it.
//
// A job is in the timetable at the instant at which it is due next: a cron job by the wall clock, a
// fixed rate or delay by the monotonic one. The instant is worked out once and kept, whatever the
// clocks do meanwhile, so that a due time is taken at most once, and never before it has come.
//
//   States of a job     idle, or running: from the moment a run is decided on until it has ended,
//                       or has been dropped. The runs of a job are numbered.
//   Transitions         idle -> running   by the timetable or RunNow, with the mutex held
//                       running -> idle   by EndRun, once for each number
//
// Nobody else's code runs with the mutex held: what is due is collected with it, and handed to the
// runners without.
//
//   Called from   any thread.
//   Suspends      as Scheduler.

#ifndef BOBBIN_CRON_SRC_SCHEDULER_CORE_H_
#define BOBBIN_CRON_SRC_SCHEDULER_CORE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/core/condition.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/vthread.h>
#include <bobbin/cron/clock.h>
#include <bobbin/cron/job.h>
#include <bobbin/cron/lease.h>
#include <bobbin/cron/schedule.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/sched/metrics.h>

namespace bobbin::cron::internal {

struct Job {
  enum class Kind : uint8_t { kDisabled, kCron, kRate, kDelay };

  // Never change.
  std::string name;
  std::string schedule_text;
  Kind kind = Kind::kDisabled;
  std::optional<Schedule> schedule;
  absl::Duration period;
  absl::Duration jitter;  // Its own part of JobOptions::jitter.
  Missed missed_policy = Missed::kRunOnce;
  absl::Duration late_max;
  size_t kept_max = 1;  // So many due times at most get a run when several have come.
  JobRunner* runner = nullptr;
  std::unique_ptr<JobRunner> own_runner;  // What it points to, if that is an executor.
  std::optional<LeaseTerms> lease_terms;

  // The run that goes on only.
  JobBody body;

  // All below: the scheduler's mutex. A cron job is due at an occurrence, the others at an instant
  // of the monotonic clock; nothing is for never.
  std::optional<absl::Time> occurrence;
  std::optional<MonotonicTime> instant;
  std::deque<absl::Time> pending;  // Due times whose runs follow the one that goes on.
  bool is_paused = false;
  bool is_running = false;
  bool is_removed = false;
  uint64_t run_number = 0;
  std::shared_ptr<Event> stop;                     // Of the run that goes on.
  VirtualThread thread;                            // The same, if its runner has returned one.
  bobbin::internal::Thread* own_thread = nullptr;  // The same, as it says itself, if virtual.
  std::optional<Lease> lease;              // The same, while it is held, as far as is known here...
  MonotonicTime lease_end;                 // ...until then at least,
  std::optional<MonotonicTime> extension;  // ...and when it is due to be extended, or looked at.
  uint64_t lease_skips = 0;
  uint64_t leases_lost = 0;
  uint64_t runs = 0;
  uint64_t failures = 0;
  uint64_t overlap_skips = 0;
  uint64_t missed = 0;
  std::optional<absl::Time> last_start;
  std::optional<absl::Time> last_success;
  std::string last_error;
  absl::Duration start_lag;
  std::deque<JobRunRecord> recent;
};

// Of jobs that are due at the same instant, the first by name goes first.
struct EarlierThenByName {
  template <typename Time>
  bool operator()(const std::pair<Time, std::shared_ptr<Job>>& a,
                  const std::pair<Time, std::shared_ptr<Job>>& b) const {
    return a.first != b.first ? a.first < b.first : a.second->name < b.second->name;
  }
};

class SchedulerCore : public std::enable_shared_from_this<SchedulerCore> {
 public:
  explicit SchedulerCore(SchedulerOptions options);

  absl::Status Add(JobOptions options, JobBody body) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Remove(std::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  enum class Paused : uint8_t { kNo, kYes };
  absl::Status SetPaused(std::string_view name, Paused paused) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RunNow(std::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<JobInfo> Jobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time StartDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // The scheduler's thread: until Stop.
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Run;

  // A run that has been decided on.
  struct Start {
    std::shared_ptr<Job> job;
    uint64_t run_number;
    absl::Time scheduled;
    std::shared_ptr<Event> stop;
  };
  using Starts = std::vector<Start>;
  // What a look has found to do.
  struct Work {
    Starts starts;
    Starts extensions;
    bool empty() const { return starts.empty() && extensions.empty(); }
  };
  // Due times that have come, the newest ones.
  struct Due {
    std::deque<absl::Time> times;
    int64_t count = 0;
  };

  absl::StatusOr<std::shared_ptr<Job>> MakeJob(JobOptions options, JobBody body) const;
  void ChooseLeaseRunner();
  absl::Status ChooseRunner(const JobOptions& options, Job& job) const;
  absl::StatusOr<absl::Duration> PeriodOf(const Period& period, std::string_view what) const;
  absl::StatusOr<std::string> Replaced(std::string_view text) const;

  // The timetable.
  void Arm(const std::shared_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Disarm(const std::shared_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArmAfterDelay(const std::shared_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoticeSetBack(absl::Time wall) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectDue(const Clock::Reading& now, Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Due TakeOccurrences(const std::shared_ptr<Job>& job, absl::Time wall)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Due TakeInstants(const std::shared_ptr<Job>& job, const Clock::Reading& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Decide(const std::shared_ptr<Job>& job, Due due, absl::Time wall, Starts& starts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration UntilNext(const Clock::Reading& now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs.
  Start Begin(const std::shared_ptr<Job>& job, absl::Time scheduled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Launch(const Start& start) ABSL_LOCKS_EXCLUDED(mutex_);
  void LaunchAll(const Work& work) ABSL_LOCKS_EXCLUDED(mutex_);

  // Leases. All of them on a runner's thread, but for the looks of the timetable.
  enum class Claim : uint8_t { kHeld, kTaken, kFailed };
  std::pair<Claim, absl::Status> ClaimLease(const Start& start) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseLease(const Start& start) ABSL_LOCKS_EXCLUDED(mutex_);
  void LaunchExtension(const Start& start) ABSL_LOCKS_EXCLUDED(mutex_);
  void ExtendLease(const Start& start) ABSL_LOCKS_EXCLUDED(mutex_);
  void CollectExtensions(MonotonicTime now, Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArmExtension(const std::shared_ptr<Job>& job, std::optional<MonotonicTime> when)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseLease(const std::shared_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExtendSoon(const std::shared_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t TokenOf(const Start& start) const ABSL_LOCKS_EXCLUDED(mutex_);
  // On the run's thread: so that it can be asked to stop there.
  void NoteThread(const Start& start) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteStart(const Start& start, absl::Time wall) ABSL_LOCKS_EXCLUDED(mutex_);
  enum class Ended : uint8_t { kRan, kNotStarted, kSkipped };
  void EndRun(const Start& start, Ended ended, const absl::Status& status, absl::Time started)
      ABSL_LOCKS_EXCLUDED(mutex_);
  static void AskToStop(Job& job);

  absl::StatusOr<std::shared_ptr<Job>> Find(std::string_view name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JobInfo InfoOf(const Job& job, const Clock::Reading& now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // How long the body of a run has taken.
  void NoteDuration(const Job& job, std::chrono::nanoseconds duration, const absl::Status& status);

  const SchedulerOptions options_;
  std::optional<MetricFamily<Histogram>> durations_;  // Never changes; nothing without metrics.
  JobRunner* lease_runner_ = nullptr;
  std::unique_ptr<JobRunner> own_lease_runner_;  // What it points to, if that is an executor.

  mutable Mutex mutex_;
  Condition changed_;  // The timetable has an earlier instant, or it is to stop.
  Condition ended_;    // A run has.
  std::map<std::string, std::shared_ptr<Job>, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
  template <typename Time>
  using Timetable = std::set<std::pair<Time, std::shared_ptr<Job>>, EarlierThenByName>;
  Timetable<absl::Time> by_wall_ ABSL_GUARDED_BY(mutex_);
  Timetable<MonotonicTime> by_monotonic_ ABSL_GUARDED_BY(mutex_);
  Timetable<MonotonicTime> by_extension_ ABSL_GUARDED_BY(mutex_);
  absl::Time latest_wall_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::set<std::shared_ptr<Job>> running_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_abandoned_ ABSL_GUARDED_BY(mutex_) = false;  // Nobody waits for the runs any more.
};

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_SCHEDULER_CORE_H_
