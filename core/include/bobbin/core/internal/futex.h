// SPDX-License-Identifier: Apache-2.0
//
// Futex: the kernel's wait on a word, for OS threads.
//
//   Called from   threads that may block: platform and foreign ones, and carriers in their poller.
//   Suspends      FutexWait blocks.

#ifndef BOBBIN_CORE_INTERNAL_FUTEX_H_
#define BOBBIN_CORE_INTERNAL_FUTEX_H_

#include <cstdint>

#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

// Waits while `word` is `value`, until `deadline` (absolute, monotonic, in nanoseconds; the largest
// value means for ever). Returns false if the deadline passed; true otherwise, also without cause.
bool FutexWait(Atomic<uint32_t>& word, uint32_t value, int64_t deadline) noexcept;

// Wakes one thread that waits on `word`.
void FutexWakeOne(Atomic<uint32_t>& word) noexcept;

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_FUTEX_H_
