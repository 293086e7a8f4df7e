// SPDX-License-Identifier: Apache-2.0
//
// CurrentPoller: how I/O finds the poller of the carrier that it runs on.
//
//   Called from   virtual threads. Nobody keeps the result over a wait.
//   Suspends      never.
//   Cost          three loads.

#ifndef BOBBIN_SCHED_INTERNAL_CURRENT_POLLER_H_
#define BOBBIN_SCHED_INTERNAL_CURRENT_POLLER_H_

#include <bobbin/sched/poller.h>

namespace bobbin::internal {

// The poller of the calling virtual thread's carrier; null on other threads.
Poller* CurrentPoller() noexcept;

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_CURRENT_POLLER_H_
