// SPDX-License-Identifier: Apache-2.0
//
// Stop signals: signals of the process that ask runtimes to stop.
//
// The handler counts, and wakes an OS thread of its own, which does the rest. That one lives as
// long as the process.
//
//   Called from   any thread.
//   Suspends      while another thread is in one of them.

#ifndef BOBBIN_SCHED_SRC_STOP_SIGNALS_H_
#define BOBBIN_SCHED_SRC_STOP_SIGNALS_H_

#include <vector>

namespace bobbin::internal {

class LifecycleCore;

// From now on each of `signals` requests the stop of `lifecycle`, too.
void WatchStopSignals(const std::vector<int>& signals, LifecycleCore& lifecycle);
// No signal asks for it any more; it is not touched from here on.
void ForgetStopSignals(LifecycleCore& lifecycle) noexcept;

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_STOP_SIGNALS_H_
