// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include <bobbin/core/clock.h>
#include <bobbin/core/future.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/sleep.h>

#include "bench/compare/executor_crew.h"
#include "bench/compare/random.h"
#include "bench/compare/units.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

// How many services a request calls at the same time.
constexpr size_t kFanOut = 4;

// How long one takes, as somebody else's does, over a network.
constexpr std::chrono::microseconds kCallMin{1000};
constexpr std::chrono::microseconds kCallMax{5000};

constexpr uint64_t kSeeds = uint64_t{1} << 32;

absl::StatusOr<uint64_t> CallService(uint64_t seed) {
  Random random(seed);
  const auto spread = random.Below(static_cast<uint64_t>((kCallMax - kCallMin).count()));
  BOBBIN_RETURN_IF_ERROR(SleepFor(kCallMin + std::chrono::microseconds(spread)));
  return spread;
}

absl::StatusOr<uint64_t> ServeRequest(Executor& services, Executor& summaries, Random& random) {
  std::array<Future<uint64_t>, kFanOut> calls;
  for (Future<uint64_t>& call : calls) call = Async(services, CallService, random.Below(kSeeds));
  uint64_t sum = 0;
  for (Future<uint64_t>& call : calls) {
    BOBBIN_ASSIGN_OR_RETURN(const uint64_t part, call.Get());
    sum += part;
  }
  return Async(summaries, CallService, sum).Get();
}

absl::StatusOr<Figures> Run(const Trial& trial) {
  BOBBIN_ASSIGN_OR_RETURN(const std::unique_ptr<ExecutorCrew> crew,
                          ExecutorCrew::Make(trial.kind, trial.concurrency + 1,  // The starter.
                                             {{"services", trial.concurrency * kFanOut},
                                              {"summaries", trial.concurrency}}));
  Executor& services = crew->Named("services");
  Executor& summaries = crew->Named("summaries");
  return MeasureUnits(trial, *crew, [&](size_t unit, Measurement& measurement) -> absl::Status {
    Random random(unit);
    while (true) {
      const MonotonicTime begun = MonotonicNow();
      BOBBIN_RETURN_IF_ERROR(ServeRequest(services, summaries, random).status());
      const MonotonicTime now = MonotonicNow();
      if (!measurement.Record(now, now - begun)) return absl::OkStatus();
    }
  });
}

}  // namespace

const Workload kAsyncWorkload = {
    .name = "async",
    .title = "every request calls 4 services at once, then one more",
    .latency = "that of a request",
    // An executor has up to 4,096 platform threads.
    .concurrency_max = 1000,
    .run = Run,
};

}  // namespace bobbin::compare
