// SPDX-License-Identifier: Apache-2.0
//
// DumpPart: one carrier's part of a dump - its threads, each described while it is parked.
//
// The carrier looks at a slice of the blocks in each turn, between two runs, where all its threads
// are parked. When it has seen all, or ends, it says so. The dump waits for that, but not for ever:
// it then takes what there is, and the part is closed. Both hold it; the last one frees it.
//
//   Called from   Continue, Finish: the carrier's OS thread. Await, Take: the dump's.
//   Suspends      Await blocks.
//   Cost          about 5 us a thread; a slice takes about kDumpSliceNanoseconds.

#ifndef BOBBIN_SCHED_SRC_DUMP_PART_H_
#define BOBBIN_SCHED_SRC_DUMP_PART_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/task_cache.h>

#include "sched/src/dump_records.h"

namespace bobbin::internal {

class Carrier;

class DumpPart {
 public:
  explicit DumpPart(TaskPool& tasks) : tasks_(tasks), end_(tasks.carved()) {}
  DumpPart(const DumpPart&) = delete;
  DumpPart& operator=(const DumpPart&) = delete;

  // --- The carrier's side.

  // Describes some more of the carrier's threads; true when it has seen all. `running`, if there is
  // one, is the thread that the caller is: it is not parked.
  bool Continue(const Carrier& carrier, const Thread* running) noexcept;
  // There is no more to come.
  void Finish() noexcept;

  // --- The dump's side.

  // Blocks until the carrier has finished, or the deadline. True: it has.
  bool Await(int64_t deadline) noexcept;
  // What there is: moves the traces to `traces`. The carrier will add nothing any more.
  std::vector<ThreadRecord> Take(TraceTable& traces) noexcept;

 private:
  void Describe(const Carrier& carrier, const Task& task, const Thread* running)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  TaskPool& tasks_;
  const size_t end_;  // Blocks that were carved later hold threads that are newer than the dump.
  Atomic<uint32_t> is_finished_{0};  // Set by the carrier; the futex that the dump sleeps on.
  SpinLock lock_;                         // Held for a slice.
  bool is_closed_ ABSL_GUARDED_BY(lock_) = false;
  size_t next_ ABSL_GUARDED_BY(lock_) = 0;
  // In pieces: a vector that grows moves all that it has, which takes longer than a slice may.
  std::vector<std::vector<ThreadRecord>> threads_ ABSL_GUARDED_BY(lock_);
  TraceTable traces_ ABSL_GUARDED_BY(lock_);
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_DUMP_PART_H_
