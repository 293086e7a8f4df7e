// SPDX-License-Identifier: Apache-2.0
//
// Trial: one cell of the comparison - a workload, on one kind of threads, at one concurrency - and
// what came out of it.

#ifndef BOBBIN_BENCH_COMPARE_TRIAL_H_
#define BOBBIN_BENCH_COMPARE_TRIAL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/compare/kind.h"

namespace bobbin::compare {

struct Trial {
  std::string workload;
  Kind kind = Kind::kVirtual;
  size_t concurrency = 0;
  double seconds = 0;          // How long to measure,
  std::string directory = {};  // and where to put files.

  // What is done before that does not count: caches, stacks and connections warm up.
  double warmup_seconds() const { return std::clamp(seconds / 4, 0.1, 1.0); }
};

struct Figures {
  uint64_t operations = 0;
  double operations_per_second = 0;
  double latency_p50_us = 0;
  double latency_p99_us = 0;
  double latency_p999_us = 0;

  // Of the process that does the work, all of it.
  uint64_t os_threads_peak = 0;
  double resident_bytes_per_unit = 0;
  double voluntary_switches_per_operation = 0;
  double involuntary_switches_per_operation = 0;
  double cpu_us_per_operation = 0;

  double switches_per_operation() const {
    return voluntary_switches_per_operation + involuntary_switches_per_operation;
  }
};

enum class Outcome : uint8_t {
  kMeasured,
  kRanOut,       // The system gives no more threads, or descriptors. Known limits, not a failure.
  kUnavailable,  // What it needs is not here, which is no failure either.
  kFailed,       // It should have worked.
  kInterrupted,  // Someone was not willing to wait.
};

struct TrialResult {
  Trial trial;
  Outcome outcome = Outcome::kFailed;
  std::string message = {};  // Why there are no figures.
  Figures figures = {};      // If it was measured.

  // The share of all CPUs, from 0 to 1, that other programs took meanwhile.
  double cpu_share_of_others = 0;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_TRIAL_H_
