// SPDX-License-Identifier: Apache-2.0
//
// BatchStatistics: what became of the spans or log lines that a sink was given.
//
//   Called from   any thread: it is a value. added == written + failed + queued, and what was still
//                 queued when a sink's budget was spent is dropped.

#ifndef BOBBIN_SCHED_BATCH_STATISTICS_H_
#define BOBBIN_SCHED_BATCH_STATISTICS_H_

#include <cstdint>

namespace bobbin {

struct BatchStatistics {
  uint64_t added = 0;    // Taken, ever.
  uint64_t written = 0;  // Written out, or sent.
  uint64_t failed = 0;   // Given up because writing failed.
  uint64_t queued = 0;   // Now, those in the thread's hands included.
  uint64_t dropped = 0;  // For want of room, after the end, or with the budget.
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_BATCH_STATISTICS_H_
