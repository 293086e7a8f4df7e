// SPDX-License-Identifier: Apache-2.0
//
// Cron: expressions that the compiler checks, time zones, and the runs of a schedule.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "fmt/format.h"

#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/clock.h>
#include <bobbin/cron/expression.h>
#include <bobbin/cron/job_runner.h>
#include <bobbin/cron/lease.h>
#include <bobbin/cron/memory_lease_store.h>
#include <bobbin/cron/schedule.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/cron/zone.h>
#include <bobbin/sched/runtime.h>

using namespace std::chrono_literals;

namespace {

// [literal]
using bobbin::cron::operator""_cron;

constexpr bobbin::cron::Expression kNightly = "0 30 2 * * MON-FRI"_cron;

static_assert(*"0 0 0 29 2 *"_cron.Next(absl::CivilSecond(2023, 3, 1)) ==
              absl::CivilSecond(2024, 2, 29));
// [/literal]

// [parse]
absl::StatusOr<bobbin::cron::Schedule> ReadSchedule(std::string_view when, std::string_view where) {
  BOBBIN_ASSIGN_OR_RETURN(const auto expression, bobbin::cron::Expression::Parse(when));
  BOBBIN_ASSIGN_OR_RETURN(const absl::TimeZone zone, bobbin::cron::FindZone(where));
  return bobbin::cron::Schedule({.expression = expression, .zone = zone});
}
// [/parse]

// [mistake]
std::string Underlined(std::string_view text) {
  const std::optional<bobbin::cron::Mistake> mistake = bobbin::cron::FindMistake(text);
  if (!mistake) return {};
  return fmt::format("{}\n{}{}\n{}\n", text, std::string(mistake->column - 1, ' '),
                     std::string(mistake->length, '^'), mistake->Text(text));
}
// [/mistake]

// [walk]
void PrintWeek(const bobbin::cron::Schedule& schedule, absl::Time from) {
  for (const bobbin::cron::Occurrence& run : schedule.Between(from, from + absl::Hours(7 * 24))) {
    fmt::print("{}\n", absl::FormatTime(run.time, schedule.zone()));
  }
}
// [/walk]

// [clocks]
bobbin::cron::Schedule EveryHalfHour(absl::TimeZone zone) {
  return bobbin::cron::Schedule({.expression = "0 */30 * * * *"_cron,
                                 .zone = zone,
                                 .repeated = bobbin::cron::Repeated::kIntervalsInBoth});
}
// [/clocks]

absl::Status WriteReport(const bobbin::cron::JobRun& run) {
  fmt::print("a report for {}\n", absl::FormatTime(run.scheduled));
  return absl::OkStatus();
}

// [jobs]
absl::Status RunJobs() {
  bobbin::cron::Scheduler scheduler;

  BOBBIN_RETURN_IF_ERROR(scheduler.Add({.name = "nightly-report",
                                        .when = "${report.when:0 30 2 * * MON-FRI}",
                                        .zone = "Europe/Berlin",
                                        .executor = "reports",
                                        .missed = bobbin::cron::Missed::kSkip},
                                       WriteReport));

  bobbin::Event beaten;
  BOBBIN_RETURN_IF_ERROR(scheduler.Add(
      {.name = "heartbeat", .fixed_rate = 10ms, .thread = bobbin::ThreadKind::kVirtual},
      [&] { beaten.Set(); }));
  BOBBIN_RETURN_IF_ERROR(beaten.Wait());

  fmt::print("{}\n", scheduler.JobsJson());
  return scheduler.Stop();  // Asks what runs to stop, and waits for it.
}
// [/jobs]

// [lease]
absl::Status RunAlone(bobbin::cron::JobRunner& runner, bobbin::cron::LeaseStore& leases) {
  bobbin::cron::Scheduler scheduler({.runner = &runner, .leases = &leases});
  bobbin::Event charged;
  BOBBIN_RETURN_IF_ERROR(scheduler.Add(
      {.name = "charge-cards",
       .fixed_delay = "${charge.delay:1h}",
       .lease =
           bobbin::cron::LeaseTerms{.at_most = absl::Minutes(5), .at_least = absl::Seconds(30)}},
      [&](const bobbin::cron::JobRun& run) {
        fmt::print("charging cards with token {}\n", run.token);
        charged.Set();
      }));
  BOBBIN_RETURN_IF_ERROR(charged.Wait());
  return scheduler.Stop();
}
// [/lease]

// [virtual-time]
class TestClock final : public bobbin::cron::Clock {
 public:
  Reading Now() override { return reading; }
  Reading reading = {.wall = absl::UnixEpoch(), .monotonic = {}};
};

class RunsAtOnce final : public bobbin::cron::JobRunner {
 public:
  absl::StatusOr<bobbin::VirtualThread> Start(std::string_view,
                                              absl::AnyInvocable<void() &&> run) override {
    std::move(run)();
    return bobbin::VirtualThread();
  }
  std::string_view name() const override { return "at once"; }
};

int CountRunsOfAYear() {
  TestClock clock;
  RunsAtOnce runner;
  bobbin::cron::Scheduler scheduler({.runner = &runner,
                                     .clock = &clock,
                                     .drive = bobbin::cron::SchedulerOptions::Drive::kByHand});
  int runs = 0;
  BOBBIN_CHECK(scheduler.Add({.name = "hourly", .when = "@hourly"}, [&] { ++runs; }).ok(), "");
  const absl::Time end = absl::UnixEpoch() + absl::Hours(24 * 365);
  while (clock.reading.wall < end) clock.reading.wall = scheduler.StartDue();
  return runs;
}
// [/virtual-time]

absl::Status Main() {
  fmt::print("{}\n", kNightly.Describe());
  BOBBIN_CHECK(kNightly.Describe() == "at 02:30, Monday to Friday", "as the guide says");

  BOBBIN_ASSIGN_OR_RETURN(const bobbin::cron::Schedule nightly,
                          ReadSchedule("0 30 2 * * MON-FRI", "Europe/Berlin"));
  const absl::Time monday = absl::FromCivil(absl::CivilDay(2026, 11, 30), nightly.zone());
  PrintWeek(nightly, monday);
  BOBBIN_CHECK(nightly.Next(monday)->local == absl::CivilSecond(2026, 11, 30, 2, 30, 0),
               "as the guide says");

  fmt::print("{}", Underlined("0 0 22-2 * * *"));
  BOBBIN_CHECK(Underlined("0 0 22-2 * * *").starts_with("0 0 22-2 * * *\n    ^^^^\nhour, column 5"),
               "as the guide says");

  BOBBIN_ASSIGN_OR_RETURN(const absl::TimeZone new_york,
                          bobbin::cron::FindZone("America/New_York"));
  const auto night = EveryHalfHour(new_york).Between(
      absl::FromCivil(absl::CivilSecond(2026, 11, 1, 1, 0, 0), new_york),
      absl::FromCivil(absl::CivilSecond(2026, 11, 1, 2, 0, 0), new_york));
  int runs = 0;
  for (const bobbin::cron::Occurrence& run : night) {
    ++runs;
    fmt::print("{}\n", absl::FormatTime(run.time, new_york));
  }
  BOBBIN_CHECK(runs == 4, "two in each pass");
  BOBBIN_CHECK(CountRunsOfAYear() == 24 * 365 - 1, "all but that of the year's end");
  return absl::OkStatus();
}

}  // namespace

int main() {
  bobbin::Runtime runtime;
  BOBBIN_CHECK(runtime.Spawn(RunJobs).Join().ok(), "all jobs are right");
  bobbin::cron::VirtualThreadRunner runner(runtime);
  bobbin::cron::MemoryLeaseStore leases(std::make_shared<bobbin::cron::MemoryLeases>());
  BOBBIN_CHECK(RunAlone(runner, leases).ok(), "the lease is free");
  return bobbin::Run(Main);
}
