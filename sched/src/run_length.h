// SPDX-License-Identifier: Apache-2.0
//
// RunLength: how long the runs on a carrier take, for other carriers that think of stealing.
//
// Made of the two readings of the clock that a turn has anyway, so it costs a division and a store
// a turn. It falls at once and rises slowly: one long run among many short ones, as that of
// whoever spawns them, says nothing of those that wait.
//
//   Called from   Learn: the carrier's OS thread. nanoseconds: any thread.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_RUN_LENGTH_H_
#define BOBBIN_SCHED_SRC_RUN_LENGTH_H_

#include <algorithm>
#include <cstdint>

#include <bobbin/core/internal/counter.h>

namespace bobbin::internal {

class RunLength {
 public:
  explicit RunLength(uint64_t guess) noexcept { estimate_.set(guess); }

  // From a turn with `runs` of them. REQUIRES: `runs` is not 0.
  void Learn(int64_t turn_nanoseconds, uint32_t runs) noexcept {
    const uint64_t run = static_cast<uint64_t>(std::max(turn_nanoseconds, int64_t{0})) / runs;
    const uint64_t known = estimate_.value();
    estimate_.set(run <= known ? run : known + (run - known) / kRise);
  }
  uint64_t nanoseconds() const noexcept { return estimate_.value(); }

 private:
  // Tuned with SpawnJoin/Batch3000/2, where one run of 60 us comes before 3000 of 20 ns.
  static constexpr uint64_t kRise = 16;

  Counter estimate_;  // Written by the carrier; read by thieves.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_RUN_LENGTH_H_
