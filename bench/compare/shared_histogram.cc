// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/shared_histogram.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace bobbin::compare {

using bench::LogLinear;

SharedHistogram::SharedHistogram()
    : parts_(std::min<size_t>(kPartsMax, static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)))) {}

void SharedHistogram::Add(uint64_t nanoseconds) {
  Part& part = parts_[static_cast<size_t>(std::max(0, sched_getcpu())) % parts_.size()];
  const size_t bucket = LogLinear::BucketOf(std::min(nanoseconds, LogLinear::kValueMax));
  part.buckets[bucket].fetch_add(1, std::memory_order_relaxed);  // relaxed: a count.
}

uint64_t SharedHistogram::count() const {
  uint64_t count = 0;
  for (const Part& part : parts_) {
    for (const auto& bucket : part.buckets) count += bucket.load(std::memory_order_relaxed);
  }
  return count;
}

uint64_t SharedHistogram::Quantile(double quantile) const {
  const auto rank = static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count())));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (const Part& part : parts_) seen += part.buckets[bucket].load(std::memory_order_relaxed);
    if (seen > 0 && seen >= rank) return LogLinear::LastOf(bucket);
  }
  return 0;
}

}  // namespace bobbin::compare
