// SPDX-License-Identifier: Apache-2.0
//
// Atomic: std::atomic for a simulation: each access is a step, and counts as order between threads.
//
// Code that shares flags and numbers of its own between threads uses it in the place of
// std::atomic, for instance by an alias that a test build turns. A simulation does not see what a
// std::atomic orders, and would take data that it protects for unprotected.
//
//   Called from   the threads of a simulation; outside, it is a plain variable.
//   Suspends      each access may switch to another simulated OS thread.
//
// Example:
//   bobbin::testing::Atomic<bool> is_over{false};

#ifndef BOBBIN_TESTING_ATOMIC_H_
#define BOBBIN_TESTING_ATOMIC_H_

#include <bobbin/core/internal/atomic.h>

namespace bobbin::testing {

template <typename T>
using Atomic = bobbin::internal::Atomic<T>;

}  // namespace bobbin::testing

#endif  // BOBBIN_TESTING_ATOMIC_H_
