// SPDX-License-Identifier: Apache-2.0
//
// CurrentRuntime: which runtime and which carrier the calling thread belongs to.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_CURRENT_RUNTIME_H_
#define BOBBIN_SCHED_SRC_CURRENT_RUNTIME_H_

#include <bobbin/sched/internal/blocking_call.h>

namespace bobbin {

class PlatformPool;
class Runtime;

namespace internal {

// A virtual thread's or carrier's own; a pool thread's is the one its pool was made in. Else null.
Runtime* CurrentRuntimeOrNull() noexcept;
// The runtime's own pool for such calls. Made at its first use.
PlatformPool& PoolOf(Runtime& runtime, BlockingLane lane);

}  // namespace internal

}  // namespace bobbin

#endif  // BOBBIN_SCHED_SRC_CURRENT_RUNTIME_H_
