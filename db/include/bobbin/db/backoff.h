// SPDX-License-Identifier: Apache-2.0
//
// Backoff: how long something that has failed waits before it is tried again.
//
//   Called from   any thread: it is a value.
//   Suspends      never.
//
// Example:
//   .backoff = {.first = absl::Seconds(1), .max = absl::Minutes(10)}

#ifndef BOBBIN_DB_BACKOFF_H_
#define BOBBIN_DB_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"

namespace bobbin::db {

struct Backoff {
  // Before the second attempt; it grows by `growth` with each one after it, up to `max`.
  absl::Duration first = absl::Seconds(1);
  absl::Duration max = absl::Minutes(10);
  double growth = 2.0;
  // Each is longer or shorter by up to this part of it, so that what failed at the same time does
  // not come again at the same time. From 0 to 1.
  double jitter = 0.25;

  // After so many attempts, the first one counted. `random`: any number, which decides the jitter.
  absl::Duration After(int64_t attempts, uint64_t random) const;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_BACKOFF_H_
