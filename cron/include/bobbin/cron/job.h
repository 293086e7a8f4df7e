// SPDX-License-Identifier: Apache-2.0
//
// Job: what a scheduler is told about one, what a run of it is told, and what is known about it.
//
//   Called from   any thread: these are values.
//   Suspends      never.
//
// Example:
//   scheduler.Add({.name = "nightly-report",
//                  .when = "0 30 2 * * MON-FRI"_cron,
//                  .zone = "Europe/Berlin"},
//                 [&](const bobbin::cron::JobRun& run) { return SendReport(run.scheduled); });
//   scheduler.Add({.name = "poll", .fixed_delay = "${poll.delay:10s}"}, [&] { return Poll(); });

#ifndef BOBBIN_CRON_JOB_H_
#define BOBBIN_CRON_JOB_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include <bobbin/core/event.h>
#include <bobbin/cron/expression.h>
#include <bobbin/cron/lease.h>
#include <bobbin/cron/schedule.h>
#include <bobbin/sched/executor.h>

namespace bobbin::cron {

class JobRunner;

// When a cron job is due: an expression, or a text for one. In the text ${key} and ${key:fallback}
// stand for a property (SchedulerOptions::property), and "-" switches the job off.
class When {
 public:
  When() = default;
  When(const Expression& expression) : value_(expression) {}  // NOLINT: .when = "..."_cron
  When(const char* text) : value_(std::string(text)) {}       // NOLINT: .when = "${report}"
  When(std::string text) : value_(std::move(text)) {}         // NOLINT: the same

  bool IsSet() const { return !std::holds_alternative<std::monostate>(value_); }
  const Expression* expression() const { return std::get_if<Expression>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }

 private:
  std::variant<std::monostate, Expression, std::string> value_;
};

// A length of time, or a text for one: "10s", "1h30m", "PT1M", or a plain number of milliseconds.
// The text takes ${key} and ${key:fallback}, too.
class Period {
 public:
  Period() = default;
  template <typename Rep, typename Unit>
  Period(std::chrono::duration<Rep, Unit> period)  // NOLINT: .fixed_rate = 10s
      : value_(absl::FromChrono(std::chrono::duration_cast<std::chrono::nanoseconds>(period))) {}
  Period(absl::Duration period) : value_(period) {}  // NOLINT: .fixed_rate = absl::Seconds(10)
  Period(const char* text) : value_(std::string(text)) {}  // NOLINT: .fixed_rate = "${rate:10s}"
  Period(std::string text) : value_(std::move(text)) {}    // NOLINT: the same

  bool IsSet() const { return !std::holds_alternative<std::monostate>(value_); }
  const absl::Duration* duration() const { return std::get_if<absl::Duration>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }

 private:
  std::variant<std::monostate, absl::Duration, std::string> value_;
};

// What becomes of due times that were slept through: the machine was suspended, its clock was put
// forward, the scheduler's thread did not get a CPU.
enum class Missed : uint8_t {
  kRunOnce,  // One run, late, for the latest of them.
  kSkip,     // None, if even the latest is more than JobOptions::late_max ago.
  kRunAll,   // One after another, JobOptions::missed_max of them at most.
};

struct JobOptions {
  std::string name = {};

  // Exactly one of these three. A fixed rate is a grid that begins with the first run; a fixed
  // delay counts from the end of a run to the start of the next.
  When when = {};
  Period fixed_rate = {};
  Period fixed_delay = {};

  // Before the first run, of a fixed rate or delay.
  Period initial_delay = {};

  // Of a cron job: as FindZone takes it, or with ${key:fallback}. Empty is UTC.
  std::string zone = {};
  Repeated repeated = Repeated::kFirst;
  Skipped skipped = Skipped::kSkip;

  // On what it runs, and on which executor; empty is "scheduling" or, on virtual threads,
  // "scheduling-virtual". A job that says neither runs where SchedulerOptions::runner says, if that
  // is set, else on platform threads.
  std::optional<ThreadKind> thread = std::nullopt;
  std::string executor = {};
  // Who runs it instead. Not with one of the two above.
  JobRunner* runner = nullptr;

  // Of several processes with this job, one runs it at a time: the one that holds this lease, which
  // is claimed before the body, extended while that runs, and released behind it. An empty name
  // stands for the job's. Wants SchedulerOptions::leases.
  std::optional<LeaseTerms> lease = std::nullopt;

  Missed missed = Missed::kRunOnce;
  absl::Duration late_max = absl::Minutes(1);
  int64_t missed_max = 100;

  // Each run starts later by a part of this, which is always the same for a name: jobs that are due
  // at the same time do not all start at once.
  absl::Duration jitter = absl::ZeroDuration();
};

// What a run is told.
struct JobRun {
  std::string_view name;
  // When it was due.
  absl::Time scheduled;
  // Set when the run should come to an end: the scheduler stops, or the job is removed. On a
  // virtual thread every wait says so, too. Also set when the lease is lost.
  Event& stop;
  // Of the lease: greater than that of any holder before. 0 without one.
  int64_t token = 0;
};

using JobBody = absl::AnyInvocable<absl::Status(const JobRun&)>;

enum class JobOutcome : uint8_t { kSuccess, kFailure };

// A run that has ended.
struct JobRunRecord {
  absl::Time scheduled;
  absl::Time started;
  absl::Duration duration;
  JobOutcome outcome = JobOutcome::kSuccess;
  std::string error;  // Empty for kSuccess.
};

// What is known about a job.
struct JobInfo {
  std::string name;
  std::string schedule;      // "cron 0 30 2 * * MON-FRI (Europe/Berlin)", "every 10s", "delay 10s"
  std::string runner;        // The executor's name.
  bool is_disabled = false;  // Its expression is "-".
  bool is_paused = false;
  bool is_running = false;  // From the moment it was handed to its runner.

  uint64_t runs = 0;           // That have ended.
  uint64_t failures = 0;       // Of them; and runs that could not be started.
  uint64_t overlap_skips = 0;  // Due while the run before was going on.
  uint64_t lease_skips = 0;    // Due while another process held the lease.
  uint64_t leases_lost = 0;    // While the body was running.
  uint64_t missed = 0;         // Due times that were slept through and got no run of their own.

  std::optional<absl::Time> next;  // Nothing if it is never due.
  std::optional<absl::Time> last_start;
  std::optional<absl::Time> last_success;  // When that run ended.
  std::string last_error;                  // Kept after a later success.
  absl::Duration start_lag;                // Of the last run: from being due to being begun.
  std::vector<JobRunRecord> recent;        // The newest first.
  std::string lease_name;                  // Empty without one.
  std::optional<Lease> lease;              // While this process holds it.
};

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_JOB_H_
