// SPDX-License-Identifier: Apache-2.0
//
// VirtualExecutor: each task on a virtual thread of its own, so many at once, and a queue.
//
// States of a place. There are `concurrency` of them; one is free, or taken by a task from the
// moment it is given a virtual thread until it has ended.
//
// Why no task is forgotten. A task is queued only while all places are taken, and a place that a
// task gives up goes to the first in the queue, both under one lock. So while a task is queued some
// other one has a place, and will pass it on.
//
//   Called from   as ExecutorCore.
//   Suspends      as ExecutorCore.
//   Cost          Submit: the executor's lock, and a virtual thread.

#ifndef BOBBIN_SCHED_SRC_VIRTUAL_EXECUTOR_H_
#define BOBBIN_SCHED_SRC_VIRTUAL_EXECUTOR_H_

#include <cstddef>
#include <memory>
#include <string>

#include "sched/src/executor_core.h"

namespace bobbin::internal {

class VirtualExecutor final : public ExecutorCore {
 public:
  VirtualExecutor(Runtime& runtime, std::string name, ExecutorOptions options,
                  std::shared_ptr<const FailureSink> sink);

  void Replace(AsyncTask& next) noexcept override;

 private:
  // What becomes of a task that comes.
  enum class Verdict : uint8_t { kNotAdmitted, kHasPlace, kQueued, kLent, kFull, kDiscarded };

  absl::Status Place(AsyncTask& task, Entry entry) noexcept override;
  bool TakeFromQueue(AsyncTask& task) noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  AsyncTask* PassPlace() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  size_t queued() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) { return queued_; }
  void CloseThreads() noexcept override {}
  // They are the runtime's, which waits for all of them.
  bool JoinThreads(std::chrono::nanoseconds) noexcept override { return true; }

  Verdict Judge(AsyncTask& task, Entry entry, AsyncTask*& oldest) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Gives a task that has a place its virtual thread; false if there is none to be had.
  bool TryStart(AsyncTask& task) noexcept;
  // Runs the task, and then what takes its place, if that gets no virtual thread of its own.
  void Serve(AsyncTask& first) noexcept;

  IntrusiveList<PoolTask> queue_ ABSL_GUARDED_BY(lock_);
  size_t queued_ ABSL_GUARDED_BY(lock_) = 0;
  size_t taken_ ABSL_GUARDED_BY(lock_) = 0;  // Places.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_VIRTUAL_EXECUTOR_H_
