// SPDX-License-Identifier: Apache-2.0

#include "core/src/exception_state.h"

#include <cxxabi.h>

namespace bobbin::internal {

[[gnu::noinline]] ExceptionGlobals* ExceptionGlobals::OfThisThread() noexcept {
  return reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals());
}

}  // namespace bobbin::internal
