// SPDX-License-Identifier: Apache-2.0
//
// The floating-point environment: every virtual thread starts with the default one.
//
// The switch itself saves and restores the control words, so a rounding mode stays with the virtual
// thread that set it. What is left is the start: a new thread must not inherit the mode of whoever
// happened to run before on that carrier.
//
//   Called from   the dispatcher, when a virtual thread begins.
//   Suspends      never.
//   Cost          two stores and a compare while the environment is the default one.

#ifndef BOBBIN_CORE_SRC_FLOATING_POINT_H_
#define BOBBIN_CORE_SRC_FLOATING_POINT_H_

#include <cfenv>
#include <cstdint>

namespace bobbin::internal {

inline void EnsureDefaultFloatingPoint() noexcept {
#if defined(__x86_64__)
  // Control bits only: the six low ones of MXCSR are sticky exception flags.
  constexpr uint32_t kMxcsrControl = 0xffc0;
  constexpr uint32_t kMxcsrDefault = 0x1f80;
  constexpr uint16_t kX87Default = 0x037f;
  uint32_t mxcsr;
  uint16_t x87;
  __asm__ __volatile__("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
  if ((mxcsr & kMxcsrControl) == kMxcsrDefault && x87 == kX87Default) return;
#endif
  std::fesetenv(FE_DFL_ENV);
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_SRC_FLOATING_POINT_H_
