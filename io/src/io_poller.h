// SPDX-License-Identifier: Apache-2.0
//
// IoPoller: a poller that does I/O. The seam between sockets and the way the kernel is asked.
//
// Sockets describe an operation in a record (op.h) and start it here; they know nothing of rings.
//
//   Called from   the poller's own OS thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_IO_POLLER_H_
#define BOBBIN_IO_SRC_IO_POLLER_H_

#include <cstdint>

#include <bobbin/core/internal/counter.h>
#include <bobbin/sched/poller.h>

#include "io/src/op.h"

namespace bobbin::io::internal {

class IoPoller : public Poller {
 public:
  // Hands `op` to the kernel, soon. It completes in a later Poll, never in this call.
  virtual void StartOp(Op& op) noexcept = 0;
  // Asks the kernel to give up `op`, which still completes. REQUIRES: it was started here and has
  // not had its last completion.
  virtual void CancelOp(Op& op) noexcept = 0;
  // Whether a virtual thread may make a system call of its own instead of an operation, without
  // that others wait for it: nothing waits to be submitted or has completed, and there were not too
  // many such calls since the last poll. Counts as one.
  virtual bool TakeTurnForCall() noexcept = 0;
  // Whether CancelAll was called: nothing may be started any more.
  virtual bool is_stopping() const noexcept = 0;

  void CountAcceptPause() noexcept { accept_pauses_.add(1); }
  // Called from: any thread.
  uint64_t accept_pauses() const noexcept { return accept_pauses_.value(); }

 private:
  bobbin::internal::Counter accept_pauses_;
};

// The poller of the calling virtual thread's carrier. Aborts, and says what to do, if that cannot
// do I/O. Nobody keeps the result over a wait.
IoPoller& CurrentIoPoller() noexcept;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_IO_POLLER_H_
