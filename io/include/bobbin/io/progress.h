// SPDX-License-Identifier: Apache-2.0
//
// Progress: how far a call came that may end in the middle.
//
// For who goes on later, or reports what has been done; everybody else uses the calls that return a
// status alone.
//
//   Called from   any thread.
//   Suspends      never.
//
// Example:
//   DeadlineScope scope(std::chrono::seconds(1));
//   const bobbin::io::Progress written = peer.WriteCounted(bytes);
//   if (absl::IsDeadlineExceeded(written.status)) rest = bytes.subspan(written.bytes);

#ifndef BOBBIN_IO_PROGRESS_H_
#define BOBBIN_IO_PROGRESS_H_

#include <cstddef>

#include "absl/status/status.h"

namespace bobbin::io {

struct Progress {
  size_t bytes = 0;     // So many were moved, exactly, whatever the status is.
  absl::Status status;  // OK: all of them.
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_PROGRESS_H_
