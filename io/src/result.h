// SPDX-License-Identifier: Apache-2.0
//
// Result: what a socket call came to, in one number.
//
//   0 and up             a count of bytes, or a descriptor
//   -4095 to -1          an error number, negated
//   kStopped...          it was given up, for a deadline or a cancel
//
// On the way from the kernel to the caller a number is passed on where a status would have to be
// built, moved and destroyed; it becomes a status in one place.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_RESULT_H_
#define BOBBIN_IO_SRC_RESULT_H_

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

#include <bobbin/core/internal/thread.h>
#include <bobbin/core/internal/wait_state.h>

namespace bobbin::io::internal {

using Result = int64_t;

inline constexpr Result kStoppedByDeadline = -5000;
inline constexpr Result kStoppedByCancel = -5001;

inline Result StoppedBy(bobbin::internal::Wake cause) noexcept {
  return cause == bobbin::internal::Wake::kExpired ? kStoppedByDeadline : kStoppedByCancel;
}
// Why a wait of `self` may not begin. REQUIRES: it may not.
Result WhyStopped(bobbin::internal::Thread& self) noexcept;

// An interruption from outside bobbin, or a shortage of the moment: nothing has been done.
inline bool IsWorthRepeating(Result result) noexcept {
  return result == -EINTR || result == -EAGAIN;
}

// The status for a negative result: of errno the canonical code, and "<operation>: <the system's
// text>". Three exceptions. ETIMEDOUT (the peer does not answer) is UNAVAILABLE, because
// DEADLINE_EXCEEDED means that a DeadlineScope ended the wait. EPIPE (the peer has gone) is
// UNAVAILABLE like ECONNRESET, because which of the two a writer gets is chance. EMSGSIZE (no
// datagram can be so long) is INVALID_ARGUMENT.
absl::Status ResultStatus(Result result, std::string_view operation);

// "<operation>: this side has closed it", ABORTED.
absl::Status ClosedStatus(std::string_view operation);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_RESULT_H_
