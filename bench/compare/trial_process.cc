// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/trial_process.h"

#include <chrono>
#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>

#include "bench/compare/child_process.h"
#include "bench/compare/meter.h"
#include "bench/compare/trial_json.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

// How often the progress is shown.
constexpr std::chrono::milliseconds kLook{100};

// What a trial may need besides its own time: to start, and to end, ten thousands of threads.
constexpr std::chrono::seconds kPatience{120};

absl::StatusOr<TrialResult> Converse(const Trial& trial, absl::FunctionRef<bool()> goes_on) {
  BOBBIN_ASSIGN_OR_RETURN(ChildProcess child,
                          ChildProcess::Start({std::string(kTrialFlag), ToJson(trial).dump()}));
  const auto time = std::chrono::duration<double>(trial.warmup_seconds() + trial.seconds);
  const MonotonicTime latest =
      MonotonicNow() + kPatience + std::chrono::duration_cast<std::chrono::nanoseconds>(time);
  while (child.ReadFor(kLook)) {
    if (!goes_on()) return TrialResult{.trial = trial, .outcome = Outcome::kInterrupted};
    if (MonotonicNow() > latest) {
      return MakeStatus(absl::StatusCode::kDeadlineExceeded, "the trial did not end");
    }
  }
  BOBBIN_RETURN_IF_ERROR(child.Wait());
  return ParseTrialResult(child.output());
}

}  // namespace

TrialResult RunTrial(const Trial& trial, absl::FunctionRef<bool()> goes_on) {
  const CpuBalance balance;
  absl::StatusOr<TrialResult> result = Converse(trial, goes_on);
  if (!result.ok()) {
    result = TrialResult{.trial = trial, .message = std::string(MessageOf(result.status()))};
  }
  result->cpu_share_of_others = balance.ShareOfOthers();
  return *std::move(result);
}

int RunTrialHere(std::string_view trial) {
  ChildProcess::EndWithParent();
  const absl::StatusOr<Trial> parsed = ParseTrial(trial);
  const Workload* const workload = parsed.ok() ? WorkloadNamed(parsed->workload) : nullptr;
  if (workload == nullptr) {
    fmt::print(stderr, "bobbin-compare: {} is for the program itself\n", kTrialFlag);
    return 2;
  }

  TrialResult result{.trial = *parsed, .outcome = Outcome::kMeasured};
  absl::StatusOr<Figures> figures = workload->run(*parsed);
  if (figures.ok() && figures->operations == 0) {
    figures = MakeStatus(absl::StatusCode::kInternal, "no operation has ended in that time");
  }
  if (figures.ok()) {
    result.figures = *figures;
  } else {
    const bool ran_out = absl::IsResourceExhausted(figures.status());
    result.outcome = ran_out ? Outcome::kRanOut : Outcome::kFailed;
    result.message = MessageOf(figures.status());
  }
  fmt::print("{}\n", ToJson(result).dump());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace bobbin::compare
