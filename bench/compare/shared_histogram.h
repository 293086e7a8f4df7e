// SPDX-License-Identifier: Apache-2.0
//
// SharedHistogram: counts durations that many threads report at once, in the buckets of LogLinear.
//
//   Called from   Add: any thread. The others: any thread, exact once all have stopped to add.
//   Suspends      never.
//   Cost          Add: some 10 ns.

#ifndef BOBBIN_BENCH_COMPARE_SHARED_HISTOGRAM_H_
#define BOBBIN_BENCH_COMPARE_SHARED_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bench/compare/per_cpu.h"
#include "bench/echo/latency_histogram.h"

namespace bobbin::compare {

class SharedHistogram {
 public:
  void Add(uint64_t nanoseconds);

  uint64_t count() const;

  // The duration that a fraction `quantile` of all does not exceed, in nanoseconds; 0 without any.
  // REQUIRES: 0 < quantile <= 1.
  uint64_t Quantile(double quantile) const;

 private:
  static constexpr size_t kBuckets = bench::LogLinear::BucketOf(bench::LogLinear::kValueMax) + 1;

  uint64_t CountIn(size_t bucket) const;

  // Counted up by the threads on each CPU; read at the end. They order nothing.
  using Buckets = std::array<std::atomic<uint64_t>, kBuckets>;
  PerCpu<Buckets> buckets_;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_SHARED_HISTOGRAM_H_
