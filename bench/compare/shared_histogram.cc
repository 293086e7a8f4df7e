// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/shared_histogram.h"

#include <algorithm>
#include <cmath>

namespace bobbin::compare {

using bench::LogLinear;

void SharedHistogram::Add(uint64_t nanoseconds) {
  const size_t bucket = LogLinear::BucketOf(std::min(nanoseconds, LogLinear::kValueMax));
  buckets_.Here()[bucket].fetch_add(1, std::memory_order_relaxed);  // relaxed: a count.
}

uint64_t SharedHistogram::CountIn(size_t bucket) const {
  return buckets_.Sum([bucket](const Buckets& buckets) {
    return buckets[bucket].load(std::memory_order_relaxed);  // relaxed: a count.
  });
}

uint64_t SharedHistogram::count() const {
  uint64_t count = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) count += CountIn(bucket);
  return count;
}

uint64_t SharedHistogram::Quantile(double quantile) const {
  const auto rank = static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count())));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += CountIn(bucket);
    if (seen > 0 && seen >= rank) return LogLinear::LastOf(bucket);
  }
  return 0;
}

}  // namespace bobbin::compare
