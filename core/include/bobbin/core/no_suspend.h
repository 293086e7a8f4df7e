// SPDX-License-Identifier: Apache-2.0
//
// NoSuspendScope: inside it, suspending is a bug.
//
// For stretches in which something is held that belongs to the OS thread (a C library's lock, an
// OpenSSL error queue) or in which a reference to a thread-local must stay good. A wait inside
// aborts with a message that names the thread.
//
//   Called from   any thread; must end on the thread that began it.
//   Suspends      never, and nothing inside may.
//   Cost          an increment and a decrement.

#ifndef BOBBIN_CORE_NO_SUSPEND_H_
#define BOBBIN_CORE_NO_SUSPEND_H_

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin {

class NoSuspendScope {
 public:
  NoSuspendScope() : thread_(internal::Current()) { thread_.EnterNoSuspend(); }
  NoSuspendScope(const NoSuspendScope&) = delete;
  NoSuspendScope& operator=(const NoSuspendScope&) = delete;
  ~NoSuspendScope() { thread_.LeaveNoSuspend(); }

 private:
  internal::Thread& thread_;  // Nothing suspends in between, so it stays the running one.
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_NO_SUSPEND_H_
