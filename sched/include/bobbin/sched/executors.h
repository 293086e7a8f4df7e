// SPDX-License-Identifier: Apache-2.0
//
// Executors: the executors of a runtime, by name.
//
// An executor is made when it is first asked for, and its threads when it gets its first task.
// Four names are known to the library; any other may be used:
//
//   default             platform threads: where Tasks::Platform runs
//   default-virtual     virtual threads: where Tasks::Virtual runs
//   scheduling          2 platform threads: where jobs run
//   scheduling-virtual  virtual threads: the same
//
//   Called from   any thread.
//   Suspends      Find never. AwaitIdle, until no task is left. Shutdown, until the tasks have
//                 ended or the budget is spent.
//   Cancellation  AwaitIdle returns CANCELLED or DEADLINE_EXCEEDED. Shutdown ignores it.
//   Errors        Find: FAILED_PRECONDITION when a name is asked for with two kinds; UNAVAILABLE
//                 for a new name after the shutdown; INVALID_ARGUMENT for a value of the
//                 environment that its key does not take. Those of other sources keep a runtime
//                 from being made (Runtime::Create).
//   Lifetime      Part of the runtime, which shuts them down before anything else of its own.
//   Cost          Find: a mutex and a search. Keep what it returns.
//
// The kind of an executor is, in this order: what its options say; what the first one says who asks
// for it with a kind; virtual for the two names above that say so, and where only kAuto is asked
// for; else platform. It is decided at the latest by the first task.
//
// Shutdown. Refuses new tasks and drops those that are delayed; lets the others be run for four
// fifths of the budget; then drops what has not begun and asks the rest to stop, by cancellation
// and stop token, or by the token alone where a submitter runs the body (kCallerRuns); at the end
// of the budget abandons what is left. Every future has its result then, or gets it from a body
// that is just returning.
//
// Example:
//   bobbin::Executors& executors = bobbin::CurrentExecutors();
//   BOBBIN_ASSIGN_OR_RETURN(bobbin::Executor * reports,
//                       executors.Find("reports", bobbin::ThreadKind::kVirtual));

#ifndef BOBBIN_SCHED_EXECUTORS_H_
#define BOBBIN_SCHED_EXECUTORS_H_

#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/sched/configuration.h>
#include <bobbin/sched/executor.h>

namespace bobbin {

// A failure that nobody else has heard of.
struct TaskFailure {
  std::string_view task;  // Empty if it has no name.
  std::string_view executor;
  absl::Status status;
  std::exception_ptr exception;  // Set instead of a status when the body threw.
};

struct ExecutorsOptions {
  // How the executors of some names are to be made; the others are as by default.
  std::map<std::string, ExecutorOptions, std::less<>> named = {};
  // What is set there, as bobbin.task.executor.<name>.threads, wins over `named`. docs/
  // configuration.md has all keys.
  Configuration configuration = {};
  // Called, after it was logged, on the thread that has met it; several at once. Must not throw.
  absl::AnyInvocable<void(const TaskFailure&) const> on_uncaught_failure = {};
};

class Executors {
 public:
  explicit Executors(internal::ExecutorsCore& core) : core_(core) {}
  Executors(const Executors&) = delete;
  Executors& operator=(const Executors&) = delete;

  // The executor of that name, of whatever kind it is.
  absl::StatusOr<Executor*> Find(std::string_view name);
  // The same, which must be of that kind.
  absl::StatusOr<Executor*> Find(std::string_view name, ThreadKind kind);

  // Those that have been asked for, by name.
  std::vector<const Executor*> All() const;

  // Waits until no task is left in any of them.
  absl::Status AwaitIdle();

  // Ends all tasks within `budget`: see above. OK when all have ended; DEADLINE_EXCEEDED, naming
  // those that are still running, otherwise. Called again, it waits for the first call and returns
  // what that does. A task that calls it is not waited for.
  absl::Status Shutdown(std::chrono::nanoseconds budget);

 private:
  internal::ExecutorsCore& core_;
};

// Those of the calling thread's runtime. REQUIRES: it has one; a foreign thread asks
// Runtime::executors.
Executors& CurrentExecutors();

}  // namespace bobbin

#endif  // BOBBIN_SCHED_EXECUTORS_H_
