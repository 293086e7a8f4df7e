// SPDX-License-Identifier: Apache-2.0
//
// LifecycleCore: the phases of a runtime's stop, and their hooks.
//
// Whoever turns has_begun_ runs the phases, on an OS thread of their own or, at the runtime's end,
// on its own; all others wait for has_ended_.
//
//   Called from   any thread; AwaitPhases and CloseResources: the runtime.
//   Suspends      Stop, AwaitPhases, CloseResources.

#ifndef BOBBIN_SCHED_SRC_LIFECYCLE_CORE_H_
#define BOBBIN_SCHED_SRC_LIFECYCLE_CORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>

#include "sched/src/os_thread_handle.h"

namespace bobbin::internal {

class RuntimeCore;

// A hook, as the registry, its StopHook and the thread that calls it share it.
struct StopHookRecord {
  StopHookRecord(const StopHookOptions& options, absl::AnyInvocable<absl::Status()> hook)
      : phase(options.phase), name(options.name), call(std::move(hook)) {}

  const StopPhase phase;
  const std::string name;
  absl::AnyInvocable<absl::Status()> call;  // The caller's, once it is taken; else its StopHook's.
  Mutex mutex;
  bool is_withdrawn ABSL_GUARDED_BY(mutex) = false;
  bool is_taken ABSL_GUARDED_BY(mutex) = false;
  absl::Status result;  // Written before it has ended.
  Event has_ended;      // Set once it was taken, and called.
};

class LifecycleCore {
 public:
  LifecycleCore(RuntimeCore& runtime, std::chrono::nanoseconds budget);
  LifecycleCore(const LifecycleCore&) = delete;
  LifecycleCore& operator=(const LifecycleCore&) = delete;
  ~LifecycleCore();

  Lifecycle& facade() noexcept { return facade_; }
  Event& stopping() noexcept { return stopping_; }
  // Before the runtime has started.
  void set_budget(std::chrono::nanoseconds budget) noexcept { budget_ = budget; }

  std::shared_ptr<StopHookRecord> Add(const StopHookOptions& options,
                                      absl::AnyInvocable<absl::Status()> hook);
  // `cause` is for the log.
  void RequestStop(std::string_view cause);
  absl::Status Stop();

  // Runs the phases before the last one, or waits for whoever does.
  absl::Status AwaitPhases();
  // What is left of the budget, for what follows; never nothing.
  Deadline end() const noexcept;
  // How long that is from now.
  std::chrono::nanoseconds TimeLeft() const noexcept;
  // Phase 5 is over, and `left` virtual threads have not ended.
  void TellOfThreads(uint64_t left) const;
  // The last phase.
  absl::Status CloseResources();

 private:
  using Hook = std::shared_ptr<StopHookRecord>;

  // True for the one who is to run the phases.
  bool Begin(std::string_view cause);
  void RunPhases();
  std::vector<Hook> Take(StopPhase phase);
  // When the phase is to end.
  Deadline EndOf(StopPhase phase) const;
  void RunHooks(StopPhase phase, Deadline end);
  void RunExecutors(Deadline end);
  void Note(absl::Status status);
  void Say(std::string_view line, LogLevel level = LogLevel::kInfo) const;

  RuntimeCore& runtime_;
  std::chrono::nanoseconds budget_;  // Does not change once the runtime has started.
  Lifecycle facade_{*this};

  Mutex mutex_;
  std::vector<Hook> hooks_ ABSL_GUARDED_BY(mutex_);
  OsThreadHandle thread_ ABSL_GUARDED_BY(mutex_);

  Atomic<bool> has_begun_{false};  // Turned by the one who runs the phases.
  Event stopping_;
  Event has_ended_;
  // Of the one who runs the phases; from has_ended_ on, they do not change.
  Deadline end_ = Deadline::Never();
  bool is_asked_ = false;  // Not the runtime's own end.
  uint64_t living_ = 0;    // Virtual threads when they were cancelled, and when that was.
  MonotonicTime cancelled_at_;
  absl::Status result_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_LIFECYCLE_CORE_H_
