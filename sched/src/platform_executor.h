// SPDX-License-Identifier: Apache-2.0
//
// PlatformExecutor: tasks on the threads of a pool.
//
// The queue and the threads are the pool's; none of the executor's locks is held while the pool is
// given a task, but all may be while it gives one back.
//
//   Called from   as ExecutorCore.
//   Suspends      as ExecutorCore.
//   Cost          Submit: a lock of the executor's and the pool's, and a wake if a thread is idle.

#ifndef BOBBIN_SCHED_SRC_PLATFORM_EXECUTOR_H_
#define BOBBIN_SCHED_SRC_PLATFORM_EXECUTOR_H_

#include <memory>
#include <string>

#include "sched/src/executor_core.h"
#include "sched/src/platform_pool_core.h"

namespace bobbin::internal {

class PlatformExecutor final : public ExecutorCore {
 public:
  PlatformExecutor(Runtime& runtime, std::string name, ExecutorOptions options,
                   std::shared_ptr<const FailureSink> sink);

  // The pool has its own queue.
  void Replace(AsyncTask&) noexcept override {}

 private:
  absl::Status Place(AsyncTask& task, Entry entry) noexcept override;
  // Enlists a new one in the calling thread's share; false if all is not plain.
  bool EnlistHere(AsyncTask& task) noexcept;
  bool TakeFromQueue(AsyncTask& task) noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  AsyncTask* PassPlace() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) { return nullptr; }
  bool HasQueue() const noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) { return false; }
  size_t queued() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  void CloseThreads() noexcept override { pool_->Close(); }
  bool JoinThreads(std::chrono::nanoseconds budget) noexcept override {
    return pool_->Shutdown(budget).ok();
  }

  const std::shared_ptr<PlatformPoolCore> pool_;  // Shared with its threads.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_PLATFORM_EXECUTOR_H_
