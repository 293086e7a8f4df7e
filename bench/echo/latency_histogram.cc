// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/latency_histogram.h"

#include <cmath>

namespace bobbin::bench {

uint64_t LatencyHistogram::Quantile(double quantile) const {
  const uint64_t rank = static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank && seen > 0) return LogLinear::LastOf(bucket);
  }
  return 0;
}

}  // namespace bobbin::bench
