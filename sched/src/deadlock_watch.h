// SPDX-License-Identifier: Apache-2.0
//
// DeadlockWatch: finds out whether anybody is left who could wake a virtual thread.
//
// Why the answer is right. A virtual thread is made ready by another one, by its carrier (a timer,
// a completion, a request), or by some other OS thread. If all carriers of the runtime sleep and
// have neither timers nor operations, only the last remain. The kernel says how many OS threads
// there are; the carriers and the monitor are known; and of the others, those that wait without a
// deadline are counted by themselves (OsThread::waiting_for_good), and discounted by whoever ends
// their wait, before it wakes them. So if all numbers add up, none of them can run before another
// has woken it: nobody does anything any more, and the numbers do not change while they are read.
//
// Other runtimes' carriers are OS threads like any other, and not discounted.
//
//   Called from   the monitor's OS thread.
//   Suspends      never, but for what a report's receiver does.

#ifndef BOBBIN_SCHED_SRC_DEADLOCK_WATCH_H_
#define BOBBIN_SCHED_SRC_DEADLOCK_WATCH_H_

#include <cstdint>

#include <bobbin/core/internal/counter.h>
#include <bobbin/sched/deadlock.h>

namespace bobbin::internal {

class RuntimeCore;

class DeadlockWatch {
 public:
  // What a look has shown.
  enum class Seen : uint8_t {
    kNothing,
    kForeign,  // Only OS threads that are no part of the runtime could wake somebody.
    kDeadlock,
  };

  DeadlockWatch(RuntimeCore& runtime, DeadlockOptions& options)
      : runtime_(runtime), options_(options) {}
  DeadlockWatch(const DeadlockWatch&) = delete;
  DeadlockWatch& operator=(const DeadlockWatch&) = delete;

  bool is_on() const noexcept { return options_.action != OnDeadlock::kIgnore; }
  // Looks, and reports a deadlock that has not been reported. REQUIRES: the carriers seem to sleep.
  Seen Look();
  uint64_t deadlocks() const noexcept { return deadlocks_.value(); }

 private:
  Seen See() const noexcept;
  void Report();

  RuntimeCore& runtime_;
  DeadlockOptions& options_;
  uint64_t reported_at_ = 0;  // The number of parks at the last report.
  Counter deadlocks_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_DEADLOCK_WATCH_H_
