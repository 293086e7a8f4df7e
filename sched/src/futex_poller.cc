// SPDX-License-Identifier: Apache-2.0

#include "sched/src/futex_poller.h"

#include <bobbin/core/internal/futex.h>

namespace bobbin::internal {

void FutexPoller::PollUntil(Deadline until) noexcept {
  // Pairs with the release in Wake. A wake that came first is not slept through.
  while (is_woken_.exchange(0, std::memory_order_acquire) == 0) {
    if (!FutexWait(is_woken_, 0, until.nanoseconds())) return;
  }
}

void FutexPoller::Wake() noexcept {
  is_woken_.store(1, std::memory_order_release);  // Pairs with the acquire in PollUntil.
  FutexWakeOne(is_woken_);
}

}  // namespace bobbin::internal
