// SPDX-License-Identifier: Apache-2.0
//
// LightFence and HeavyFence: a fence between a store and a load for two sides, of which one pays.
//
// As if both were sequentially consistent fences, if one of the two sides says LightFence and the
// other HeavyFence: of two threads that store, fence and load what the other one stores, at least
// one sees the other's. The light one only keeps the compiler from reordering; the heavy one has
// the kernel interrupt every CPU that runs this process (membarrier). Two light ones do nothing.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          LightFence: nothing. HeavyFence: a system call, some 0.3 us here, and an
//                 interrupt of the others.

#ifndef BOBBIN_CORE_INTERNAL_ASYMMETRIC_FENCE_H_
#define BOBBIN_CORE_INTERNAL_ASYMMETRIC_FENCE_H_

#include <atomic>

#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

// Whether there is such a pair: not on old kernels, where system calls are filtered, nor where the
// thread sanitizer watches, which does not know of it. The first call takes a while.
bool HasHeavyFence() noexcept;

// REQUIRES, like the light one: HasHeavyFence().
void HeavyFence() noexcept;

inline void LightFence() noexcept {
#if defined(BOBBIN_SIMULATED)
  AtomicThreadFence(std::memory_order_seq_cst);
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_ASYMMETRIC_FENCE_H_
