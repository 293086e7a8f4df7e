// SPDX-License-Identifier: Apache-2.0
//
// Lifecycle: the orderly end of a runtime, in phases that share one budget.
//
//   1 announce         tell whoever sends work: the health page says no, the name is taken back
//   2 scheduler        timetables start nothing any more
//   3 servers          nothing is accepted; idle connections are closed, busy ones finish
//   4 executors        tasks are run, dropped, asked to stop, abandoned: see executors.h
//   5 virtual threads  what is left is cancelled
//   6 resources        what the others have used is closed: pools of connections, files
//
// Who has something to end registers a hook for its phase. What the libraries have does it by one
// call: io::Server::StopWith, http::Server::StopWith, db::Database::StopWith, OtlpSpans::StopWith
// and JsonLines::FlushWith; a cron::Scheduler, a db::OutboxRelay and a db::QueueRunner do it by
// themselves, in phase 2. The hooks of a phase are called at the same time, each on a virtual
// thread of its own, with the phase's deadline in force and shielded from the cancel of phase 5. A
// phase has a share of what is left of RuntimeOptions::shutdown_budget; what it does not use is the
// others'. A hook that does not end in time is named and left behind. Phase 5 waits, and phase 6
// begins, in Runtime::Shutdown: there the hooks are called by the thread that shuts it down, the
// last one registered first. Of what a main function owns none is left by then; hooks of what
// outlives it are detached.
//
// Stop is begun once, whoever asks, and as often: by Stop, RequestStop, a signal, or the runtime's
// end. Each phase that has something to do is told in a line of the log (log.h); what is still
// running at the end is shown, with its stack, on standard error.
//
//   Called from   any thread. StopHook's destructor: not from its own hook.
//   Suspends      Stop, until phase 5 has begun. StopHook's destructor, while its hook runs.
//                 Nothing else.
//   Cancellation  ignored.
//   Errors        Stop: DEADLINE_EXCEEDED, naming the hooks and tasks that did not end; else the
//                 first error of a hook.
//   Order         Phases one after another; hooks of one phase in none, but for phase 6.
//   Lifetime      A StopHook may outlive the runtime.
//
// Example:
//   absl::Status Main() {
//     bobbin::Lifecycle& life = bobbin::CurrentLifecycle();
//     life.StopOnSignals();
//     const bobbin::StopHook drain =
//         life.OnStop({.phase = bobbin::StopPhase::kServers, .name = "shop"},
//                     [&] { return server.Drain(); });
//     return server.Serve();
//   }

#ifndef BOBBIN_SCHED_LIFECYCLE_H_
#define BOBBIN_SCHED_LIFECYCLE_H_

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/event.h>

namespace bobbin {

namespace internal {
class LifecycleCore;
struct StopHookRecord;
}  // namespace internal

enum class StopPhase : uint8_t {
  kAnnounce = 1,
  kScheduler = 2,
  kServers = 3,
  kExecutors = 4,  // Beside the executors.
  kResources = 6,  // The one between is the runtime's own.
};

struct StopHookOptions {
  StopPhase phase = StopPhase::kServers;
  // For people: the log. Copied.
  std::string_view name = {};
};

// A hook that is called, unless this ends before.
class [[nodiscard]] StopHook {
 public:
  // Holds nothing.
  StopHook() = default;
  // For Lifecycle.
  explicit StopHook(std::shared_ptr<internal::StopHookRecord> record)
      : record_(std::move(record)) {}
  StopHook(StopHook&& other) noexcept = default;
  StopHook& operator=(StopHook&& other) noexcept;
  // Withdraws it; if it runs, waits for its end.
  ~StopHook() { Withdraw(); }

  // Leaves it in its place until the runtime has stopped: what it uses must live as long.
  void Detach() && noexcept { record_.reset(); }

 private:
  void Withdraw() noexcept;

  std::shared_ptr<internal::StopHookRecord> record_;
};

class Lifecycle {
 public:
  explicit Lifecycle(internal::LifecycleCore& core) : core_(core) {}
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  // Has `hook` called when its phase comes; never, if that is over.
  StopHook OnStop(const StopHookOptions& options, absl::AnyInvocable<absl::Status()> hook);

  // Begins the stop, if nobody has, and waits until phase 5 has begun. A task of an executor that
  // calls it is not waited for. A request that a server drains should call RequestStop.
  absl::Status Stop();
  // Begins the stop, if nobody has.
  void RequestStop();
  // Has each of `signals`, from now on and for the whole process, request the stop of this runtime,
  // and of the others that have asked for that.
  void StopOnSignals(const std::vector<int>& signals = {SIGTERM, SIGINT});

  // Is set when the stop begins.
  Event& stopping();

 private:
  internal::LifecycleCore& core_;
};

// That of the calling thread's runtime. REQUIRES: it has one; a foreign thread asks
// Runtime::lifecycle.
Lifecycle& CurrentLifecycle();

}  // namespace bobbin

#endif  // BOBBIN_SCHED_LIFECYCLE_H_
