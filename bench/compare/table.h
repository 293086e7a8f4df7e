// SPDX-License-Identifier: Apache-2.0
//
// Table: a workload's results for the eye - figures beneath each other, kinds side by side.

#ifndef BOBBIN_BENCH_COMPARE_TABLE_H_
#define BOBBIN_BENCH_COMPARE_TABLE_H_

#include <cstddef>
#include <span>
#include <string>

#include "bench/compare/trial.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {

// A block of lines for `workload`. `results` are its own, those of one concurrency beside each
// other. As many concurrencies stand side by side as fit into `columns`; the others follow below.
std::string RenderTable(const Workload& workload, std::span<const TrialResult> results,
                        size_t columns);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_TABLE_H_
