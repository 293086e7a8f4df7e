// SPDX-License-Identifier: Apache-2.0
//
// Deadlock: what a runtime does when all its virtual threads are parked and nobody is left who
// could wake one.
//
// That is the case when no virtual thread is ready, no timer is armed, no operation is in the
// kernel's hands, and every other OS thread of the process waits as well: at a primitive of
// bobbin's (a foreign thread in Join, an idle platform thread), without a deadline. Two mutexes
// that are locked in opposite orders end so, or a channel whose last sender was forgotten.
//
// The report is never wrong: one OS thread that runs, or waits for something else, could still set
// an Event, and then there is none. Threads of yours of which you know that they never touch
// anything that a virtual thread waits for (a logger, an exporter of metrics) are declared as
// `bystanders`; without that they keep a deadlock from being seen.
//
//   Called from   a report's receiver is called on the monitor's thread, once for each deadlock.
//   Suspends      never.
//   Cost          nothing while anything runs: the monitor looks when the runtime has been idle for
//                 a second.
//
// Example:
//   bobbin::Run(Serve, {.deadlock = {.action = bobbin::OnDeadlock::kAbort, .bystanders = 1}});

#ifndef BOBBIN_SCHED_DEADLOCK_H_
#define BOBBIN_SCHED_DEADLOCK_H_

#include <cstdint>
#include <string_view>

#include "absl/functional/any_invocable.h"

namespace bobbin {

enum class OnDeadlock : uint8_t {
  kIgnore,
  kReport,  // Says so, and who is parked; the program stays as it is.
  kAbort,   // The same as a failed check.
};

struct DeadlockOptions {
  OnDeadlock action = OnDeadlock::kReport;
  // OS threads that never wake a virtual thread.
  uint64_t bystanders = 0;
  // Is given what a report says, for people; empty: it goes to standard error.
  absl::AnyInvocable<void(std::string_view)> report = {};
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_DEADLOCK_H_
