// SPDX-License-Identifier: Apache-2.0
//
// WriteError: text to standard error, from a process that is about to end.
//
//   Called from   anywhere, also a signal's handler.
//   Suspends      never; blocks the OS thread.
//   Errors        ignored: there is nobody left to tell.

#ifndef BOBBIN_CORE_SRC_STANDARD_ERROR_H_
#define BOBBIN_CORE_SRC_STANDARD_ERROR_H_

#include <unistd.h>

#include <string_view>

namespace bobbin::internal {

inline void WriteError(std::string_view text) noexcept {
  const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_SRC_STANDARD_ERROR_H_
