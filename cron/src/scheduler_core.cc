// SPDX-License-Identifier: Apache-2.0

#include "cron/src/scheduler_core.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "absl/strings/string_view.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/job_runner.h>
#include <bobbin/cron/zone.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/internal/texts.h>
#include <bobbin/sched/span.h>

#include "cron/src/limits.h"
#include "cron/src/quoted.h"

namespace bobbin::cron::internal {

namespace {

template <typename... T>
absl::Status Failed(absl::StatusCode code, std::string_view verb, std::string_view name,
                    fmt::format_string<T...> format, T&&... parts) {
  return MakeStatus(code, fmt::format("{} job {}: {}", verb, Quoted(name),
                                      fmt::format(format, std::forward<T>(parts)...)));
}
template <typename... T>
absl::Status Wrong(std::string_view name, fmt::format_string<T...> format, T&&... parts) {
  return Failed(absl::StatusCode::kInvalidArgument, "add", name, format, std::forward<T>(parts)...);
}

// Without overflow: nothing is for beyond the end of the clock.
std::optional<MonotonicTime> After(MonotonicTime time, absl::Duration delay) {
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(delay);
  int64_t sum = 0;
  if (nanoseconds == std::numeric_limits<int64_t>::max() ||
      __builtin_add_overflow(time.time_since_epoch().count(), nanoseconds, &sum)) {
    return std::nullopt;
  }
  return MonotonicTime(std::chrono::nanoseconds(sum));
}

// The same for a name in every process: FNV-1a.
uint64_t HashOf(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

// One run: called by the runner, or dropped by it.
class SchedulerCore::Run {
 public:
  Run(std::shared_ptr<SchedulerCore> core, Start start)
      : core_(std::move(core)), start_(std::move(start)) {}
  Run(Run&& other) noexcept = default;
  Run& operator=(Run&&) = delete;
  ~Run() {
    if (core_ == nullptr) return;
    core_->EndRun(
        start_, Ended::kNotStarted,
        MakeStatus(absl::StatusCode::kUnavailable, "it was dropped before it could start"), {});
  }

  void operator()() && {
    const std::shared_ptr<SchedulerCore> core = std::move(core_);
    const absl::Time started = core->options_.clock->Now().wall;
    Job& job = *start_.job;
    core->NoteThread(start_);
    std::optional<Span> span;
    if (Span::MayBeKept()) BeginSpan(span);
    if (job.lease_terms) {
      const auto [claim, why] = core->ClaimLease(start_);
      if (claim != Claim::kHeld) {
        if (span) EndSpan(*span, claim == Claim::kTaken ? "skipped" : "failure", why);
        span.reset();
        core->EndRun(start_, claim == Claim::kTaken ? Ended::kSkipped : Ended::kNotStarted, why,
                     started);
        return;
      }
    }
    core->NoteStart(start_, started);
    const int64_t token = core->TokenOf(start_);
    absl::Status status;
    const MonotonicTime begun = core->options_.clock->Now().monotonic;
    const std::exception_ptr exception = bobbin::internal::CaptureException([&] {
      status = job.body(JobRun{
          .name = job.name, .scheduled = start_.scheduled, .stop = *start_.stop, .token = token});
    });
    if (exception != nullptr) {
      status = MakeStatus(absl::StatusCode::kUnknown, "its body ended with an exception");
    }
    core->NoteDuration(job, core->options_.clock->Now().monotonic - begun, status);
    if (job.lease_terms) core->ReleaseLease(start_);
    if (span) EndSpan(*span, status.ok() ? "success" : "failure", status);
    // It has ended before anybody can see that the run has.
    span.reset();
    core->EndRun(start_, Ended::kRan, status, started);
  }

 private:
  void BeginSpan(std::optional<Span>& span) const {
    span.emplace(SpanOptions{.name = start_.job->name,
                             .attributes = {{"bobbin.job", start_.job->name},
                                            {"bobbin.job.scheduled",
                                             absl::FormatTime(absl::RFC3339_full, start_.scheduled,
                                                              absl::UTCTimeZone())}}});
  }
  static void EndSpan(Span& span, std::string_view outcome, const absl::Status& status) {
    span.Set("bobbin.outcome", outcome);
    if (outcome == "failure") span.SetStatus(status);
  }

  std::shared_ptr<SchedulerCore> core_;
  Start start_;
};

SchedulerCore::SchedulerCore(SchedulerOptions options) : options_(std::move(options)) {
  ChooseLeaseRunner();
  if (options_.metrics == nullptr) return;
  auto durations = options_.metrics->MakeHistogram({.name = "bobbin.scheduler.run.duration",
                                                    .help = "How long the bodies of jobs took.",
                                                    .unit = "ms"});
  BOBBIN_CHECK(durations.ok(), MessageOf(durations.status()));
  durations_ = *durations;
}

void SchedulerCore::NoteDuration(const Job& job, std::chrono::nanoseconds duration,
                                 const absl::Status& status) {
  if (!durations_) return;
  durations_
      ->At({{"bobbin.job", job.name}, {"bobbin.outcome", status.ok() ? "success" : "failure"}})
      .Record(std::chrono::duration<double, std::milli>(duration).count());
}

absl::StatusOr<std::string> SchedulerCore::Replaced(std::string_view text) const {
  return bobbin::internal::ReplacePlaceholders(
      text, [this](std::string_view key) -> absl::StatusOr<std::optional<std::string>> {
        if (options_.property == nullptr) return bobbin::internal::FromEnvironment(key);
        return options_.property(key);
      });
}

absl::StatusOr<absl::Duration> SchedulerCore::PeriodOf(const Period& period,
                                                       std::string_view what) const {
  absl::Duration duration;
  if (period.duration() != nullptr) {
    duration = *period.duration();
  } else if (period.text() != nullptr) {
    BOBBIN_ASSIGN_OR_RETURN(const std::string text, Replaced(*period.text()));
    BOBBIN_ASSIGN_OR_RETURN(duration, bobbin::internal::ParsePeriod(text));
  }
  if (duration > absl::ZeroDuration()) return duration;
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      fmt::format("{} must be positive, not {}", what, absl::FormatDuration(duration)));
}

void SchedulerCore::ChooseLeaseRunner() {
  lease_runner_ = options_.lease_runner != nullptr ? options_.lease_runner : options_.runner;
  if (lease_runner_ != nullptr || options_.runtime == nullptr) return;
  const absl::StatusOr<Executor*> executor =
      options_.runtime->executors().Find("scheduling-virtual");
  if (!executor.ok()) return;
  own_lease_runner_ = std::make_unique<ExecutorRunner>(**executor);
  lease_runner_ = own_lease_runner_.get();
}

absl::Status SchedulerCore::ChooseRunner(const JobOptions& options, Job& job) const {
  const bool names_executor = options.thread.has_value() || !options.executor.empty();
  if (options.runner != nullptr && names_executor) {
    return Wrong(options.name, "it has a runner, and an executor or a kind of thread, too");
  }
  job.runner = options.runner;
  if (job.runner == nullptr && !names_executor) job.runner = options_.runner;
  if (job.runner != nullptr) return absl::OkStatus();

  if (options_.runtime == nullptr) {
    return Wrong(options.name,
                 "neither it nor the scheduler has a runner, and there is no runtime "
                 "whose executors could run it: set SchedulerOptions::runtime");
  }
  Executors& executors = options_.runtime->executors();
  const ThreadKind kind = options.thread.value_or(ThreadKind::kPlatform);
  absl::StatusOr<Executor*> executor = nullptr;
  if (options.executor.empty()) {
    // A name for each kind, so that a job never lands on the wrong one.
    executor = executors.Find(kind == ThreadKind::kPlatform ? "scheduling" : "scheduling-virtual");
  } else if (options.thread.has_value()) {
    executor = executors.Find(options.executor, kind);
  } else {
    executor = executors.Find(options.executor);
  }
  if (!executor.ok()) return Wrong(options.name, "{}", MessageOf(executor.status()));
  job.own_runner = std::make_unique<ExecutorRunner>(**executor);
  job.runner = job.own_runner.get();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Job>> SchedulerCore::MakeJob(JobOptions options,
                                                            JobBody body) const {
  const std::string& name = options.name;
  if (name.empty()) return Wrong(name, "it has no name");
  const int given = int{options.when.IsSet()} + int{options.fixed_rate.IsSet()} +
                    int{options.fixed_delay.IsSet()};
  if (given != 1) {
    return Wrong(name, "exactly one of when, fixed_rate and fixed_delay is needed, not {}", given);
  }
  if (!options.when.IsSet() && !options.zone.empty()) {
    return Wrong(name, "a zone is for an expression only");
  }
  if (options.when.IsSet() && options.initial_delay.IsSet()) {
    return Wrong(name, "an initial delay is for a fixed rate or delay only");
  }
  if (options.jitter < absl::ZeroDuration() || options.late_max < absl::ZeroDuration() ||
      options.missed_max < 1) {
    return Wrong(name, "neither jitter nor late_max may be negative, nor missed_max below 1");
  }
  auto job = std::make_shared<Job>();
  job->name = name;
  BOBBIN_RETURN_IF_ERROR(ChooseRunner(options, *job));
  if (options.lease) {
    if (options_.leases == nullptr) return Wrong(name, "it has a lease, but there is no store");
    if (lease_runner_ == nullptr) {
      return Wrong(name,
                   "it has a lease, but there is neither a runner nor a runtime to extend it");
    }
    job->lease_terms = *options.lease;
    if (job->lease_terms->name.empty()) job->lease_terms->name = name;
    const absl::Status terms = job->lease_terms->Check();
    if (!terms.ok()) return Wrong(name, "{}", MessageOf(terms));
  }
  job->body = std::move(body);
  job->missed_policy = options.missed;
  job->late_max = options.late_max;
  job->kept_max = options.missed == Missed::kRunAll ? static_cast<size_t>(options.missed_max) : 1;
  job->jitter = options.jitter * (static_cast<double>(HashOf(name) >> 11) / (uint64_t{1} << 53));

  if (options.when.IsSet()) {
    std::optional<Expression> expression;
    std::string text;
    if (options.when.expression() != nullptr) {
      expression = *options.when.expression();
      text = expression->ToString();
    } else {
      absl::StatusOr<std::string> replaced = Replaced(*options.when.text());
      if (!replaced.ok()) return Wrong(name, "{}", MessageOf(replaced.status()));
      text = *std::move(replaced);
      const auto parsed = Expression::ParseUnlessDisabled(text);
      if (!parsed.ok()) return Wrong(name, "{}", MessageOf(parsed.status()));
      expression = *parsed;
    }
    const absl::StatusOr<std::string> zone_text = Replaced(options.zone);
    if (!zone_text.ok()) return Wrong(name, "{}", MessageOf(zone_text.status()));
    const absl::StatusOr<absl::TimeZone> zone = FindZone(*zone_text);
    if (!zone.ok() && zone.status().code() == absl::StatusCode::kInvalidArgument) {
      return Wrong(name, "{}", MessageOf(zone.status()));
    }
    BOBBIN_RETURN_IF_ERROR(zone.status());
    job->schedule_text = "cron " + text;
    if (*zone != absl::UTCTimeZone()) job->schedule_text += " (" + *zone_text + ")";
    if (expression) {
      job->kind = Job::Kind::kCron;
      job->schedule.emplace(ScheduleOptions{.expression = *expression,
                                            .zone = *zone,
                                            .repeated = options.repeated,
                                            .skipped = options.skipped});
    }
    return job;
  }

  const bool is_rate = options.fixed_rate.IsSet();
  const absl::StatusOr<absl::Duration> period = is_rate
                                                    ? PeriodOf(options.fixed_rate, "fixed_rate")
                                                    : PeriodOf(options.fixed_delay, "fixed_delay");
  if (!period.ok()) return Wrong(name, "{}", MessageOf(period.status()));
  job->kind = is_rate ? Job::Kind::kRate : Job::Kind::kDelay;
  job->period = *period;
  job->schedule_text =
      fmt::format("{} {}", is_rate ? "every" : "delay", absl::FormatDuration(job->period));
  absl::Duration initial_delay;
  if (options.initial_delay.IsSet()) {
    const absl::StatusOr<absl::Duration> delay = PeriodOf(options.initial_delay, "initial_delay");
    if (!delay.ok()) return Wrong(name, "{}", MessageOf(delay.status()));
    initial_delay = *delay;
  }
  job->instant = After(options_.clock->Now().monotonic, initial_delay + job->jitter);
  return job;
}

absl::Status SchedulerCore::Add(JobOptions options, JobBody body) {
  BOBBIN_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job,
                          MakeJob(std::move(options), std::move(body)));
  const Clock::Reading now = options_.clock->Now();
  MutexLock lock(mutex_);
  if (is_stopping_) {
    return Failed(absl::StatusCode::kFailedPrecondition, "add", job->name,
                  "the scheduler has been stopped");
  }
  if (!jobs_.emplace(job->name, job).second) {
    return Failed(absl::StatusCode::kAlreadyExists, "add", job->name, "there is one of that name");
  }
  if (job->kind == Job::Kind::kCron) {
    if (const std::optional<Occurrence> next = job->schedule->Next(now.wall)) {
      job->occurrence = next->time;
    }
  }
  Arm(job);
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Job>> SchedulerCore::Find(std::string_view name) const {
  const auto found = jobs_.find(name);
  if (found != jobs_.end()) return found->second;
  return Failed(absl::StatusCode::kNotFound, "find", name, "there is none of that name");
}

absl::Status SchedulerCore::Remove(std::string_view name) {
  MutexLock lock(mutex_);
  BOBBIN_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, Find(name));
  Disarm(job);
  job->is_removed = true;
  job->pending.clear();
  AskToStop(*job);
  jobs_.erase(job->name);
  return absl::OkStatus();
}

absl::Status SchedulerCore::SetPaused(std::string_view name, Paused paused) {
  MutexLock lock(mutex_);
  BOBBIN_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, Find(name));
  job->is_paused = paused == Paused::kYes;
  return absl::OkStatus();
}

absl::Status SchedulerCore::RunNow(std::string_view name) {
  Starts starts;
  {
    const Clock::Reading now = options_.clock->Now();
    MutexLock lock(mutex_);
    BOBBIN_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, Find(name));
    if (is_stopping_ || job->is_running) {
      return Failed(absl::StatusCode::kFailedPrecondition, "run", name, "{}",
                    is_stopping_ ? "the scheduler has been stopped" : "it is running");
    }
    starts.push_back(Begin(job, now.wall));
  }
  Launch(starts.front());
  return absl::OkStatus();
}

void SchedulerCore::Arm(const std::shared_ptr<Job>& job) {
  if (job->occurrence) by_wall_.emplace(*job->occurrence + job->jitter, job);
  if (job->instant) by_monotonic_.emplace(*job->instant, job);
}

void SchedulerCore::Disarm(const std::shared_ptr<Job>& job) {
  if (job->occurrence) by_wall_.erase({*job->occurrence + job->jitter, job});
  if (job->instant) by_monotonic_.erase({*job->instant, job});
  job->occurrence.reset();
  job->instant.reset();
}

void SchedulerCore::ArmAfterDelay(const std::shared_ptr<Job>& job) {
  if (job->kind != Job::Kind::kDelay || job->is_removed) return;
  Disarm(job);
  job->instant = After(options_.clock->Now().monotonic, job->period);
  Arm(job);
}

// A little back is how clocks are corrected: what was taken stays taken. Far back means that the
// clock was wrong, and so were the due times that were read off it.
void SchedulerCore::NoticeSetBack(absl::Time wall) {
  if (wall >= latest_wall_ - kSetBackMax) {
    latest_wall_ = std::max(latest_wall_, wall);
    return;
  }
  latest_wall_ = wall;
  for (const auto& [name, job] : jobs_) {
    if (job->kind != Job::Kind::kCron) continue;
    Disarm(job);
    if (const std::optional<Occurrence> next = job->schedule->Next(wall)) {
      job->occurrence = next->time;
    }
    Arm(job);
  }
}

void SchedulerCore::CollectDue(const Clock::Reading& now, Work& work) {
  NoticeSetBack(now.wall);
  CollectExtensions(now.monotonic, work);
  while (!by_wall_.empty() && by_wall_.begin()->first <= now.wall) {
    const std::shared_ptr<Job> job = by_wall_.begin()->second;
    Decide(job, TakeOccurrences(job, now.wall), now.wall, work.starts);
  }
  while (!by_monotonic_.empty() && by_monotonic_.begin()->first <= now.monotonic) {
    const std::shared_ptr<Job> job = by_monotonic_.begin()->second;
    Decide(job, TakeInstants(job, now), now.wall, work.starts);
  }
}

SchedulerCore::Due SchedulerCore::TakeOccurrences(const std::shared_ptr<Job>& job,
                                                  absl::Time wall) {
  Due due;
  absl::Time time = *job->occurrence;
  Disarm(job);
  const absl::Time last = wall - job->jitter;
  while (true) {
    due.times.push_back(time);
    if (due.times.size() > job->kept_max) due.times.pop_front();
    ++due.count;
    if (due.count == kDueTimesCountedMax) {
      // So many were slept through that only the latest is still of interest.
      const std::optional<Occurrence> latest = job->schedule->Previous(last + absl::Nanoseconds(1));
      if (latest && latest->time > time) time = due.times.back() = latest->time;
    }
    const std::optional<Occurrence> next = job->schedule->Next(time);
    if (!next) break;
    time = next->time;
    if (time > last) {
      job->occurrence = time;
      break;
    }
  }
  Arm(job);
  return due;
}

SchedulerCore::Due SchedulerCore::TakeInstants(const std::shared_ptr<Job>& job,
                                               const Clock::Reading& now) {
  Due due;
  const MonotonicTime first = *job->instant;
  const absl::Duration late = absl::FromChrono(now.monotonic - first);
  Disarm(job);
  if (job->kind == Job::Kind::kDelay) {
    due.times.push_back(now.wall - late);
    due.count = 1;
    return due;  // The end of the run says when the next one is due.
  }
  // On the grid, by a division: a long sleep is no long loop.
  absl::Duration since_latest;
  const int64_t more = absl::IDivDuration(late, job->period, &since_latest);
  due.count = more + 1;
  const auto kept = std::min<int64_t>(due.count, static_cast<int64_t>(job->kept_max));
  for (int64_t back = kept - 1; back >= 0; --back) {
    due.times.push_back(now.wall - since_latest - job->period * back);
  }
  job->instant = After(now.monotonic, job->period - since_latest);
  Arm(job);
  return due;
}

void SchedulerCore::Decide(const std::shared_ptr<Job>& job, Due due, absl::Time wall,
                           Starts& starts) {
  if (is_stopping_) return;
  if (job->is_paused) {
    ArmAfterDelay(job);
    return;
  }
  const absl::Duration late = wall - job->jitter - due.times.back();
  if (job->missed_policy == Missed::kSkip && late > job->late_max) {
    job->missed += static_cast<uint64_t>(due.count);
    ArmAfterDelay(job);
    return;
  }
  job->missed += static_cast<uint64_t>(due.count) - due.times.size();
  if (job->is_running) {
    job->overlap_skips += due.times.size();
    return;  // A delay counts from the end of the run that goes on.
  }
  starts.push_back(Begin(job, due.times.front()));
  due.times.pop_front();
  job->pending = std::move(due.times);
}

absl::Duration SchedulerCore::UntilNext(const Clock::Reading& now) const {
  absl::Duration wait = absl::InfiniteDuration();
  if (!by_wall_.empty()) wait = by_wall_.begin()->first - now.wall;
  if (!by_monotonic_.empty()) {
    wait = std::min(wait, absl::FromChrono(by_monotonic_.begin()->first - now.monotonic));
  }
  if (!by_extension_.empty()) {
    wait = std::min(wait, absl::FromChrono(by_extension_.begin()->first - now.monotonic));
  }
  return wait;
}

absl::Time SchedulerCore::StartDue() {
  Work work;
  {
    MutexLock lock(mutex_);
    // Leases are looked after to the end.
    if (is_stopping_ && running_.empty()) return absl::InfiniteFuture();
    CollectDue(options_.clock->Now(), work);
  }
  LaunchAll(work);
  // A run that has ended meanwhile may have put its job back.
  MutexLock lock(mutex_);
  const Clock::Reading now = options_.clock->Now();
  return now.wall + UntilNext(now);
}

void SchedulerCore::Loop() {
  while (true) {
    Work work;
    {
      MutexLock lock(mutex_);
      // Leases are looked after to the end.
      if (is_stopping_ && (running_.empty() || is_abandoned_)) return;
      const Clock::Reading now = options_.clock->Now();
      CollectDue(now, work);
      if (work.empty()) {
        const absl::Duration wait = std::min(UntilNext(now), Scheduler::kStep);
        // Whether it was woken or slept on to the end, it looks again.
        static_cast<void>(
            changed_.WaitUntil(mutex_, Deadline::After(absl::ToChronoNanoseconds(wait))));
      }
    }
    LaunchAll(work);
  }
}

void SchedulerCore::LaunchAll(const Work& work) {
  // Those whose time runs out first.
  for (const Start& extension : work.extensions) LaunchExtension(extension);
  for (const Start& start : work.starts) Launch(start);
}

SchedulerCore::Start SchedulerCore::Begin(const std::shared_ptr<Job>& job, absl::Time scheduled) {
  BOBBIN_CHECK(!job->is_running, "runs of a job do not overlap");
  job->is_running = true;
  job->stop = std::make_shared<Event>();
  running_.insert(job);
  return {job, ++job->run_number, scheduled, job->stop};
}

void SchedulerCore::Launch(const Start& start) {
  Job& job = *start.job;
  absl::StatusOr<VirtualThread> thread =
      job.runner->Start(job.name, Run(shared_from_this(), start));
  MutexLock lock(mutex_);
  if (!thread.ok()) {
    // The run has been dropped, and counted as a failure; this is why.
    job.last_error = std::string(MessageOf(thread.status()));
    return;
  }
  if (!thread->is_joinable()) return;
  if (!job.is_running || job.run_number != start.run_number) {
    std::move(*thread).Detach();  // It has ended already.
    return;
  }
  job.thread = *std::move(thread);
  if (start.stop->IsSet()) job.thread.Cancel();
}

void SchedulerCore::NoteThread(const Start& start) {
  if (CurrentRole() != Role::kVirtual) return;
  MutexLock lock(mutex_);
  start.job->own_thread = &bobbin::internal::Current();
  if (start.stop->IsSet()) start.job->own_thread->Cancel();
}

void SchedulerCore::NoteStart(const Start& start, absl::Time wall) {
  MutexLock lock(mutex_);
  start.job->last_start = wall;
  start.job->start_lag = wall - start.scheduled;
}

void SchedulerCore::EndRun(const Start& start, Ended ended, const absl::Status& status,
                           absl::Time started) {
  Starts starts;
  const absl::Time now = options_.clock->Now().wall;
  {
    MutexLock lock(mutex_);
    Job& job = *start.job;
    if (ended == Ended::kRan) {
      ++job.runs;
      job.recent.push_front({.scheduled = start.scheduled,
                             .started = started,
                             .duration = now - started,
                             .outcome = status.ok() ? JobOutcome::kSuccess : JobOutcome::kFailure,
                             .error = std::string(MessageOf(status))});
      if (job.recent.size() > options_.recent_max) job.recent.pop_back();
      if (status.ok()) job.last_success = now;
    }
    if (ended == Ended::kSkipped) {
      ++job.lease_skips;
    } else if (!status.ok()) {
      ++job.failures;
      job.last_error = status.ToString();
    }

    job.is_running = false;
    running_.erase(start.job);
    job.own_thread = nullptr;
    if (job.thread.is_joinable()) std::move(job.thread).Detach();
    if (!is_stopping_ && !job.pending.empty()) {
      starts.push_back(Begin(start.job, job.pending.front()));
      job.pending.pop_front();
    } else {
      ArmAfterDelay(start.job);
    }
    changed_.NotifyAll();
    ended_.NotifyAll();
  }
  for (const Start& next : starts) Launch(next);
}

void SchedulerCore::AskToStop(Job& job) {
  if (!job.is_running) return;
  job.stop->Set();
  if (job.own_thread != nullptr) job.own_thread->Cancel();
  if (job.thread.is_joinable()) job.thread.Cancel();
}

std::pair<SchedulerCore::Claim, absl::Status> SchedulerCore::ClaimLease(const Start& start) {
  const LeaseTerms& terms = *start.job->lease_terms;
  // Reckoned from before the claim is sent: by the store's clock the lease begins, and ends, later.
  const MonotonicTime before = options_.clock->Now().monotonic;
  const absl::StatusOr<std::optional<Lease>> lease = options_.leases->Claim(terms);
  if (!lease.ok()) return {Claim::kFailed, lease.status()};
  if (!*lease) return {Claim::kTaken, absl::OkStatus()};
  MutexLock lock(mutex_);
  start.job->lease = **lease;
  start.job->lease_end = After(before, terms.at_most).value_or(MonotonicTime::max());
  ArmExtension(start.job, After(before, terms.at_most / 2));
  changed_.NotifyAll();
  return {Claim::kHeld, absl::OkStatus()};
}

// What goes wrong here is of no consequence: the lease then ends by itself.
void SchedulerCore::ReleaseLease(const Start& start) {
  std::optional<Lease> lease;
  {
    MutexLock lock(mutex_);
    ArmExtension(start.job, std::nullopt);
    lease = std::exchange(start.job->lease, std::nullopt);
  }
  if (!lease) return;
  const CancelShield shield;
  const DeadlineScope at_most(kReleaseMax);
  options_.leases->Release(*lease).IgnoreError();
}

int64_t SchedulerCore::TokenOf(const Start& start) const {
  MutexLock lock(mutex_);
  return start.job->lease ? start.job->lease->token : 0;
}

void SchedulerCore::ArmExtension(const std::shared_ptr<Job>& job,
                                 std::optional<MonotonicTime> when) {
  if (job->extension) by_extension_.erase({*job->extension, job});
  job->extension = when;
  if (when) by_extension_.emplace(*when, job);
}

void SchedulerCore::LoseLease(const std::shared_ptr<Job>& job) {
  ArmExtension(job, std::nullopt);
  job->lease.reset();
  ++job->leases_lost;
  AskToStop(*job);
}

// An extension that is on its way is not sent again; the next look is when the lease runs out.
void SchedulerCore::CollectExtensions(MonotonicTime now, Work& work) {
  while (!by_extension_.empty() && by_extension_.begin()->first <= now) {
    const std::shared_ptr<Job> job = by_extension_.begin()->second;
    if (now >= job->lease_end) {
      LoseLease(job);
      continue;
    }
    work.extensions.push_back({job, job->run_number, {}, job->stop});
    ArmExtension(job, job->lease_end);
  }
}

void SchedulerCore::LaunchExtension(const Start& start) {
  absl::StatusOr<VirtualThread> thread = lease_runner_->Start(
      start.job->name, [core = shared_from_this(), start] { core->ExtendLease(start); });
  if (thread.ok()) {
    if (thread->is_joinable()) std::move(*thread).Detach();
    return;
  }
  MutexLock lock(mutex_);
  if (start.job->run_number == start.run_number) ExtendSoon(start.job);
}

// As long as the lease may still be held, and oftener towards its end.
void SchedulerCore::ExtendSoon(const std::shared_ptr<Job>& job) {
  if (!job->lease) return;
  const MonotonicTime now = options_.clock->Now().monotonic;
  const absl::Duration left = absl::FromChrono(job->lease_end - now);
  ArmExtension(job, After(now, std::max(left / 4, absl::Milliseconds(1))));
  changed_.NotifyAll();
}

void SchedulerCore::ExtendLease(const Start& start) {
  std::optional<Lease> lease;
  {
    MutexLock lock(mutex_);
    if (start.job->run_number == start.run_number) lease = start.job->lease;
  }
  if (!lease) return;  // The run has ended meanwhile.
  const absl::Duration at_most = start.job->lease_terms->at_most;
  const MonotonicTime before = options_.clock->Now().monotonic;
  const absl::StatusOr<Lease> extended = options_.leases->Extend(*lease, at_most);

  MutexLock lock(mutex_);
  if (start.job->run_number != start.run_number || !start.job->lease) return;
  if (extended.ok()) {
    start.job->lease = *extended;
    start.job->lease_end = After(before, at_most).value_or(MonotonicTime::max());
    ArmExtension(start.job, After(before, at_most / 2));
    changed_.NotifyAll();
  } else if (extended.status().code() == absl::StatusCode::kAborted) {
    LoseLease(start.job);
  } else {
    ExtendSoon(start.job);  // The store has failed; the lease may still be held.
  }
}

absl::Status SchedulerCore::Stop() {
  MutexLock lock(mutex_);
  is_stopping_ = true;
  changed_.NotifyAll();
  for (const std::shared_ptr<Job>& job : running_) AskToStop(*job);
  const absl::Status ended =
      ended_.WaitUntil(mutex_, Deadline::After(options_.stop_budget),
                       [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_.empty(); });
  if (ended.ok()) return absl::OkStatus();
  is_abandoned_ = true;
  changed_.NotifyAll();
  std::vector<std::string> names;
  for (const std::shared_ptr<Job>& job : running_) names.push_back(job->name);
  std::sort(names.begin(), names.end());
  return MakeStatus(ended.code(),
                    fmt::format("stop scheduler: still running: {}", fmt::join(names, ", ")));
}

JobInfo SchedulerCore::InfoOf(const Job& job, const Clock::Reading& now) const {
  JobInfo info;
  info.name = job.name;
  info.schedule = job.schedule_text;
  info.runner = job.runner->name();
  info.is_disabled = job.kind == Job::Kind::kDisabled;
  info.is_paused = job.is_paused;
  info.is_running = job.is_running;
  info.runs = job.runs;
  info.failures = job.failures;
  info.overlap_skips = job.overlap_skips;
  info.lease_skips = job.lease_skips;
  info.leases_lost = job.leases_lost;
  if (job.lease_terms) info.lease_name = job.lease_terms->name;
  info.lease = job.lease;
  info.missed = job.missed;
  if (job.occurrence) info.next = *job.occurrence + job.jitter;
  if (job.instant) info.next = now.wall + absl::FromChrono(*job.instant - now.monotonic);
  info.last_start = job.last_start;
  info.last_success = job.last_success;
  info.last_error = job.last_error;
  info.start_lag = job.start_lag;
  info.recent.assign(job.recent.begin(), job.recent.end());
  return info;
}

std::vector<JobInfo> SchedulerCore::Jobs() const {
  const Clock::Reading now = options_.clock->Now();
  MutexLock lock(mutex_);
  std::vector<JobInfo> infos;
  for (const auto& [name, job] : jobs_) infos.push_back(InfoOf(*job, now));
  return infos;
}

}  // namespace bobbin::cron::internal
