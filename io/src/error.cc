// SPDX-License-Identifier: Apache-2.0

#include "io/src/error.h"

#include <cerrno>

#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::io::internal {

absl::Status SocketError(int error, std::string_view operation) {
  const absl::Status status = ErrnoStatus(error, operation);
  if (error != ETIMEDOUT && error != EPIPE) return status;
  return MakeStatus(absl::StatusCode::kUnavailable, MessageOf(status));
}

absl::Status ClosedError(std::string_view operation) {
  return MakeStatus(absl::StatusCode::kAborted,
                    fmt::format("{}: this side has closed it", operation));
}

}  // namespace bobbin::io::internal
