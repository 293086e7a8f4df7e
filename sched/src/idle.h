// SPDX-License-Identifier: Apache-2.0
//
// IdleCarriers: whom to wake when there is more work than its carrier can do.
//
//   asleep      carriers in their pollers; a count, kept by themselves, without those that doze
//               for kSpareNanoseconds: they look again by themselves (see loot.h)
//   the token   held by at most one carrier that was woken to search and has not found anything yet
//
// Rule. Whoever has work to share wakes one sleeper, unless the token is out: then somebody is
// already looking. A wake costs its sender microseconds, a useless one as much.
//
// Rule. The carrier that was woken gives the token back when it has found something or nothing; if
// it found work and left more, it wakes the next one.
//
// Nothing is lost when a chance to share is missed: work belongs to a carrier that will run it.
//
//   Called from   carriers and the monitor.
//   Suspends      never.
//   Cost          two loads of words that seldom change, until there is somebody to wake.

#ifndef BOBBIN_SCHED_SRC_IDLE_H_
#define BOBBIN_SCHED_SRC_IDLE_H_

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::internal {

class IdleCarriers {
 public:
  bool has_sleepers() const noexcept {
    return asleep_.load(std::memory_order_relaxed) != 0;  // relaxed: a hint.
  }
  int asleep() const noexcept { return asleep_.load(); }
  void FellAsleep() noexcept { asleep_.fetch_add(1); }
  void WokeUp() noexcept { asleep_.fetch_sub(1); }

  // Takes the token, if it is there.
  bool TryTakeToken() noexcept {
    // relaxed: the exchange decides.
    return !is_token_out_.load(std::memory_order_relaxed) && !is_token_out_.exchange(true);
  }
  void GiveTokenBack() noexcept { is_token_out_.store(false); }

 private:
  // Written by carriers as they sleep and wake.
  alignas(kCacheLineBytes) Atomic<int> asleep_{0};
  // Written by whoever wakes, and by the woken.
  Atomic<bool> is_token_out_{false};
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_IDLE_H_
