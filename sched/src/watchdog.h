// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: the monitor's eye on how long each carrier is with one virtual thread.
//
// A carrier that is awake and has not picked a next thread since the last look is under suspicion,
// and from then on its OS thread is measured. Between two looks it has been held for
//
//   the CPU time that it has used, or
//   the time between the looks, if it waited in the kernel at both of them and used little CPU,
//
// and in either case for no longer than the pause that was planned between the looks. So a carrier
// that waits for a CPU is not held, and a monitor that comes late - after a suspend, a SIGSTOP, on
// an overloaded machine - counts a pause of hours as one of milliseconds. What happened before the
// first suspicious look does not count: a report comes up to a look late, and never early.
//
//   Called from   the monitor's OS thread; the counts by anyone.
//   Suspends      never, but for what a report's receiver does.

#ifndef BOBBIN_SCHED_SRC_WATCHDOG_H_
#define BOBBIN_SCHED_SRC_WATCHDOG_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/counter.h>
#include <bobbin/sched/watchdog.h>

#include "sched/src/os_thread_meter.h"

namespace bobbin::internal {

class Carrier;

class Watchdog {
 public:
  explicit Watchdog(WatchdogOptions& options) : options_(options) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  bool is_on() const noexcept { return options_.limit.count() > 0; }
  // Begins to watch `carrier`, whose OS thread runs. They come in the order of their indices.
  void Add(const Carrier& carrier);

  // `planned`: the pause that was meant to lie between the last look and this one. Returns whether
  // the carrier is under suspicion: then the next look should come after SuspicionPause().
  bool Look(const Carrier& carrier, std::chrono::nanoseconds planned);
  // Short enough to keep to the limit.
  std::chrono::nanoseconds SuspicionPause() const noexcept { return options_.limit / 4; }

  uint64_t computing_holds() const noexcept { return computing_holds_.value(); }
  uint64_t blocking_holds() const noexcept { return blocking_holds_.value(); }
  // Carriers that were held at the last look. REQUIRES: all have been added.
  uint64_t held_carriers() const noexcept;
  std::vector<HeldCarrier> HeldCarriers() const;

 private:
  // What is known of one carrier.
  struct Suspect {
    explicit Suspect(pid_t os_thread) : meter(os_thread) {}
    OsThreadMeter meter;
    uint64_t picks = 0;  // At the last look.
    bool is_measured = false;
    bool is_reported = false;
    OsThreadMeter::Reading last;
    std::chrono::nanoseconds computed{0};
    std::chrono::nanoseconds blocked{0};
    // Since when it is held, in nanoseconds of the clock; 0: it is not. Written by the monitor,
    // read by anyone. relaxed: nothing else is read because of it.
    Atomic<int64_t> held_since{0};
  };

  static void Measure(Suspect& suspect, std::chrono::nanoseconds planned) noexcept;
  void Report(const Carrier& carrier, const Suspect& suspect);
  // Who it is and where, if the OS thread answers while it is still with the same one.
  static void DescribeHolder(const Carrier& carrier, uint64_t picks, CarrierHold& hold);
  // Whether one more may be reported now.
  bool MayReport() noexcept;

  WatchdogOptions& options_;
  std::deque<Suspect> suspects_;  // By the carriers' indices.
  MonotonicTime minute_began_{};
  int reported_in_minute_ = 0;
  uint64_t unreported_ = 0;
  Counter computing_holds_;
  Counter blocking_holds_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_WATCHDOG_H_
