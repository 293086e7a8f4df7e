// SPDX-License-Identifier: Apache-2.0
//
// Options: what the user wants compared.

#ifndef BOBBIN_BENCH_COMPARE_OPTIONS_H_
#define BOBBIN_BENCH_COMPARE_OPTIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "bench/compare/kind.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {

struct Options {
  static constexpr size_t kConcurrencyMax = 1'000'000;
  static constexpr double kSecondsMin = 0.01;
  static constexpr double kSecondsMax = 3600;

  std::vector<const Workload*> workloads = {kWorkloads.begin(), kWorkloads.end()};
  std::vector<Kind> kinds = {kKinds.begin(), kKinds.end()};
  std::vector<size_t> concurrency = {64, 1000, 10'000};
  double seconds = 2;     // Of each trial.
  std::string postgres;   // The server's address. Empty: one is started.
  std::string mysql;      // The same.
  std::string json_path;  // Empty: none is written.
  bool wants_help = false;
};

// INVALID_ARGUMENT says in one line what is wrong.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv);

// What --help prints.
std::string HelpText();

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_OPTIONS_H_
