// SPDX-License-Identifier: Apache-2.0

#include "sched/src/deadlock_watch.h"

#include <cstdio>
#include <string>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/os_thread.h>

#include "sched/src/carrier.h"
#include "sched/src/limits.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

DeadlockWatch::Seen DeadlockWatch::See() const noexcept {
  // The carriers have told these numbers before they fell asleep.
  for (int i = 0; i < runtime_.carrier_count(); ++i) {
    const Carrier& carrier = runtime_.carrier(i);
    if (carrier.state() != Carrier::State::kAsleep || carrier.HasStealable()) return Seen::kNothing;
    if (carrier.starving() != 0) return Seen::kNothing;
    if (carrier.timers_armed() != 0 || carrier.in_flight() != 0) return Seen::kNothing;
  }
  const uint64_t known = static_cast<uint64_t>(runtime_.carrier_count()) + 1;  // And the monitor.
  return CountOsThreads() > known + OsThread::waiting_for_good() + options_.bystanders
             ? Seen::kForeign
             : Seen::kDeadlock;
}

DeadlockWatch::Seen DeadlockWatch::Look() {
  if (runtime_.Live() == 0) return Seen::kNothing;
  const Seen seen = See();
  // Nobody must have got through while the carriers were looked at one after the other.
  const uint64_t parks = runtime_.Statistics().parks;
  if (seen != Seen::kDeadlock || See() != Seen::kDeadlock) return seen;
  if (parks != reported_at_) {
    reported_at_ = parks;
    deadlocks_.add(1);
    Report();
  }
  return seen;
}

void DeadlockWatch::Report() {
  std::string text = fmt::format(
      "bobbin: deadlock: {} virtual threads are parked, and nobody is left who could wake one\n",
      runtime_.Live());
  if (const uint64_t spawners = runtime_.waiting_for_limit(); spawners != 0) {
    text += fmt::format("  {} wait in Spawn: the limit of {} live virtual threads is reached\n",
                        spawners, runtime_.live_max());
  }
  text += runtime_.facade().Dump({.listed_max = kListedInFailure});
  if (options_.report) {
    options_.report(text);
  } else {
    std::fputs(text.c_str(), stderr);
  }
  BOBBIN_CHECK(options_.action != OnDeadlock::kAbort, "a deadlock");
}

}  // namespace bobbin::internal
