// SPDX-License-Identifier: Apache-2.0
//
// Tasks: work whose result nobody waits for, on one of the two default executors of the calling
// thread's runtime.
//
// For a result there is Async; for children that end before their parent, TaskGroup.
//
//   Called from   threads that have a runtime: virtual ones, and those of its pools.
//   Suspends      never.
//   Errors        as Executor::Submit: why it will not be run. A failure of the body is logged,
//                 counted, and given to ExecutorsOptions::on_uncaught_failure.
//   Cost          as Executor::Submit, and a search for the executor.
//
// Example:
//   BOBBIN_RETURN_IF_ERROR(bobbin::Tasks::Platform([report] { Compress(report); }));
//   BOBBIN_RETURN_IF_ERROR(bobbin::Tasks::Virtual({.delay = 5s}, [peer] { return Ping(peer); }));

#ifndef BOBBIN_SCHED_TASKS_H_
#define BOBBIN_SCHED_TASKS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/task_options.h>

namespace bobbin {

class Tasks {
 public:
  // Where blocking calls are allowed: on the executor "default".
  template <typename F>
  static absl::Status Platform(const TaskOptions& options, F&& body) {
    return Submit("default", options, std::forward<F>(body));
  }
  template <typename F>
  static absl::Status Platform(F&& body) {
    return Platform(TaskOptions{}, std::forward<F>(body));
  }

  // On a virtual thread: on the executor "default-virtual".
  template <typename F>
  static absl::Status Virtual(const TaskOptions& options, F&& body) {
    return Submit("default-virtual", options, std::forward<F>(body));
  }
  template <typename F>
  static absl::Status Virtual(F&& body) {
    return Virtual(TaskOptions{}, std::forward<F>(body));
  }

 private:
  template <typename F>
  static absl::Status Submit(std::string_view name, const TaskOptions& options, F&& body) {
    BOBBIN_ASSIGN_OR_RETURN(Executor* const executor, CurrentExecutors().Find(name));
    return executor->Submit(options, std::forward<F>(body));
  }
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_TASKS_H_
