// SPDX-License-Identifier: Apache-2.0
//
// TrialJson: trials and their results as JSON, for the processes among themselves and for --json.
//
// Every figure's name ends with its unit.

#ifndef BOBBIN_BENCH_COMPARE_TRIAL_JSON_H_
#define BOBBIN_BENCH_COMPARE_TRIAL_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

#include "bench/compare/trial.h"

namespace bobbin::compare {

using Json = nlohmann::ordered_json;

Json ToJson(const Trial& trial);
Json ToJson(const TrialResult& result);

// INVALID_ARGUMENT when `text` is not what ToJson makes of one.
absl::StatusOr<Trial> ParseTrial(std::string_view text);
absl::StatusOr<TrialResult> ParseTrialResult(std::string_view text);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_TRIAL_JSON_H_
