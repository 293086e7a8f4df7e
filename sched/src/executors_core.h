// SPDX-License-Identifier: Apache-2.0
//
// ExecutorsCore: the executors of a runtime, and their end.
//
//   Called from   any thread; Join and the destructor: the runtime.
//   Suspends      AwaitIdle, Shutdown, Join. Find and Begin, while another thread makes one.

#ifndef BOBBIN_SCHED_SRC_EXECUTORS_CORE_H_
#define BOBBIN_SCHED_SRC_EXECUTORS_CORE_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/mutex.h>
#include <bobbin/sched/executors.h>

#include "sched/src/executor_core.h"

namespace bobbin::internal {

class ExecutorsCore {
 public:
  ExecutorsCore(Runtime& runtime, ExecutorsOptions options);
  ExecutorsCore(const ExecutorsCore&) = delete;
  ExecutorsCore& operator=(const ExecutorsCore&) = delete;

  // Whether the options make sense; to be asked at the start.
  absl::Status CheckConfiguration() const;
  Executors& facade() noexcept { return facade_; }
  const Configuration& configuration() const noexcept { return configuration_; }
  // Empty: of whatever kind.
  absl::StatusOr<Executor*> Find(std::string_view name, std::optional<ThreadKind> kind);
  // What the executor is made of; made here at its first task.
  ExecutorCore& Begin(Executor& executor);
  std::vector<const Executor*> All();
  // Whether no task is left.
  bool IsIdle();
  absl::Status AwaitIdle();

  // Nobody waits for the tasks that `thread` runs, from here on.
  void Discount(const Thread& thread);
  absl::Status Shutdown(std::chrono::nanoseconds budget);
  // "of all tasks 7 ended, 2 dropped, 0 abandoned".
  std::string DescribeEnd();
  bool is_shut_down() {
    const MutexLock lock(shutdown_mutex_);
    return shutdown_result_.has_value();
  }
  // Waits for the tasks' threads. What somebody may still use is left where it is, for ever.
  void Join(std::chrono::nanoseconds budget);

 private:
  struct Entry {
    std::unique_ptr<Executor> executor;
    ExecutorOptions options;
    std::optional<ThreadKind> kind;  // Once it is decided.
    bool is_asked_for_as_auto = false;
    std::unique_ptr<ExecutorCore> core;
  };

  absl::StatusOr<ExecutorOptions> OptionsOf(std::string_view name) const;
  absl::StatusOr<Entry*> Make(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<ExecutorCore*> Cores();

  Runtime& runtime_;
  Executors facade_;
  const std::map<std::string, ExecutorOptions, std::less<>> named_;
  const Configuration configuration_;
  const std::shared_ptr<const FailureSink::Handler> handler_;

  Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  bool is_shut_down_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex shutdown_mutex_;
  std::optional<absl::Status> shutdown_result_ ABSL_GUARDED_BY(shutdown_mutex_);
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_EXECUTORS_CORE_H_
