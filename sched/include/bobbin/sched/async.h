// SPDX-License-Identifier: Apache-2.0
//
// Async: has an executor run a body, and returns the future of what it returns.
//
//   Called from   any thread, except a carrier's own stack. An executor's name is looked up in the
//                 Executors of the calling thread's runtime; a foreign thread has none.
//   Suspends      never. With kCallerRuns the caller may run the body.
//   Cancellation  Future::TryCancel withdraws a task whose body has not begun. One that runs is
//                 asked to stop only by the shutdown of its executor: its waits answer CANCELLED,
//                 and so does its stop token. Dropping the future cancels nothing.
//   Errors        The future has the body's value, status or exception; or why it never ran:
//                 RESOURCE_EXHAUSTED (rejected), CANCELLED (withdrawn), UNAVAILABLE (the executor
//                 is shut down, or was before the body began), ABORTED (it was still running at
//                 the end of the shutdown), FAILED_PRECONDITION (of an executor's name).
//   Memory        What was done before Async is seen by the body.
//   Cost          One allocation. See executor.h.
//
// The body runs later, and elsewhere, when its caller may be gone. So it gets copies: what it is
// called with is decayed and moved to it, as by std::thread. What only refers to something is
// refused: pointers, std::ref, string_view, span and other views do not compile. What is known to
// outlive the task, the body may capture; what it captures by reference the compiler cannot see.
//
// A body that returns a Future has its own future follow that one: nobody waits for it, and its
// thread is free. A body that takes a std::stop_token as its first argument is given the one of its
// executor.
//
// A failure that nobody can hear of, because the future was dropped, is logged, counted, and given
// to ExecutorsOptions::on_uncaught_failure.
//
// Example:
//   bobbin::Future<Hash> hash = bobbin::Async("hashing", Sha256, std::move(blob));
//   BOBBIN_ASSIGN_OR_RETURN(Hash known, hash.Get());

#ifndef BOBBIN_SCHED_ASYNC_H_
#define BOBBIN_SCHED_ASYNC_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/future.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/internal/async_state.h>
#include <bobbin/sched/task_options.h>

namespace bobbin {

// The executor that is meant: itself, or its name.
class ExecutorChoice {
 public:
  ExecutorChoice(Executor& executor) : executor_(&executor) {}  // NOLINT: Async(executor, ...)
  ExecutorChoice(const char* name) : name_(name) {}             // NOLINT: Async("mail", ...)
  ExecutorChoice(std::string_view name) : name_(name) {}        // NOLINT: the same
  ExecutorChoice(const std::string& name) : name_(name) {}      // NOLINT: the same

  // The executor, which is made if there is none of that name.
  absl::StatusOr<Executor*> Find() const {
    if (executor_ != nullptr) return executor_;
    return FindByName();
  }

 private:
  absl::StatusOr<Executor*> FindByName() const;

  Executor* executor_ = nullptr;
  std::string_view name_;
};

// What Async returns for such a body and arguments.
template <typename F, typename... Arguments>
using AsyncFuture = Future<internal::AsyncValue<std::decay_t<F>, std::decay_t<Arguments>...>>;

namespace internal {

// Null: the default ones, which are not made.
template <typename F, typename... Arguments>
AsyncFuture<F, Arguments...> AsyncOn(const ExecutorChoice& executor, const TaskOptions* options,
                                     F&& body, Arguments&&... arguments) {
  static_assert((!kBorrows<std::decay_t<Arguments>> && ...),
                "Async: an argument refers to something of the caller's, who may be gone when the "
                "body runs: pass a copy, or a shared_ptr");
  absl::StatusOr<Executor*> found = executor.Find();
  if (!found.ok()) {
    auto [promise, future] = MakePromise<AsyncValue<std::decay_t<F>, std::decay_t<Arguments>...>>();
    promise.Set(std::move(found).status());
    return std::move(future);
  }
  return SubmitForFuture((*found)->core(), options, std::forward<F>(body),
                         std::forward<Arguments>(arguments)...);
}

}  // namespace internal

// Has `body(arguments...)` run on the executor; returns an AsyncFuture of them.
template <typename F, typename... Arguments>
auto Async(ExecutorChoice executor, const TaskOptions& options, F&& body,
           Arguments&&... arguments) {
  return internal::AsyncOn(executor, &options, std::forward<F>(body),
                           std::forward<Arguments>(arguments)...);
}
template <typename F, typename... Arguments>
requires(!std::is_same_v<std::decay_t<F>, TaskOptions>) auto Async(ExecutorChoice executor,
                                                                   F&& body,
                                                                   Arguments&&... arguments) {
  return internal::AsyncOn(executor, nullptr, std::forward<F>(body),
                           std::forward<Arguments>(arguments)...);
}

}  // namespace bobbin

#endif  // BOBBIN_SCHED_ASYNC_H_
