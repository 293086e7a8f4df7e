// SPDX-License-Identifier: Apache-2.0
//
// PlatformExecutor: tasks on the threads of a pool.
//
// The queue and the threads are the pool's; the executor's lock is never held while the pool is
// given a task, but may be while it gives one back.
//
//   Called from   as ExecutorCore.
//   Suspends      as ExecutorCore.
//   Cost          Submit: the executor's lock and the pool's, and a wake if a thread is idle.

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
  bool TakeFromQueue(AsyncTask& task) noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  AsyncTask* PassPlace() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) { return nullptr; }
  size_t queued() noexcept override ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CloseThreads() noexcept override { pool_->Close(); }
  bool JoinThreads(std::chrono::nanoseconds budget) noexcept override {
    return pool_->Shutdown(budget).ok();
  }

  const std::shared_ptr<PlatformPoolCore> pool_;  // Shared with its threads.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_PLATFORM_EXECUTOR_H_
