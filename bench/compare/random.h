// SPDX-License-Identifier: Apache-2.0
//
// Random: a small seeded generator (xorshift64*), so that each unit does the same in every trial.

#ifndef BOBBIN_BENCH_COMPARE_RANDOM_H_
#define BOBBIN_BENCH_COMPARE_RANDOM_H_

#include <cstdint>

namespace bobbin::compare {

class Random {
 public:
  explicit Random(uint64_t seed) : state_((seed + 1) * 0x9E3779B97F4A7C15u) {}

  // From 0 to `bound` - 1. REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return ((state_ * 0x2545F4914F6CDD1Du) >> 32) % bound;
  }

 private:
  uint64_t state_;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_RANDOM_H_
