// SPDX-License-Identifier: Apache-2.0
//
// Loot: how many new threads a thief takes from one carrier, and when it leaves that alone.
//
// A new thread that runs elsewhere takes its cache lines along, some hundred nanoseconds in all.
// Runs that are shorter than that are sooner over where they are. That is so of a batch, which is
// many; few of them may be the roots of trees, and cost little if they are not. And it is so only
// as long as their carrier gets on, which is to say picks or spawns somebody from one look to the
// next: one that does not is in a long run, whatever its runs took before.
//
//   robbed   a share is taken
//   spared   nothing is
//
//   robbed -> spared   there are many, their runs are short, and the carrier has got on
//   spared -> robbed   there are few, their runs are long, or it has not got on for
//                      kSpareNanoseconds
//
// Why nobody is forgotten. Whoever spares somebody does not sleep for longer than
// kSpareNanoseconds, and then looks again. What the carrier itself pushed, it will run; see
// carrier.h.
//
//   Called from   the thief's OS thread.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_LOOT_H_
#define BOBBIN_SCHED_SRC_LOOT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sched/src/limits.h"

namespace bobbin::internal {

class Loot {
 public:
  // Half of what there is, so that the two do not have to meet again soon.
  static size_t ShareOf(size_t size) noexcept { return std::min(size / 2 + 1, kStealMax); }

  // How many to take of `size` from a carrier whose runs take `run_nanoseconds`, and which has
  // picked and spawned as often as `progress` says.
  size_t Take(size_t size, uint64_t run_nanoseconds, uint64_t progress, int64_t now) noexcept {
    const bool is_batch = size >= kSparedMin && run_nanoseconds < kStealNanoseconds;
    if (is_batch && (!is_spared_ || progress != progress_)) {
      is_spared_ = true;
      progress_ = progress;
      seen_at_ = now;
    } else if (!is_batch || now - seen_at_ >= kSpareNanoseconds) {
      is_spared_ = false;
    }
    return is_spared_ ? 0 : ShareOf(size);
  }
  bool is_spared() const noexcept { return is_spared_; }

 private:
  bool is_spared_ = false;
  uint64_t progress_ = 0;  // At the last look...
  int64_t seen_at_ = 0;    // ...and when it was seen first.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_LOOT_H_
