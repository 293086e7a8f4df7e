// SPDX-License-Identifier: Apache-2.0

#include "absl/time/clock.h"

#include <bobbin/cron/clock.h>

namespace bobbin::cron {

namespace {

class SystemClock final : public Clock {
 public:
  Reading Now() override { return {.wall = absl::Now(), .monotonic = MonotonicNow()}; }
};

}  // namespace

Clock& Clock::System() {
  static SystemClock clock;
  return clock;
}

}  // namespace bobbin::cron
