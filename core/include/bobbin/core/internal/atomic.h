// SPDX-License-Identifier: Apache-2.0
//
// Atomic: std::atomic, under a name of our own.
//
// Whatever OS threads share without a lock is one of these, so that there is one place where every
// access of such a word can be met. In the libraries it is the standard library's and nothing else;
// in bobbin::testing each access is a step of a simulation (simulated_atomic.h).
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          that of std::atomic: it is one.

#ifndef BOBBIN_CORE_INTERNAL_ATOMIC_H_
#define BOBBIN_CORE_INTERNAL_ATOMIC_H_

#include <atomic>

#if defined(BOBBIN_SIMULATED)

#include <bobbin/core/internal/simulated_atomic.h>

#else

namespace bobbin::internal {

template <typename T>
using Atomic = std::atomic<T>;

inline void AtomicThreadFence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

}  // namespace bobbin::internal

#endif

#endif  // BOBBIN_CORE_INTERNAL_ATOMIC_H_
