// SPDX-License-Identifier: Apache-2.0
//
// PauseBeforeRetry: what a transaction that met another one waits before it is tried again.
//
// About twice as long each time, and never the same for two, so that those who met do not meet
// again.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      for some milliseconds.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED.

#ifndef BOBBIN_DB_INTERNAL_RETRY_PAUSE_H_
#define BOBBIN_DB_INTERNAL_RETRY_PAUSE_H_

#include "absl/status/status.h"

namespace bobbin::db::internal {

// After so many attempts, the first one counted.
absl::Status PauseBeforeRetry(int attempts);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_INTERNAL_RETRY_PAUSE_H_
