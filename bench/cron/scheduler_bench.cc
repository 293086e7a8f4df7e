// SPDX-License-Identifier: Apache-2.0
//
// A look at a timetable of many jobs: with nothing due, and with one job due at each look.

#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/vthread.h>
#include <bobbin/cron/clock.h>
#include <bobbin/cron/job_runner.h>
#include <bobbin/cron/scheduler.h>

namespace bobbin::bench {
namespace {

class SetClock final : public cron::Clock {
 public:
  Reading Now() override { return reading; }
  Reading reading = {.wall = absl::UnixEpoch(), .monotonic = {}};
};

class RunsAtOnce final : public cron::JobRunner {
 public:
  absl::StatusOr<VirtualThread> Start(std::string_view /*job*/,
                                      absl::AnyInvocable<void() &&> run) override {
    std::move(run)();
    return VirtualThread();
  }
  std::string_view name() const override { return "at once"; }
};

// `jobs` of them, each once in as many seconds: one is due in every second.
struct Timetable {
  explicit Timetable(int64_t jobs) {
    for (int64_t i = 0; i < jobs; ++i) {
      const absl::Status added = scheduler.Add({.name = std::to_string(i),
                                                .fixed_rate = absl::Seconds(jobs),
                                                .initial_delay = absl::Seconds(i + 1)},
                                               [] {});
      BOBBIN_CHECK(added.ok(), "all jobs are right");
    }
  }
  SetClock clock;
  RunsAtOnce runner;
  cron::Scheduler scheduler{
      {.runner = &runner, .clock = &clock, .drive = cron::SchedulerOptions::Drive::kByHand}};
};

void Look(benchmark::State& state) {
  Timetable timetable(state.range(0));
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(timetable.scheduler.StartDue());
}
BENCHMARK(Look)->Name("CronScheduler/NothingDue")->Arg(100)->Arg(10'000);

void LookAndRun(benchmark::State& state) {
  Timetable timetable(state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    timetable.clock.reading.wall += absl::Seconds(1);
    timetable.clock.reading.monotonic += std::chrono::seconds(1);
    benchmark::DoNotOptimize(timetable.scheduler.StartDue());
  }
}
BENCHMARK(LookAndRun)->Name("CronScheduler/OneDue")->Arg(100)->Arg(10'000);

}  // namespace
}  // namespace bobbin::bench
