// SPDX-License-Identifier: Apache-2.0
//
// JsonReport: all results as one JSON document, with the machine that they come from.

#ifndef BOBBIN_BENCH_COMPARE_JSON_REPORT_H_
#define BOBBIN_BENCH_COMPARE_JSON_REPORT_H_

#include <span>
#include <string>

#include "absl/status/status.h"

#include "bench/compare/machine.h"
#include "bench/compare/trial.h"

namespace bobbin::compare {

// OK when `path` can be written. What it holds is kept.
absl::Status CheckWritable(const std::string& path);

absl::Status WriteJsonReport(const std::string& path, const Machine& machine,
                             std::span<const TrialResult> results, bool is_interrupted);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_JSON_REPORT_H_
