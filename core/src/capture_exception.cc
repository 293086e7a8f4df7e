// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/capture_exception.h>

namespace bobbin::internal {

std::exception_ptr CaptureException(void (*run)(void*), void* argument) noexcept {
  try {
    run(argument);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace bobbin::internal
