// SPDX-License-Identifier: Apache-2.0
//
// Random: a small generator; the same seed gives the same numbers on every machine.
//
//   Called from   one thread at a time; give each thread one of its own.

#ifndef BOBBIN_TESTS_SUPPORT_RANDOM_H_
#define BOBBIN_TESTS_SUPPORT_RANDOM_H_

#include <cstdint>

namespace bobbin::test {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // SplitMix64.
  uint64_t Next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  // From 0 to `bound` - 1. REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  // From `low` to `high`, both included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // For another thread.
  Random Fork() { return Random(Next()); }

 private:
  uint64_t state_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_RANDOM_H_
