// SPDX-License-Identifier: Apache-2.0
//
// SharedHistogram: counts durations that many threads report at once, in the buckets of LogLinear.
//
// Each CPU counts in a part of its own, so that threads of either kind do not slow each other down.
//
//   Called from   Add: any thread. The others: any thread, exact once all have stopped to add.
//   Suspends      never.
//   Cost          Add: a handful of nanoseconds.

#ifndef BOBBIN_BENCH_COMPARE_SHARED_HISTOGRAM_H_
#define BOBBIN_BENCH_COMPARE_SHARED_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/echo/latency_histogram.h"

namespace bobbin::compare {

class SharedHistogram {
 public:
  SharedHistogram();

  void Add(uint64_t nanoseconds);

  uint64_t count() const;

  // The duration that a fraction `quantile` of all does not exceed, in nanoseconds; 0 without any.
  // REQUIRES: 0 < quantile <= 1.
  uint64_t Quantile(double quantile) const;

 private:
  static constexpr size_t kBuckets = bench::LogLinear::BucketOf(bench::LogLinear::kValueMax) + 1;
  static constexpr size_t kPartsMax = 64;

  struct alignas(64) Part {
    // Counted up by the threads on the part's CPUs; read at the end. They order nothing.
    std::array<std::atomic<uint64_t>, kBuckets> buckets;
  };

  std::vector<Part> parts_;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_SHARED_HISTOGRAM_H_
