// SPDX-License-Identifier: Apache-2.0
//
// DumpCollector: finds out what a dump tells.
//
//   1. Each carrier that is awake is asked by a signal what it is running right now.
//   2. Each carrier is asked for its part, and all parts are awaited, until the deadline.
//   3. Whoever is in no part - threads that have not begun, and those of a carrier that does not
//      come round - is described from outside: by copies of their blocks, which are checked against
//      their state words. Such a description has no stack.
//   4. OS threads are described from their records.
//
//   Called from   one OS thread, which may block.
//   Suspends      Add blocks, until the deadline at most.

#ifndef BOBBIN_SCHED_SRC_DUMP_COLLECTOR_H_
#define BOBBIN_SCHED_SRC_DUMP_COLLECTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"

#include <bobbin/core/internal/stack_sample.h>
#include <bobbin/sched/dump.h>

#include "sched/src/dump_part.h"
#include "sched/src/dump_records.h"

namespace bobbin::internal {

class RuntimeCore;

class DumpCollector {
 public:
  explicit DumpCollector(const DumpOptions& options);
  DumpCollector(const DumpCollector&) = delete;
  DumpCollector& operator=(const DumpCollector&) = delete;

  void Add(RuntimeCore& runtime);
  // The rest: the OS threads, who holds what, and the circles.
  DumpRecords Finish() &&;

 private:
  void AskCarriers(RuntimeCore& runtime, RuntimeRecord& record);
  void AddOutsiders(RuntimeCore& runtime, RuntimeRecord& record);
  void AddOutsider(const Task& copy, const Task& task, RuntimeRecord& record);
  void AddSample(const StackSample& sample, CarrierRecord& carrier, RuntimeRecord& record);
  void AddOsThreads();
  void MeasureStacks(RuntimeCore& runtime, RuntimeRecord& record);
  void FindHoldersAndCycles();
  template <typename Visit>
  void ForEachThread(Visit visit);

  const DumpOptions options_;
  const int64_t deadline_;
  DumpRecords records_;
  absl::flat_hash_set<const Thread*> seen_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_DUMP_COLLECTOR_H_
