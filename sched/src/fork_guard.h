// SPDX-License-Identifier: Apache-2.0
//
// ForkGuard: what is left of the library in a process that `fork` has made of one that uses it.
//
// Such a child has a copy of all memory, but of all threads only the one that forked, and no rings.
// It may call exec, exit and _exit. What it must not do would wait for threads that it does not
// have, and in the worst case speak with the kernel in its parent's name. So it aborts, and says
// why: a wait of the thread that has forked, a spawn from outside the carriers, the start and the
// join of an OS thread, and a carrier that would go on with its other virtual threads. A runtime
// that is destroyed there is left as it is.
//
// A process without threads of ours may fork as it likes.
//
//   States   not forked -> forked, in the child, before `fork` returns there. Nothing leads back.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          a load.

#ifndef BOBBIN_SCHED_SRC_FORK_GUARD_H_
#define BOBBIN_SCHED_SRC_FORK_GUARD_H_

#include <cstdint>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

class ForkGuard {
 public:
  static bool IsForked() noexcept { return is_forked_; }
  static void CheckNotForked() noexcept {
    BOBBIN_CHECK(!IsForked(),
                 "this process was made by fork of one that uses bobbin: it may only call exec, "
                 "exit or _exit");
  }

  // An OS thread of the library is about to start; one has been joined.
  static void ThreadStarts() noexcept;
  static void ThreadEnded() noexcept;

 private:
  static void AfterForkInChild() noexcept;

  // Set in the child, while it has one thread; in a process that has more it is never written.
  inline static bool is_forked_ = false;
  static Atomic<uint32_t> threads_;  // Counted by those who start and join; read in the child.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_FORK_GUARD_H_
