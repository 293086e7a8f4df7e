// SPDX-License-Identifier: Apache-2.0
//
// UnheardEnd: the owner of virtual threads whose end nobody needs to hear of.
//
// Cheaper than a handle that is detached; and it is never gone.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_SCHED_SRC_UNHEARD_END_H_
#define BOBBIN_SCHED_SRC_UNHEARD_END_H_

#include <bobbin/core/internal/task.h>

namespace bobbin::internal {

TaskOwner& UnheardEnd() noexcept;

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_UNHEARD_END_H_
