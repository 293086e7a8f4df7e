// SPDX-License-Identifier: Apache-2.0
//
// SocketError: what the system says of a socket, as a status.
//
// The canonical codes of errno with two exceptions. ETIMEDOUT (the peer does not answer) is UNAVAILABLE,
// because DEADLINE_EXCEEDED means that a DeadlineScope ended the wait. EPIPE (the peer has gone) is
// UNAVAILABLE like ECONNRESET, because which of the two a writer gets is chance.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_ERROR_H_
#define BOBBIN_IO_SRC_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

namespace bobbin::io::internal {

// "<operation>: <the system's text>". REQUIRES: error > 0.
absl::Status SocketError(int error, std::string_view operation);

// "<operation>: this side has closed it", ABORTED.
absl::Status ClosedError(std::string_view operation);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_ERROR_H_
