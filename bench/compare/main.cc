// SPDX-License-Identifier: Apache-2.0
//
// bobbin-compare: does the same work on virtual and on platform threads and shows both side by
// side.
//
// Exit codes: 0 all went well, 1 a workload failed, 2 wrong options, 128 + N ended by signal N.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>

#include "bench/compare/echo_client.h"
#include "bench/compare/json_report.h"
#include "bench/compare/machine.h"
#include "bench/compare/options.h"
#include "bench/compare/service.h"
#include "bench/compare/table.h"
#include "bench/compare/temporary_directory.h"
#include "bench/compare/terminal.h"
#include "bench/compare/text.h"
#include "bench/compare/trial_process.h"

namespace bobbin::compare {
namespace {

constexpr int kSuccess = 0;
constexpr int kFailure = 1;
constexpr int kMisuse = 2;
constexpr int kEndedBySignal = 128;

// The wanted concurrencies, those that are too much for the workload brought down to what is not.
std::vector<size_t> Bounded(const std::vector<size_t>& concurrencies, const Workload& workload) {
  std::vector<size_t> bounded;
  for (const size_t concurrency : concurrencies) {
    const size_t wanted = std::min(concurrency, workload.concurrency_max);
    if (std::find(bounded.begin(), bounded.end(), wanted) == bounded.end()) {
      bounded.push_back(wanted);
    }
  }
  return bounded;
}

class Comparison {
 public:
  explicit Comparison(const Options& options) : options_(options) {
    for (const Workload* workload : options_.workloads) {
      trials_ += Bounded(options_.concurrency, *workload).size() * options_.kinds.size();
    }
  }

  // Runs all trials and prints each workload's table when it is complete. Ends early when
  // interrupted.
  void Run() {
    for (const Workload* workload : options_.workloads) {
      if (InterruptSignal() != 0) return;
      const size_t first = results_.size();
      RunWorkload(*workload);
      progress_.Clear();
      fmt::print("\n{}",
                 RenderTable(*workload, std::span(results_).subspan(first), OutputColumns()));
      std::fflush(stdout);
    }
  }

  const std::vector<TrialResult>& results() const { return results_; }

  bool has_failed() const {
    return std::any_of(results_.begin(), results_.end(), [](const TrialResult& result) {
      return result.outcome == Outcome::kFailed;
    });
  }

 private:
  void RunWorkload(const Workload& workload) {
    const size_t first = results_.size();
    absl::StatusOr<std::unique_ptr<Service>> service = nullptr;
    if (workload.serve != nullptr) service = workload.serve();
    for (const size_t concurrency : Bounded(options_.concurrency, workload)) {
      for (const Kind kind : options_.kinds) {
        if (InterruptSignal() != 0) return;
        const Trial trial = {.workload = std::string(workload.name),
                             .kind = kind,
                             .concurrency = concurrency,
                             .seconds = options_.seconds};
        std::optional<TrialResult> known = KnownToRunOut(trial, std::span(results_).subspan(first));
        if (!service.ok()) known = NotServed(trial, service.status());
        results_.push_back(known.has_value() ? *std::move(known) : RunOne(trial));
        last_ended_ = MonotonicNow();
      }
    }
  }

  // The server that the trial needs could not be started.
  static TrialResult NotServed(const Trial& trial, const absl::Status& why) {
    return {.trial = trial,
            .outcome = absl::IsUnavailable(why) ? Outcome::kUnavailable : Outcome::kFailed,
            .message = std::string(MessageOf(why))};
  }

  // What ran out with fewer threads does so again.
  static std::optional<TrialResult> KnownToRunOut(const Trial& trial,
                                                  std::span<const TrialResult> earlier) {
    for (const TrialResult& result : earlier) {
      if (result.outcome == Outcome::kRanOut && result.trial.kind == trial.kind &&
          result.trial.concurrency <= trial.concurrency) {
        return TrialResult{.trial = trial, .outcome = Outcome::kRanOut, .message = result.message};
      }
    }
    return std::nullopt;
  }

  TrialResult RunOne(Trial trial) {
    const absl::StatusOr<TemporaryDirectory> directory = TemporaryDirectory::Make();
    if (!directory.ok()) {
      return {.trial = std::move(trial), .message = std::string(MessageOf(directory.status()))};
    }
    trial.directory = directory->path();
    return RunTrial(trial, [this, &trial] {
      ShowProgress(trial);
      return InterruptSignal() == 0;
    });
  }

  void ShowProgress(const Trial& trial) {
    const size_t done = results_.size();
    std::string left;
    if (done > 0) {
      // Every trial takes about as long as those before it.
      const double each = Seconds(last_ended_ - begun_) / static_cast<double>(done);
      const double others = each * static_cast<double>(trials_ - done - 1);
      const double this_one = std::max(1.0, each - Seconds(MonotonicNow() - last_ended_));
      left = fmt::format(", about {:.0f} s left", std::ceil(others + this_one));
    }
    progress_.Show(fmt::format("{} of {}: {}, {}{}", done + 1, trials_, trial.workload,
                               Threads(trial.concurrency, KindName(trial.kind)), left));
  }

  static double Seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  }

  const Options& options_;
  const MonotonicTime begun_ = MonotonicNow();
  MonotonicTime last_ended_ = begun_;
  size_t trials_ = 0;
  std::vector<TrialResult> results_;
  ProgressLine progress_;
};

int Complain(int exit_code, std::string_view reason) {
  fmt::print(stderr, "bobbin-compare: {}\n", reason);
  return exit_code;
}

int Compare(const Options& options) {
  if (!options.json_path.empty()) {
    const absl::Status status = CheckWritable(options.json_path);
    if (!status.ok()) return Complain(kMisuse, MessageOf(status));
  }
  for (const auto& [variable, address] : {std::pair(kPostgresVariable, &options.postgres),
                                          std::pair(kMySqlVariable, &options.mysql)}) {
    if (!address->empty() && setenv(variable, address->c_str(), 1) != 0) {
      return Complain(kFailure, MessageOf(ErrnoStatus(errno, "set an environment variable")));
    }
  }
  WatchForInterrupts();
  const Machine machine = DescribeMachine();
  fmt::print("{}\n", MachineText(machine));

  Comparison comparison(options);
  comparison.Run();
  const int signal = InterruptSignal();
  if (!options.json_path.empty()) {
    const absl::Status status =
        WriteJsonReport(options.json_path, machine, comparison.results(), signal != 0);
    if (!status.ok()) return Complain(kFailure, MessageOf(status));
  }
  if (signal != 0) {
    return Complain(kEndedBySignal + signal, "interrupted; the above is what there was");
  }
  return comparison.has_failed() ? kFailure : kSuccess;
}

int Main(int argc, char** argv) {
  if (argc == 3 && argv[1] == kTrialFlag) return RunTrialHere(argv[2]);
  if (argc == 3 && argv[1] == kEchoClientFlag) return RunEchoClientHere(argv[2]);

  const absl::StatusOr<Options> options = ParseOptions(argc, argv);
  if (!options.ok()) return Complain(kMisuse, MessageOf(options.status()));
  if (options->wants_help) {
    fmt::print("{}", HelpText());
    return kSuccess;
  }
  return Compare(*options);
}

}  // namespace
}  // namespace bobbin::compare

int main(int argc, char** argv) { return bobbin::compare::Main(argc, argv); }
