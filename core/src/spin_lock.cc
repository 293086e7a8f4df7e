// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin::internal {

namespace {
// After so many looks the holder has probably been preempted. Not tuned: about a microsecond.
constexpr int kPausesBeforeYield = 64;
}  // namespace

void Backoff::Pause() noexcept {
  if (++rounds_ % kPausesBeforeYield == 0) {
    GiveUpSlice();
  } else {
    PauseSpin();
  }
}

void SpinLock::LockSlow() noexcept {
  Backoff backoff;
  do {
    // Look without writing, so that the line stays shared.
    // relaxed: the exchange decides.
    while (is_held_.load(std::memory_order_relaxed)) backoff.Pause();
    // Pairs with the release in Unlock.
  } while (is_held_.exchange(true, std::memory_order_acquire));
}

}  // namespace bobbin::internal
