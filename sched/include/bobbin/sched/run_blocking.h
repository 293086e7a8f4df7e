// SPDX-License-Identifier: Apache-2.0
//
// RunBlocking: one call that blocks, without a pool of your own.
//
// A virtual thread's body runs on its runtime's default pool (named "blocking"), and the virtual
// thread parks meanwhile. A platform or foreign thread may block: it runs the body itself. For work
// of one kind that may pile up, make a PlatformPool, so that it cannot hold up other kinds.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      a virtual thread, until the body has run.
//   Cancellation  as PlatformPool::RunBlocking. A thread that runs the body itself first looks
//                 whether it is to stop.
//   Errors        as PlatformPool::RunBlocking.
//   Cost          a round trip between two OS threads; on a thread that may block, a call.
//
// Example:
//   BOBBIN_RETURN_IF_ERROR(bobbin::RunBlocking([&] { return SyncFolder(path); }));

#ifndef BOBBIN_SCHED_RUN_BLOCKING_H_
#define BOBBIN_SCHED_RUN_BLOCKING_H_

#include <utility>

#include <bobbin/core/cancel.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/blocking_call.h>
#include <bobbin/sched/platform_pool.h>

namespace bobbin {

template <typename F>
internal::BlockingResult<F> RunBlocking(F&& body) {
  if (PlatformPool* const pool = internal::PoolUnlessMayBlock(internal::BlockingLane::kGeneral)) {
    return pool->RunBlocking(std::forward<F>(body));
  }
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  return internal::CallBlocking(body);
}

}  // namespace bobbin

#endif  // BOBBIN_SCHED_RUN_BLOCKING_H_
