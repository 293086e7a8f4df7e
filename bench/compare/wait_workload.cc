// SPDX-License-Identifier: Apache-2.0

#include <chrono>

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>

#include "bench/compare/random.h"
#include "bench/compare/units.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

constexpr std::chrono::microseconds kSleepMin{1000};
constexpr std::chrono::microseconds kSleepMax{5000};

absl::Status SleepOverAndOver(size_t unit, Measurement& measurement) {
  Random random(unit);
  while (true) {
    const auto spread = random.Below(static_cast<uint64_t>((kSleepMax - kSleepMin).count()));
    const MonotonicTime due = MonotonicNow() + kSleepMin + std::chrono::microseconds(spread);
    BOBBIN_RETURN_IF_ERROR(SleepUntil(Deadline::At(due)));
    const MonotonicTime now = MonotonicNow();
    if (!measurement.Record(now, now - due)) return absl::OkStatus();
  }
}

absl::StatusOr<Figures> Run(const Trial& trial) { return MeasureUnits(trial, SleepOverAndOver); }

}  // namespace

const Workload kWaitWorkload = {
    .name = "wait",
    .title = "every thread sleeps for 1 to 5 ms, over and over",
    .latency = "how much too late it wakes",
    .concurrency_max = 1'000'000,
    .run = Run,
};

}  // namespace bobbin::compare
