// SPDX-License-Identifier: Apache-2.0
//
// CaptureException: calls somebody else's code and keeps what it throws, for whoever asks for its
// result.
//
//   Called from   any thread.
//   Suspends      if the function does.
//   Cost          a call through a pointer.

#ifndef BOBBIN_CORE_INTERNAL_CAPTURE_EXCEPTION_H_
#define BOBBIN_CORE_INTERNAL_CAPTURE_EXCEPTION_H_

#include <exception>
#include <memory>
#include <type_traits>

namespace bobbin::internal {

// Calls `run(argument)` and returns the exception that came out of it, or null.
std::exception_ptr CaptureException(void (*run)(void*), void* argument) noexcept;

// The same for any callable.
template <typename F>
std::exception_ptr CaptureException(F&& body) noexcept {
  using Function = std::remove_reference_t<F>;
  return CaptureException([](void* function) { (*static_cast<Function*>(function))(); },
                          std::addressof(body));
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_CAPTURE_EXCEPTION_H_
