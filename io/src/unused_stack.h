// SPDX-License-Identifier: Apache-2.0
//
// ReleaseUnusedStack: gives what a virtual thread's stack has touched below the caller back to the
// system, for a thread that was deep in calls and is about to wait for long.
//
//   Called from   any thread; only a virtual one has something to give back.
//   Suspends      never.
//   Cost          a system call, and a page fault for each page that is needed again.

#ifndef BOBBIN_IO_SRC_UNUSED_STACK_H_
#define BOBBIN_IO_SRC_UNUSED_STACK_H_

namespace bobbin::io::internal {

void ReleaseUnusedStack() noexcept;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_UNUSED_STACK_H_
