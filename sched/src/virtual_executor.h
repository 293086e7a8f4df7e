// SPDX-License-Identifier: Apache-2.0
//
// VirtualExecutor: each task on a virtual thread of its own, so many at once, and a queue.
//
// States of a place. There are `concurrency` of them; one is free, or taken by a task from the
// moment it is given a virtual thread until it has ended. The free ones are dealt out to the shares
// (executor_core.h): who finds none in its own takes its part of all that are free.
//
// Why no task is forgotten. A task is queued only while all places are taken, which is found out
// with all locks held; and from then on a place that a task gives up goes to the first in the
// queue. So while a task is queued some other one has a place, and will pass it on.
//
//   Called from   as ExecutorCore.
//   Suspends      as ExecutorCore.
//   Cost          Submit: a lock, and a virtual thread.

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
  bool TakeFromQueue(AsyncTask& task) noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  AsyncTask* PassPlace() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  bool HasQueue() const noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) {
    return queued_ != 0;
  }
  size_t queued() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) { return queued_; }
  void CloseThreads() noexcept override {}
  // They are the runtime's, which waits for all of them.
  bool JoinThreads(std::chrono::nanoseconds) noexcept override { return true; }

  Verdict Judge(AsyncTask& task, Entry entry, AsyncTask*& oldest) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  // Enlists the task and takes a place of the share; false if there is none, or all is not plain.
  bool TakePlaceIn(Share& share, const Carrier* here, AsyncTask& task) noexcept;
  // Takes a place, and some for those who come next; false if there is none.
  bool TakePlace() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  // Starts a task that has a place, or drops it, and those behind it, and says why.
  absl::Status StartPlaced(AsyncTask& task) noexcept;
  // Gives a task that has a place its virtual thread; false if there is none to be had.
  bool TryStart(AsyncTask& task) noexcept;
  // The same for one that the calling thread, which is on `here`, has just submitted: in most
  // cases, without a look at what cannot be otherwise.
  bool TryStartNew(Carrier& here, AsyncTask& task) noexcept;
  bool HasName(const AsyncTask& task) const noexcept {
    return !task.name().empty() || !options_.thread_name_prefix.empty();
  }
  // What the thread is to run.
  void Prepare(Task& thread, AsyncTask& task) noexcept;
  // Runs the task, and then what takes its place, if that gets no virtual thread of its own.
  void Serve(AsyncTask& first) noexcept;

  IntrusiveList<PoolTask> queue_ ABSL_GUARDED_BY(all_);
  size_t queued_ ABSL_GUARDED_BY(all_) = 0;
  size_t free_ ABSL_GUARDED_BY(all_);  // Places that are in no share.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_VIRTUAL_EXECUTOR_H_
