// SPDX-License-Identifier: Apache-2.0
//
// FutexPoller: where a carrier sleeps that does no I/O.
//
//   Called from   see poller.h.
//   Suspends      PollUntil blocks the carrier's OS thread.
//   Cost          Poll: nothing. A sleep and a wake: one futex call on each side, the cheapest
//                 there is.

#ifndef BOBBIN_SCHED_SRC_FUTEX_POLLER_H_
#define BOBBIN_SCHED_SRC_FUTEX_POLLER_H_

#include <cstdint>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/sched/poller.h>

namespace bobbin::internal {

class FutexPoller final : public Poller {
 public:
  void Poll() noexcept override {}
  void PollUntil(Deadline until) noexcept override;
  void Wake() noexcept override;
  std::string_view name() const noexcept override { return "futex"; }

 private:
  // 1 from Wake until the carrier has noticed; the futex word. Written by wakers and by the
  // carrier.
  Atomic<uint32_t> is_woken_{0};
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_FUTEX_POLLER_H_
