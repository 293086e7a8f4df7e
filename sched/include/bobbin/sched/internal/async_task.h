// SPDX-License-Identifier: Apache-2.0
//
// AsyncTask: a task of an executor, without its types.
//
// States
//
//   kDelayed   waits for its time; the executor's list of delays has it
//   kWaiting   waits for a thread or a place, or has a virtual thread that has not begun
//   kRunning   its body runs
//   kEnded     it has ended, was dropped, or abandoned
//
// Transitions
//
//   kWaiting -> kRunning             Begin      its thread, by an exchange, without a lock; or with
//                                               that of its share, where that is cheaper
//   kWaiting -> kEnded               Claim      who cancels, drops or refuses it, by an exchange,
//                                               with the executor's locks
//   kDelayed -> kEnded, kWaiting     Claim, ServeDelays, with the locks
//   kWaiting, kRunning -> kDelayed   PutDelay   its submitter or its thread, with the locks
//   kRunning -> kEnded               End, Abandon, with the lock of its share
//
// So a task begins or is dropped, and not both: the exchange decides, or the lock, which who drops
// it has. And it is ended or abandoned, and not both: the lock decides.
//
// Who owns it. It is a future's state with two references: the reader's, and the one of the path
// that it is on: the list of delays, a queue, a thread. Who takes it off its path gives that
// reference up, after the future has its result. One who only drops or abandons it leaves the
// reference to the thread that comes upon it.
//
// Its span. A task that was submitted in a trace that is kept, or while a Tracing is there, has a
// span around each attempt: begun when the body is about to, ended before anybody can hear of the
// outcome. One whose body does not begin has none; one that is abandoned has its own to the end.
//
//   Called from   as each member says.
//   Suspends      Run: as the body does, and while it waits for TaskOptions::held.

#ifndef BOBBIN_SCHED_INTERNAL_ASYNC_TASK_H_
#define BOBBIN_SCHED_INTERNAL_ASYNC_TASK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/sched/internal/pool_task.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/task_options.h>

namespace bobbin {
class TaskDecorator;
}  // namespace bobbin

namespace bobbin::internal {

class ExecutorCore;
class FailureSink;
class Thread;

// In the executor's list of tasks that have not ended.
class LiveTask : public IntrusiveLink {};

class AsyncTask : public PoolTask, public LiveTask {
 public:
  enum class State : uint8_t { kDelayed, kWaiting, kRunning, kEnded };

  // --- On the body's thread.

  void Run() noexcept final;
  void Finish() noexcept final;

  // --- Whoever drops it.

  void Discard(absl::Status reason) noexcept final;

  // --- Any thread.

  // Withdraws it if its body has not begun: true, and its future is CANCELLED.
  bool Withdraw() noexcept;
  std::string_view name() const noexcept {
    return extras_ == nullptr ? std::string_view() : std::string_view(extras_->name);
  }
  // "task "receipt" on executor "mail"".
  std::string Label() const;

  // --- The executor's side.

  ContextNode* context() const noexcept { return context_.node(); }
  // Destroys the body and gives the future an error, if it has no result. REQUIRES: the body does
  // not run.
  virtual void FailUnbegun(absl::Status reason) noexcept = 0;
  // The same while the body runs, without destroying it.
  virtual void FailRunning(absl::Status reason) noexcept = 0;
  virtual void AddOwner() noexcept = 0;
  virtual void GiveUp() noexcept = 0;

 protected:
  // What most tasks do not have.
  struct Extras {
    std::string name;
    Mutex* held = nullptr;
    std::chrono::nanoseconds delay{0};
    RetryOptions retry;
    size_t attempts = 0;
    std::pair<MonotonicTime, uint64_t> delay_key;  // While it is delayed.
    absl::AnyInvocable<void()> decorated;
  };

  // Without options it has the default ones.
  AsyncTask(ExecutorCore& executor, const TaskOptions* options) : executor_(executor) {
    if (__builtin_expect(options != nullptr, 0)) Take(*options);
    if (__builtin_expect(Tracing::IsOn(), 0)) JoinTrace(options);
  }
  ~AsyncTask() = default;

  // Whether there may be another attempt.
  bool may_run_again() const noexcept { return extras_ != nullptr; }
  // Calls the body, and keeps what comes of it; destroys the body, unless it may run again. True if
  // it has succeeded.
  virtual bool Execute() noexcept = 0;
  // What the last Execute kept, if it was an error; OK for an exception.
  virtual absl::Status LastError() const noexcept = 0;
  // What the last Execute has thrown, or null.
  virtual std::exception_ptr LastException() const noexcept = 0;
  // Instead of Execute: an error to keep.
  virtual void KeepError(absl::Status error) noexcept = 0;
  // Destroys the body: there is no other attempt.
  virtual void EndBody() noexcept = 0;
  // Makes what was kept the future's result, and gives the path's reference up.
  virtual void Deliver() noexcept = 0;

  // Tells that nobody has heard of a failure: once the task has ended, on any thread.
  void ReportUncaught(const absl::Status& status, std::exception_ptr exception) noexcept;
  // So that it can be told also when the executor is gone.
  void KeepSink();
  // Its executor's.
  std::stop_token StopToken() const noexcept;

 private:
  friend class ExecutorCore;
  friend class PlatformExecutor;
  friend class VirtualExecutor;

  // What follows the body's last line: its end is counted, its future gets the result. Returns what
  // is to be begun in its place. The task is not touched after this.
  AsyncTask* Conclude() noexcept;
  // On the submitting thread: keeps what is out of the ordinary.
  void Take(const TaskOptions& options);
  void JoinTrace(const TaskOptions* options);
  // On the submitting thread: has the executor's decorator go around the body.
  void Decorate(const TaskDecorator& decorator);
  void ExecuteOnce() noexcept {
    if (__builtin_expect(extras_ == nullptr, 1)) {
      has_failed_ = !Execute();
    } else {
      ExecuteWithExtras();
    }
  }
  // Execute, decorated, under the lock that it is to hold.
  void ExecuteWithExtras() noexcept ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // ExecuteOnce, in a span.
  void ExecuteInSpan() noexcept;
  // When it was given to the threads. REQUIRES: it is timed or traced.
  MonotonicTime GivenAt() const noexcept;
  // Whether what the last attempt has ended with is worth another one.
  bool IsWorthRetrying() const noexcept;
  std::chrono::nanoseconds NextBackoff() const noexcept;

  ExecutorCore& executor_;
  Atomic<Thread*> thread_{nullptr};       // Written before it runs, by that thread.
  uint64_t number_of_kind_ = 0;           // Of the executor's tasks.
  MonotonicTime given_at_;                // Or due. Of timed and traced tasks on virtual threads.
  MonotonicTime begun_at_;                // Of timed tasks.
  Atomic<State> state_{State::kWaiting};  // See above.
  uint8_t share_ = 0;                     // Of its executor's; written by its submitter.
  bool is_traced_ = false;                // Never changes: whether it may have a span that is kept.
  bool is_timed_ = false;
  bool is_lent_ = false;        // It runs on its submitter's thread.
  bool is_discounted_ = false;  // It waits for the end of its executor itself.
  // Its thread's.
  bool is_over_ = false;       // It was dropped before it began.
  bool has_failed_ = false;    // The last attempt.
  bool has_executed_ = false;  // The decorator has called the body.
  bool will_retry_ = false;
  std::unique_ptr<Extras> extras_;  // Never changes once it is submitted.
  // Of its thread, once it has failed; not an extra, for those who name it meanwhile look there.
  std::shared_ptr<const FailureSink> sink_;
  const SharedContext context_;  // The submitter's.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_ASYNC_TASK_H_
