// SPDX-License-Identifier: Apache-2.0
//
// LatencyHistogram: counts durations in log-linear buckets. Each power of two is split into 128
// equal parts, so a quantile is never more than 0.8 % above the true one and never below it.
//
//   Called from  one thread.
//   Cost         Add: a bit scan and an increment; nothing is allocated.
//   Memory       34 KiB. Of it, only the lines around the durations that occur are ever touched.

#ifndef BOBBIN_BENCH_ECHO_LATENCY_HISTOGRAM_H_
#define BOBBIN_BENCH_ECHO_LATENCY_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace bobbin::bench {

// Which bucket a duration falls in. Below 2 * kParts a bucket holds one value; above, as many as
// keep kParts buckets to a power of two.
struct LogLinear {
  static constexpr int kPartBits = 7;
  static constexpr uint64_t kParts = uint64_t{1} << kPartBits;

  // 18 minutes.
  static constexpr uint64_t kValueMax = (uint64_t{1} << 40) - 1;

  static constexpr size_t BucketOf(uint64_t value) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kPartBits - 1);
    return (static_cast<size_t>(shift) << kPartBits) + static_cast<size_t>(value >> shift);
  }

  static constexpr uint64_t LastOf(size_t bucket) {
    if (bucket < 2 * kParts) return bucket;
    const size_t shift = (bucket >> kPartBits) - 1;
    const uint64_t first = (kParts + (bucket & (kParts - 1))) << shift;
    return first + (uint64_t{1} << shift) - 1;
  }
};

static_assert(LogLinear::LastOf(LogLinear::BucketOf(255)) == 255);
static_assert(LogLinear::LastOf(LogLinear::BucketOf(256)) == 257);
static_assert(LogLinear::LastOf(LogLinear::BucketOf(LogLinear::kValueMax)) == LogLinear::kValueMax);

class LatencyHistogram {
 public:
  // Counts one duration. Longer than LogLinear::kValueMax counts as that.
  void Add(uint64_t nanoseconds) {
    ++buckets_[LogLinear::BucketOf(std::min(nanoseconds, LogLinear::kValueMax))];
    ++count_;
  }

  // Returns the duration that a fraction `quantile` of all samples does not exceed, in nanoseconds;
  // 0 without samples. REQUIRES: 0 < quantile <= 1.
  uint64_t Quantile(double quantile) const;

 private:
  std::array<uint64_t, LogLinear::BucketOf(LogLinear::kValueMax) + 1> buckets_{};
  uint64_t count_ = 0;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_LATENCY_HISTOGRAM_H_
