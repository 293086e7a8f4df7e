// SPDX-License-Identifier: Apache-2.0
//
// PlatformPool: OS threads for calls that block. RunBlocking: one such call, from anywhere.
//
// SQLite, files, getaddrinfo, fsync, a C library that waits: they belong here, never on a carrier.
// A virtual thread that calls RunBlocking parks; its carrier goes on with others. Give each kind of
// blocking work a pool of its own, so that one that is stuck does not hold up the others.
//
// Growth. A task goes to an idle thread, if there is one; else it starts a thread while there are
// fewer than `threads`; else it is queued; when the queue is full it starts a thread while there
// are fewer than `threads_max`; else the rejection policy decides. Tasks start in the order they
// came. Threads above `threads` end after `keep_alive` without work.
//
// A body that calls RunBlocking of its own pool runs the inner body itself: it may block, and
// waiting for another thread of the same pool could be waiting for ever. A body that waits for a
// virtual thread which in turn needs this pool can still wait for ever: give it a deadline, or
// another pool.
//
//   Called from   virtual, platform and foreign threads; Submit and Statistics: any thread.
//                 Shutdown and the destructor: not from a thread of the pool itself.
//   Suspends      RunBlocking, until the body has run. Shutdown and the destructor, until the
//                 threads have ended or the budget is spent. Submit never.
//   Cancellation  A caller that is to stop while its body is still queued takes it back, so that it
//                 never runs, and returns CANCELLED or DEADLINE_EXCEEDED. A body that runs is
//                 always waited for, since it may use the caller's stack. Shutdown and the
//                 destructor ignore it.
//   Errors        RESOURCE_EXHAUSTED: rejected, dropped by kDiscardOldest, or the system gives no
//                 thread. UNAVAILABLE: shut down. The body's own status is returned, its exception
//                 rethrown.
//   Lifetime      Shutdown, and the destructor, run what is queued and join the threads. A body
//                 that does not return within the budget is named and its thread abandoned.
//   Cost          A round trip is two wakes between OS threads. A new thread: some 35 us.
//
// Example:
//   bobbin::PlatformPool hashing({.name = "hash", .threads = 2, .queue_max = 256});
//   BOBBIN_ASSIGN_OR_RETURN(int rows, hashing.RunBlocking([&] { return legacy_scan(path); }));

#ifndef BOBBIN_SCHED_PLATFORM_POOL_H_
#define BOBBIN_SCHED_PLATFORM_POOL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/sched/internal/blocking_call.h>

namespace bobbin {

// What happens to a task for which there is neither a thread nor room in the queue.
enum class Rejection : uint8_t {
  // It is refused: RESOURCE_EXHAUSTED.
  kAbort,
  // The calling thread runs it, if it may block; a virtual thread is refused instead.
  kCallerRuns,
  // It is dropped: Submit says OK, RunBlocking RESOURCE_EXHAUSTED.
  kDiscard,
  // The oldest queued task is dropped, and this one queued. Refused if none is queued.
  kDiscardOldest,
};

struct PlatformPoolOptions {
  std::string name = "platform";
  // Of its threads' names, which end with a number counted from 1. Empty: "<name>-". The system
  // keeps 15 bytes.
  std::string thread_name_prefix = {};
  // From 1 to PlatformPool::kThreadsMax.
  size_t threads = 4;
  // 0: the same as `threads`.
  size_t threads_max = 0;
  size_t queue_max = 1024;
  std::chrono::nanoseconds keep_alive = std::chrono::seconds(60);
  Rejection rejection = Rejection::kAbort;
  // For Shutdown and the destructor, in all.
  std::chrono::nanoseconds shutdown_budget = std::chrono::seconds(25);
};

struct RunBlockingOptions {
  // Called on the calling thread, once, when it is to stop while the body runs: asks the body to
  // end early, such as by a flag or a library's interrupt function. The body is waited for all the
  // same.
  std::optional<absl::FunctionRef<void()>> request_stop = std::nullopt;
};

struct PlatformPoolStatistics {
  size_t threads = 0;          // That exist now.
  size_t threads_peak = 0;     // That existed at once, at most.
  size_t active = 0;           // Bodies running now.
  size_t queued = 0;           // Bodies waiting for a thread now.
  uint64_t completed = 0;      // Bodies that a thread of the pool has run.
  uint64_t ran_by_caller = 0;  // By kCallerRuns.
  uint64_t rejected = 0;       // Refused for want of room.
  uint64_t discarded = 0;   // Dropped by kDiscard, by kDiscardOldest or at the end of a shutdown.
  uint64_t taken_back = 0;  // By callers that were to stop.
  std::chrono::nanoseconds wait_total{0};  // From being queued to being begun, added up...
  std::chrono::nanoseconds wait_max{0};    // ...and the longest of them.
  std::chrono::nanoseconds run_total{0};   // Of completed bodies.
  std::chrono::nanoseconds run_max{0};
};

class PlatformPool {
 public:
  // More threads than this say that the work is not of the blocking kind. Not tuned.
  static constexpr size_t kThreadsMax = 4096;

  // Starts no thread yet.
  explicit PlatformPool(PlatformPoolOptions options = {});
  PlatformPool(const PlatformPool&) = delete;
  PlatformPool& operator=(const PlatformPool&) = delete;
  // Shuts down, if that has not been done, and says who is left (log.h).
  ~PlatformPool();

  // Runs `body` on a platform thread and returns what it returned: a T as StatusOr<T>, nothing as
  // Status; a Status or StatusOr as it is.
  template <typename F>
  internal::BlockingResult<F> RunBlocking(const RunBlockingOptions& options, F&& body) {
    using Function = std::remove_reference_t<F>;
    struct Call {
      static void Run(void* argument) {
        Call& call = *static_cast<Call*>(argument);
        call.exception = internal::CaptureException([&call] { call.outcome.Produce(); });
      }
      static void RequestStop(void* call) { (*static_cast<Call*>(call)->options.request_stop)(); }
      const RunBlockingOptions& options;
      internal::BlockingOutcome<Function> outcome;
      std::exception_ptr exception;
    } call{options, internal::BlockingOutcome<Function>(body), nullptr};
    const absl::Status ran = internal::RunAndWait(
        *core_, {.run = &Call::Run,
                 .request_stop = options.request_stop.has_value() ? &Call::RequestStop : nullptr,
                 .argument = &call});
    if (!ran.ok()) return ran;
    if (call.exception != nullptr) std::rethrow_exception(std::move(call.exception));
    return std::move(call.outcome).Take();
  }
  template <typename F>
  internal::BlockingResult<F> RunBlocking(F&& body) {
    return RunBlocking(RunBlockingOptions{}, std::forward<F>(body));
  }

  // Queues `body` and returns at once. An exception out of it ends the process.
  absl::Status Submit(absl::AnyInvocable<void() &&> body);

  // Refuses new tasks, runs what is queued, joins the threads. DEADLINE_EXCEEDED, naming them, when
  // bodies were still running at the end of the budget: what was still queued is then dropped.
  // Called again, it returns the first call's result.
  absl::Status Shutdown();

  const std::string& name() const;
  PlatformPoolStatistics Statistics() const;
  internal::PlatformPoolCore& core() { return *core_; }

 private:
  std::shared_ptr<internal::PlatformPoolCore> core_;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_PLATFORM_POOL_H_
