// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/sched/sleep.h>

#include "sched/src/carrier.h"
#include "sched/src/current_runtime.h"
#include "sched/src/limits.h"

namespace bobbin {

using internal::Phase;
using internal::Thread;
using internal::TimerNode;
using internal::Waiter;
using internal::Wake;

namespace {
constexpr internal::WaitKind kSleepWait = {"sleep", internal::WaitObject::kNone};
}  // namespace

absl::Status SleepUntil(Deadline time) {
  Waiter self(kSleepWait);
  Thread& thread = self.thread();
  TimerNode* const outer = thread.governing();
  const int64_t now = MonotonicNow().time_since_epoch().count();
  // A scope in which nobody has waited yet has not noticed its end.
  if (outer != nullptr && outer->deadline <= now) outer->has_expired = true;
  if (thread.ShouldStop()) return thread.StopStatus();
  if (time.nanoseconds() <= now) return absl::OkStatus();

  // Sleeping is waiting for nobody, with the time as the deadline - unless a scope's comes first.
  TimerNode node(thread, time.nanoseconds());
  node.is_precise = node.deadline - now < internal::kPreciseSleepNanoseconds;
  const bool is_first = outer == nullptr || node.deadline < outer->deadline;
  if (is_first && !time.is_never()) thread.set_governing(&node);
  self.BeginWait(Phase::kWaiting);
  const Wake wake = self.Park();
  thread.set_governing(outer);
  if (node.place != TimerNode::Place::kUnarmed) thread.dispatcher()->DisarmTimer(node);
  return node.has_expired ? absl::OkStatus() : Thread::StatusOf(wake);
}

void YieldIfDue() {
  Thread& thread = internal::Current();
  if (thread.role() != Role::kVirtual || !internal::CurrentCarrier()->TurnIsOver()) return;
  thread.CheckMayWait();
  thread.dispatcher()->YieldTurn(thread);
}

void Yield() {
  Thread& thread = internal::Current();
  thread.CheckMayWait();
  if (thread.role() == Role::kVirtual) {
    thread.dispatcher()->Yield(thread);
  } else {
    internal::GiveUpSlice();
  }
}

}  // namespace bobbin
