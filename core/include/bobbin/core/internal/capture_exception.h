// SPDX-License-Identifier: Apache-2.0
//
// CaptureException: calls somebody else's code and keeps what it throws, for whoever asks for its
// result.
//
//   Called from   any thread.
//   Suspends      if the function does.
//   Cost          nothing, unless it throws.

#ifndef BOBBIN_CORE_INTERNAL_CAPTURE_EXCEPTION_H_
#define BOBBIN_CORE_INTERNAL_CAPTURE_EXCEPTION_H_

#include <exception>

namespace bobbin::internal {

// Calls `body()` and returns the exception that came out of it, or null.
template <typename F>
std::exception_ptr CaptureException(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_CAPTURE_EXCEPTION_H_
