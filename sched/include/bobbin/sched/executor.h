// SPDX-License-Identifier: Apache-2.0
//
// Executor: where tasks run - a pool of platform threads, or virtual threads, one for each task.
//
// Each kind of work gets an executor of its own, so that one that is stuck, or flooded, does not
// hold up the others. Executors are made by name, by a runtime's Executors; tasks are given to them
// by Async and Submit. For children that end before their parent does use TaskGroup.
//
// Platform. Growth is that of PlatformPool: an idle thread, a new one up to `threads`, the queue, a
// new one up to `threads_max`, the rejection policy. Virtual. Up to `concurrency` tasks have a
// virtual thread at once; one that is parked counts. The others are queued, then the rejection
// policy decides. Either way, tasks are begun in the order in which they came.
//
// A body that waits for another task of its own executor can wait for ever, when all threads or all
// places are taken by those who wait. Return the other task's Future instead: it is waited for by
// nobody (async.h). Or give it an executor of its own, or a deadline.
//
//   Called from   any thread, except a carrier's own stack.
//   Suspends      never. With kCallerRuns the caller may run the body.
//   Errors        RESOURCE_EXHAUSTED: rejected, or dropped by kDiscardOldest; the system gives no
//                 thread. UNAVAILABLE: the executor is shut down.
//   Order         First come, first begun.
//   Memory        What was done before a task was given is seen by its body.
//   Lifetime      That of its runtime.
//   Cost          A task is one allocation, from what the carrier keeps. Virtual: a virtual thread,
//                 and two short locks, which cost a carrier little as long as it is the only one
//                 that submits to them (biased_lock.h). Platform: the locks, the pool's lock, and a
//                 wake if a thread is idle.
//
// Example:
//   bobbin::Executor& mail = *bobbin::CurrentExecutors().Find("mail");
//   BOBBIN_RETURN_IF_ERROR(mail.Submit({.name = "receipt"}, [order] { return Send(order); }));

#ifndef BOBBIN_SCHED_EXECUTOR_H_
#define BOBBIN_SCHED_EXECUTOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/task_options.h>

namespace bobbin {

namespace internal {
class AsyncTask;
class ExecutorCore;
class ExecutorsCore;
}  // namespace internal

// On what the tasks of an executor run.
enum class ThreadKind : uint8_t {
  kPlatform,  // Where blocking calls are allowed.
  kVirtual,   // One virtual thread for each.
  kAuto,      // Whatever the others who name the executor say; virtual, if nobody does.
};

// "platform", "virtual", "auto".
std::string_view ThreadKindName(ThreadKind kind);

// What a decorator is given: calling it runs the body, once; nothing comes out of it.
using DecoratedBody = absl::AnyInvocable<void()>;

// Goes around every body of an executor, to carry over what a ContextValue does not know of.
class TaskDecorator {
 public:
  virtual ~TaskDecorator() = default;

  // Called on the submitting thread. Calling what it returns, on the body's thread, must call
  // `body`; once, and again for each retry.
  virtual DecoratedBody Decorate(DecoratedBody body) const = 0;
};

struct ExecutorOptions {
  // Wins over what the program asks for. Empty: as the program asks.
  std::optional<ThreadKind> kind = std::nullopt;

  // Platform.
  size_t threads = 8;
  size_t threads_max = 0;  // 0: the same as `threads`.
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(60);

  // Virtual: tasks that have a virtual thread at once. Some 8 KiB of memory each.
  size_t concurrency = 10'000;

  // Tasks that wait. Some 300 bytes each, and what they have captured.
  size_t queue_max = 100'000;
  Rejection rejection = Rejection::kAbort;
  // Its threads are named "<prefix><i>", counted from 1, the virtual ones "<prefix><task>". Empty:
  // platform threads "<executor>-<i>", and virtual ones only if their task has a name.
  std::string thread_name_prefix = {};
  std::shared_ptr<const TaskDecorator> decorator = nullptr;
};

// Once nothing is left of it, submitted = completed + failed + rejected + dropped + abandoned.
struct ExecutorStatistics {
  ThreadKind kind = ThreadKind::kAuto;  // kAuto: nobody has decided yet.
  size_t queued = 0;                    // Wait for a thread or a place, now.
  size_t delayed = 0;                   // Wait for their time or their next attempt, now.
  size_t active = 0;                    // Have begun, or have their thread, and have not ended.

  uint64_t submitted = 0;
  uint64_t completed = 0;  // The body has returned, and has not failed.
  uint64_t failed = 0;     // It has returned an error, or thrown.
  uint64_t rejected = 0;   // Refused for want of room, or because the executor is shut down.
  uint64_t dropped = 0;    // Not begun: cancelled, dropped for a newer one, or by the shutdown.
  uint64_t abandoned = 0;  // Still running at the end of the shutdown.
  uint64_t retried = 0;    // Attempts that failed and were followed by another one.
  uint64_t uncaught = 0;   // Of the failed: nobody has asked for their result.

  // Times are taken of every task that a platform thread runs, and of one in kTimedEvery others.
  static constexpr uint64_t kTimedEvery = 64;
  uint64_t timed = 0;
  std::chrono::nanoseconds wait_total{0};  // From being given, or due, to being begun, added up...
  std::chrono::nanoseconds wait_max{0};    // ...and the longest of them.
  std::chrono::nanoseconds run_total{0};
  std::chrono::nanoseconds run_max{0};
};

class Executor {
 public:
  // For Executors.
  Executor(internal::ExecutorsCore& home, std::string name) : home_(home), name_(std::move(name)) {}
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const std::string& name() const { return name_; }

  // Gives it a body whose result nobody waits for. A failure of it is logged, counted, and given to
  // ExecutorsOptions::on_uncaught_failure.
  template <typename F>
  absl::Status Submit(const TaskOptions& options, F&& body);
  template <typename F>
  absl::Status Submit(F&& body);

  ExecutorStatistics Statistics() const;

  // For Async: what it is made of, from the first task on.
  internal::ExecutorCore& core() {
    internal::ExecutorCore* const core =
        core_.load(std::memory_order_acquire);  // Pairs with Begin.
    return __builtin_expect(core != nullptr, 1) ? *core : Begin();
  }

 private:
  friend class internal::ExecutorsCore;

  // Decides its kind and makes it.
  internal::ExecutorCore& Begin();

  internal::ExecutorsCore& home_;
  const std::string name_;
  internal::Atomic<internal::ExecutorCore*> core_{nullptr};  // Written once, by the first task.
};

}  // namespace bobbin

#include <bobbin/sched/internal/async_state.h>

namespace bobbin {

template <typename F>
absl::Status Executor::Submit(const TaskOptions& options, F&& body) {
  return internal::SubmitForgotten(core(), &options, std::forward<F>(body));
}
template <typename F>
absl::Status Executor::Submit(F&& body) {
  return internal::SubmitForgotten(core(), nullptr, std::forward<F>(body));
}

}  // namespace bobbin

#endif  // BOBBIN_SCHED_EXECUTOR_H_
