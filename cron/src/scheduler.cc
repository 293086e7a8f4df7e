// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/platform_pool.h>

#include "cron/src/scheduler_core.h"

namespace bobbin::cron {

namespace {

int64_t Milliseconds(absl::Time time) { return absl::ToUnixMillis(time); }

nlohmann::ordered_json JsonOf(const JobRunRecord& run) {
  nlohmann::ordered_json json = {
      {"scheduledEpochMillis", Milliseconds(run.scheduled)},
      {"startedEpochMillis", Milliseconds(run.started)},
      {"durationMillis", absl::ToInt64Milliseconds(run.duration)},
      {"outcome", run.outcome == JobOutcome::kSuccess ? "success" : "failure"}};
  if (!run.error.empty()) json["error"] = run.error;
  return json;
}

nlohmann::ordered_json JsonOf(const JobInfo& job) {
  nlohmann::ordered_json json = {{"name", job.name},
                                 {"schedule", job.schedule},
                                 {"executor", job.runner},
                                 {"running", job.is_running},
                                 {"runs", job.runs},
                                 {"failures", job.failures},
                                 {"skipped", job.overlap_skips + job.lease_skips}};
  if (!job.lease_name.empty()) json["lock"] = job.lease_name;
  if (job.next) json["nextRunEpochMillis"] = Milliseconds(*job.next);
  if (job.last_start) json["lastRunEpochMillis"] = Milliseconds(*job.last_start);
  if (!job.recent.empty()) {
    json["lastDurationMillis"] = absl::ToInt64Milliseconds(job.recent.front().duration);
  }
  if (!job.last_error.empty()) json["lastError"] = job.last_error;
  json["disabled"] = job.is_disabled;
  json["paused"] = job.is_paused;
  json["overlapSkips"] = job.overlap_skips;
  json["leaseSkips"] = job.lease_skips;
  json["leasesLost"] = job.leases_lost;
  if (job.lease) {
    json["leaseOwner"] = job.lease->owner;
    json["leaseSinceEpochMillis"] = Milliseconds(job.lease->since);
  }
  json["missed"] = job.missed;
  json["startLagMillis"] = absl::ToInt64Milliseconds(job.start_lag);
  if (job.last_success) json["lastSuccessEpochMillis"] = Milliseconds(*job.last_success);
  json["recent"] = nlohmann::ordered_json::array();
  for (const JobRunRecord& run : job.recent) json["recent"].push_back(JsonOf(run));
  return json;
}

// What is known of a job, but for the lengths of its runs.
void AddNumbers(MetricsSnapshot& snapshot, const JobInfo& job) {
  const std::vector<Attribute> attributes = {{"bobbin.job", job.name}};
  const auto count = [&](MetricOptions metric, uint64_t value) {
    snapshot.AddCounter(metric, static_cast<double>(value), attributes);
  };
  const auto measure = [&](MetricOptions metric, double value) {
    snapshot.AddGauge(metric, value, attributes);
  };
  count({.name = "bobbin.scheduler.runs", .help = "Runs whose body was executed."}, job.runs);
  count({.name = "bobbin.scheduler.failures", .help = "Runs that failed, or could not start."},
        job.failures);
  count({.name = "bobbin.scheduler.overlap_skips",
         .help = "Due times that found the run before still going."},
        job.overlap_skips);
  count({.name = "bobbin.scheduler.lease_skips", .help = "Runs whose lease another one held."},
        job.lease_skips);
  count({.name = "bobbin.scheduler.leases_lost", .help = "Leases that were lost during a run."},
        job.leases_lost);
  count({.name = "bobbin.scheduler.missed", .help = "Due times that were slept through."},
        job.missed);
  measure(
      {.name = "bobbin.scheduler.start_lag", .help = "How late the last run began.", .unit = "ms"},
      absl::ToDoubleMilliseconds(job.start_lag));
  measure({.name = "bobbin.scheduler.running", .help = "Whether a run goes on now."},
          job.is_running ? 1 : 0);
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options) {
  const bool has_thread = options.drive == SchedulerOptions::Drive::kOwnThread;
  Metrics* const metrics = options.metrics;
  if (options.runtime == nullptr) options.runtime = CurrentRuntimeOrNull();
  Runtime* const runtime = options.runtime;
  core_ = std::make_shared<internal::SchedulerCore>(std::move(options));
  if (metrics != nullptr) {
    source_ = metrics->AddSource([core = core_.get()](MetricsSnapshot& snapshot) {
      for (const JobInfo& job : core->Jobs()) AddNumbers(snapshot, job);
    });
  }
  if (runtime != nullptr) {
    stop_hook_ = runtime->lifecycle().OnStop({.phase = StopPhase::kScheduler, .name = "cron"},
                                             [core = core_] { return core->Stop(); });
  }
  if (!has_thread) return;
  thread_ = std::make_unique<PlatformPool>(PlatformPoolOptions{.name = "cron", .threads = 1});
  // What the timetable starts is nobody's; it has nobody's fields and span.
  const bobbin::internal::ContextSwap nothing(nullptr);
  const absl::Status started = thread_->Submit([core = core_] { core->Loop(); });
  BOBBIN_CHECK(started.ok(), MessageOf(started));
}

Scheduler::~Scheduler() {
  stop_hook_ = StopHook();
  const CancelShield shield;
  const absl::Status stopped = Stop();
  if (!stopped.ok()) {
    bobbin::internal::Tell({.level = LogLevel::kError, .text = MessageOf(stopped)});
  }
}

absl::Status Scheduler::AddBody(JobOptions options, JobBody body) {
  return core_->Add(std::move(options), std::move(body));
}
absl::Status Scheduler::Remove(std::string_view name) { return core_->Remove(name); }
absl::Status Scheduler::Pause(std::string_view name) {
  return core_->SetPaused(name, internal::SchedulerCore::Paused::kYes);
}
absl::Status Scheduler::Resume(std::string_view name) {
  return core_->SetPaused(name, internal::SchedulerCore::Paused::kNo);
}
absl::Status Scheduler::RunNow(std::string_view name) { return core_->RunNow(name); }
std::vector<JobInfo> Scheduler::Jobs() const { return core_->Jobs(); }
absl::Time Scheduler::StartDue() { return core_->StartDue(); }

std::string Scheduler::JobsJson() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const JobInfo& job : core_->Jobs()) json.push_back(JsonOf(job));
  // An error may be any bytes.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::Status Scheduler::Stop() {
  const absl::Status stopped = core_->Stop();
  if (thread_ != nullptr) BOBBIN_RETURN_IF_ERROR(thread_->Shutdown());
  return stopped;
}

}  // namespace bobbin::cron
