// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: reports virtual threads that keep their carrier for too long.
//
// A virtual thread that computes without end, or that makes a call which blocks its OS thread,
// stops all others of its carrier. The runtime's monitor looks on: who has not let go after
// `limit` is reported, once, with its name and stack, and counted in RuntimeStatistics. Loops that
// compute call YieldIfDue now and then; what blocks belongs into RunBlocking.
//
// What counts is the time in which the thread really computed or waited in the kernel, not what it
// spent waiting for a CPU: a machine that is overloaded, was suspended, or stands in a debugger, is
// no reason for a report.
//
//   Called from   a report's receiver is called on the monitor's thread.
//   Suspends      never. While a receiver runs nobody is watched: it must not wait for long, nor
//                 for virtual threads of this runtime.
//   Cost          nothing on a carrier. A look every 10 ms while carriers are awake, two system
//                 calls for each that has not moved since the last one. A report asks the OS thread
//                 for its stack by a signal (RuntimeOptions::thread_signal; with 0 there are no
//                 stacks); a call of the kind that signals interrupt for good (poll, nanosleep)
//                 then returns EINTR, as it must be ready to at any time.
//
// Example:
//   bobbin::Runtime runtime({.watchdog = {.limit = 50ms, .report = [](const auto& hold) {
//     LOG(WARNING) << hold.Text();
//   }}});

#ifndef BOBBIN_SCHED_WATCHDOG_H_
#define BOBBIN_SCHED_WATCHDOG_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"

namespace bobbin {

// A carrier that is kept from its other virtual threads.
struct CarrierHold {
  enum class Kind : uint8_t {
    kComputes,
    kBlocks,  // In the kernel: a read, a lock of the operating system's, a sleep.
  };

  Kind kind = Kind::kComputes;
  int carrier = 0;
  // Who keeps it. Without an id it is the carrier itself, at its own work; or nobody has answered,
  // if there is no stack either.
  uint64_t thread_id = 0;
  std::string thread_name;
  // For how long, when this was noticed.
  std::chrono::nanoseconds held{0};
  // A line for each function, the innermost first; empty if the OS thread did not answer.
  std::string stack;
  // How many holds before this one were only counted, because of `reports_per_minute`.
  uint64_t unreported = 0;

  // For people: one line, and the stack.
  std::string Text() const;
};

// A carrier that the watchdog has found held, and that has not gone on since.
struct HeldCarrier {
  int carrier = 0;
  // Since when at the least: what the watchdog had measured, and the time from then on.
  std::chrono::nanoseconds held{0};
};

struct WatchdogOptions {
  // Zero: nobody is watched.
  std::chrono::nanoseconds limit = std::chrono::milliseconds(20);
  // More are counted, but not reported.
  int reports_per_minute = 10;
  // Empty: it is a line of the log (log.h), or Text() on standard error.
  absl::AnyInvocable<void(const CarrierHold&)> report = {};
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_WATCHDOG_H_
