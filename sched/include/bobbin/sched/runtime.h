// SPDX-License-Identifier: Apache-2.0
//
// Runtime: the carriers of a process, and what runs on them. Run: a whole program on one.
//
// Several runtimes may live side by side or one after another; none keeps state outside itself.
// Idle carriers sleep and use no CPU.
//
//   Called from   The constructor, Shutdown, the destructor and Spawn: foreign and platform threads
//                 (not from virtual threads of the same runtime). Statistics, HeldCarriers,
//                 MeasureStacks, Dump: any thread.
//   Suspends      AwaitIdle and Dump. Shutdown and the destructor block until the carriers have
//                 ended.
//   Cancellation  AwaitIdle returns CANCELLED or DEADLINE_EXCEEDED. Shutdown cancels every virtual
//                 thread that is left; it and the destructor ignore their caller's.
//   Errors        Create returns why the poller could not start. The constructor aborts there.
//   Fork          A child that `fork` makes has no carriers. It may call exec, exit and _exit; a
//                 wait, a spawn or a new runtime aborts there. The parent does not notice.
//   Cost          A runtime is a handful of OS threads: one a carrier, and a monitor that sleeps
//                 while the carriers do.
//
// Example:
//   int main() { return bobbin::Run(Serve, {.poller = bobbin::io::AutoPoller()}); }

#ifndef BOBBIN_SCHED_RUNTIME_H_
#define BOBBIN_SCHED_RUNTIME_H_

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/vthread.h>
#include <bobbin/sched/deadlock.h>
#include <bobbin/sched/dump.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/poller.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/statistics.h>
#include <bobbin/sched/watchdog.h>

namespace bobbin {

namespace internal {
class RuntimeCore;
}

struct RuntimeOptions {
  // How many carriers; 0: as many as the CPU affinity mask and the cgroup's CPU quota allow.
  int carriers = 0;
  // Where carriers sleep; empty: on a futex, without I/O.
  PollerFactory poller = {};
  // Address space of a stack, its guard page included. Only touched pages cost memory.
  size_t stack_bytes = size_t{256} << 10;
  // Live virtual threads at most: there Spawn waits, and TrySpawn answers RESOURCE_EXHAUSTED. Also
  // bounded by the guard pages a kernel before 6.13 can give.
  size_t virtual_threads_max = 16'000'000;
  // What the phases of its stop, Shutdown and the destructor may take in all before they name who
  // is left and go on.
  std::chrono::nanoseconds shutdown_budget = std::chrono::seconds(25);
  // Who reports virtual threads that keep their carrier for too long.
  WatchdogOptions watchdog = {};
  // What happens when nobody is left who could wake a virtual thread.
  DeadlockOptions deadlock = {};
  // How its executors are made.
  ExecutorsOptions executors = {};
  // Ties carrier i to the i-th CPU of the affinity mask.
  bool pins_carriers = false;
  // How an OS thread is asked what it is running, for dumps, and got out of a call to a file that
  // was given up: the process handles this signal from the first runtime on. One that is ignored
  // where nobody handles it is safe to send. 0: nobody asks, and such calls end by themselves.
  int thread_signal = SIGURG;
  // Guard pages by mprotect, as on kernels before 6.13. For tests and comparisons.
  bool forces_mprotect_guards = false;
};

class Runtime {
  struct Uninitialized {};

 public:
  // Starts the carriers. Aborts with the reason when a poller cannot start.
  explicit Runtime(RuntimeOptions options = {});
  // The same, but returns the reason.
  static absl::StatusOr<std::unique_ptr<Runtime>> Create(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // Shuts down, if that has not been done.
  ~Runtime();

  // Starts a virtual thread from outside.
  template <internal::BodyCallable F>
  VirtualThread Spawn(const SpawnOptions& options, F&& body) {
    internal::Task& task = internal::NewTask(*this, options);
    task.set_body(internal::Body::Emplace(task.body_storage(), std::forward<F>(body)));
    internal::Launch(*this, task, options.placement.value_or(Placement::kHere));
    return VirtualThread(task);
  }
  template <internal::BodyCallable F>
  VirtualThread Spawn(F&& body) {
    return Spawn(SpawnOptions{}, std::forward<F>(body));
  }

  // The same, but answers where Spawn would wait or abort: see spawn.h.
  template <internal::BodyCallable F>
  absl::StatusOr<VirtualThread> TrySpawn(const SpawnOptions& options, F&& body) {
    internal::Task* const task = internal::TryNewTask(*this, options);
    if (task == nullptr) return internal::WhyNotSpawned(*this, options);
    task->set_body(internal::Body::Emplace(task->body_storage(), std::forward<F>(body)));
    internal::Launch(*this, *task, options.placement.value_or(Placement::kHere));
    return VirtualThread(*task);
  }

  // Waits until no virtual thread is left, or until a deadline or a request to stop.
  absl::Status AwaitIdle();

  // Its executors, by name.
  Executors& executors();
  // Its orderly end, in phases.
  Lifecycle& lifecycle();

  // Shuts the executors down, cancels every virtual thread, waits for their end within the budget
  // and stops the carriers. OK when nothing was left; DEADLINE_EXCEEDED, naming who would not end,
  // otherwise: their carriers are then abandoned, and the process should exit. Called again, it
  // returns the first call's result.
  absl::Status Shutdown();

  int carriers() const;
  // Where the carriers sleep: "futex", "io_uring" or "epoll".
  std::string_view poller_name() const;
  // Why not in the poller that was preferred; empty where that is the one.
  std::string_view poller_reason() const;
  RuntimeStatistics Statistics() const;
  // The carriers that are held now, as its watchdog saw them a moment ago.
  std::vector<HeldCarrier> HeldCarriers() const;
  // Asks the kernel, page by page.
  StackUsage MeasureStacks() const;
  // Every virtual thread of it: see dump.h. Suspends until it is done.
  std::string Dump(const DumpOptions& options = {}) const;

  internal::RuntimeCore& core() { return *core_; }
  const internal::RuntimeCore& core() const { return *core_; }
  // For Create, which alone can name the argument.
  explicit Runtime(Uninitialized);

 private:
  std::unique_ptr<internal::RuntimeCore> core_;
};

// The calling thread's runtime: a virtual thread's own; a pool thread's is the one that its pool
// was made in. Null on other threads.
Runtime* CurrentRuntimeOrNull();

// Runs `main` as the first virtual thread of a runtime of its own, waits for it and for everything
// that it started, prints a failure to standard error, and returns the process's exit code: 0 for
// OK, else 1. When the runtime was asked to stop (lifecycle.h), CANCELLED is OK.
int Run(absl::AnyInvocable<absl::Status()> main, RuntimeOptions options = {});

// How many CPUs this process may use: the affinity mask, bounded by the cgroup's quota (rounded
// up).
int UsableCpus();

}  // namespace bobbin

#endif  // BOBBIN_SCHED_RUNTIME_H_
