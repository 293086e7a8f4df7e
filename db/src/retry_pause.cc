// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <random>

#include "absl/time/time.h"

#include <bobbin/core/clock.h>
#include <bobbin/db/backoff.h>
#include <bobbin/db/internal/retry_pause.h>
#include <bobbin/sched/sleep.h>

#include "db/src/limits.h"

namespace bobbin::db::internal {

absl::Status PauseBeforeRetry(int attempts) {
  constexpr Backoff kPause = {.first = kRetryPauseMin, .max = kRetryPauseMax, .jitter = 0.5};
  std::mt19937_64 random(static_cast<uint64_t>(MonotonicNow().time_since_epoch().count()));
  return SleepFor(absl::ToChronoNanoseconds(kPause.After(attempts, random())));
}

}  // namespace bobbin::db::internal
