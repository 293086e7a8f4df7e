// SPDX-License-Identifier: Apache-2.0

#include "io/src/result.h"

#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::io::internal {

using bobbin::internal::Thread;
using bobbin::internal::Wake;

Result WhyStopped(Thread& self) noexcept {
  return absl::IsDeadlineExceeded(self.StopStatus()) ? kStoppedByDeadline : kStoppedByCancel;
}

absl::Status ResultStatus(Result result, std::string_view operation) {
  if (result == kStoppedByDeadline) return Thread::StatusOf(Wake::kExpired);
  if (result == kStoppedByCancel) return Thread::StatusOf(Wake::kCancelled);
  const int error = static_cast<int>(-result);
  const absl::Status status = ErrnoStatus(error, operation);
  switch (error) {
    case ETIMEDOUT:
    case EPIPE:
      return MakeStatus(absl::StatusCode::kUnavailable, MessageOf(status));
    case EMSGSIZE:
      return MakeStatus(absl::StatusCode::kInvalidArgument, MessageOf(status));
    default:
      return status;
  }
}

absl::Status ClosedStatus(std::string_view operation) {
  return MakeStatus(absl::StatusCode::kAborted,
                    fmt::format("{}: this side has closed it", operation));
}

}  // namespace bobbin::io::internal
