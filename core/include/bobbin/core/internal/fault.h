// SPDX-License-Identifier: Apache-2.0
//
// Fault: a point at which a simulation may let something go wrong that seldom does.
//
// The code that could fail asks at the point whether it does now. In the libraries the answer is a
// constant, and the question costs nothing. A module adds points of its own beside its code: a
// name is all there is to one.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          none outside bobbin::testing.
//
// Example:
//   if (HasFault(faults::kNoStack)) return false;

#ifndef BOBBIN_CORE_INTERNAL_FAULT_H_
#define BOBBIN_CORE_INTERNAL_FAULT_H_

#include <string_view>

namespace bobbin::internal {

// What goes wrong, as a person would say it; how options and reports call it.
struct FaultPoint {
  std::string_view name;
};

namespace faults {

inline constexpr FaultPoint kSpuriousWake{"a futex wait returns without cause"};
inline constexpr FaultPoint kWeakExchange{"a weak compare-exchange fails without cause"};
inline constexpr FaultPoint kNoStack{"the system gives no stack"};
inline constexpr FaultPoint kNoOsThread{"the system gives no OS thread"};

}  // namespace faults

#if defined(BOBBIN_SIMULATED)
bool HasFault(FaultPoint point) noexcept;
#else
constexpr bool HasFault(FaultPoint) noexcept { return false; }
#endif

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_FAULT_H_
