// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/status.h>

#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

#include <bobbin/core/check.h>

namespace bobbin {

absl::Status MakeStatus(absl::StatusCode code, std::string_view message) {
  return absl::Status(code, absl::string_view(message.data(), message.size()));
}

absl::Status ErrnoStatus(int error_number, std::string_view operation) {
  BOBBIN_CHECK(error_number > 0, "an errno value is positive");
  char buffer[128];
  const char* const text = strerror_r(error_number, buffer, sizeof(buffer));
  std::string message(operation);
  message += ": ";
  message += text;
  // The system writes "Connection refused"; messages are in lower case.
  char& initial = message[operation.size() + 2];
  if (initial >= 'A' && initial <= 'Z') initial = static_cast<char>(initial - 'A' + 'a');
  return MakeStatus(absl::ErrnoToStatusCode(error_number), message);
}

}  // namespace bobbin
