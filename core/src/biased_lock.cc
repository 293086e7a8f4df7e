// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/biased_lock.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin::internal {

void BiasedLock::LockAsOwner() noexcept {
  lock_.Lock();
  if (!may_be_biased_ || ++uses_ < kUsesToBias) return;
  uses_ = 0;
  // relaxed: read with the lock, or by the owner itself.
  is_revoked_.store(false, std::memory_order_relaxed);
}

void BiasedLock::AwaitOwnerSlow() noexcept {
  Backoff backoff;
  // Pairs with the releases of the owner.
  while (is_inside_.load(std::memory_order_acquire)) backoff.Pause();
}

}  // namespace bobbin::internal
