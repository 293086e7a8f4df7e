// SPDX-License-Identifier: Apache-2.0
//
// Clock: the time of a scheduler: what the calendar shows, and what never steps.
//
// Cron jobs follow the wall clock, which people and time servers set; fixed rates and delays follow
// the monotonic one. A test passes a clock of its own, and lets a year go by in a moment.
//
//   Called from   Now: any thread, several at once.
//   Suspends      never.
//   Lifetime      must outlive the schedulers that read it.
//
// Example:
//   class Fixed final : public bobbin::cron::Clock {
//     Reading Now() override { return reading; }
//   };

#ifndef BOBBIN_CRON_CLOCK_H_
#define BOBBIN_CRON_CLOCK_H_

#include "absl/time/time.h"

#include <bobbin/core/clock.h>

namespace bobbin::cron {

class Clock {
 public:
  struct Reading {
    absl::Time wall;
    MonotonicTime monotonic;
  };

  virtual ~Clock() = default;
  virtual Reading Now() = 0;

  // The operating system's.
  static Clock& System();
};

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_CLOCK_H_
