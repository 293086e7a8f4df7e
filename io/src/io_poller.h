// SPDX-License-Identifier: Apache-2.0
//
// IoPoller: a poller that does I/O. The seam between sockets and the way the kernel is asked.
//
// Sockets describe an operation in a record (op.h) and have it done here. A ring hands it to the
// kernel and waits for a completion; epoll makes the system call itself, as often as it takes, and
// waits in between. A new operation is a code in op.h and a case in both.
//
//   Called from   the poller's own OS thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_IO_POLLER_H_
#define BOBBIN_IO_SRC_IO_POLLER_H_

#include <cstdint>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/counter.h>
#include <bobbin/sched/poller.h>

#include "io/src/buffer_pool.h"
#include "io/src/op.h"

namespace bobbin::io::internal {

class IoPoller : public Poller {
 public:
  // Does `op`, if that takes one system call, does not wait and delays nobody: true, and it has its
  // result. Otherwise starts it, and it completes in a later Poll, never in this call.
  [[nodiscard]] virtual bool DoOrStart(ParkedOp& op) noexcept = 0;
  // Starts it. It completes in later Polls.
  virtual void StartAccept(AcceptOp& op) noexcept = 0;
  // Whether it can receive datagrams ahead of those who ask, and has a buffer for the first.
  virtual bool CanReceiveAhead() noexcept { return false; }
  // Does so from now on. REQUIRES: CanReceiveAhead() has just said so.
  virtual void StartReceiveAhead(DatagramOp&) noexcept {}
  // Asks for an end of `op`, which still completes. REQUIRES: it was started here and has not had
  // its last completion.
  void CancelOp(Op& op) noexcept;
  // Has the poller's carrier do that, if `op` has not ended by then; OnPostedCancel follows in any
  // case. Called from: any thread that knows `op` cannot end before this returns, once.
  void PostCancel(LastingOp& op) noexcept;
  // Whether CancelAll was called: nothing may be started any more.
  virtual bool is_stopping() const noexcept = 0;

  // Whether it can have bytes sent without that the kernel copies them.
  virtual bool does_zero_copy() const noexcept { return false; }

  void CountAcceptPause() noexcept { accept_pauses_.add(1); }
  // Called from: any thread.
  uint64_t accept_pauses() const noexcept { return accept_pauses_.value(); }
  // A send that was to do without a copy.
  void CountCopiedSend() noexcept { copied_sends_.add(1); }
  uint64_t copied_sends() const noexcept { return copied_sends_.value(); }

  // The buffers of pooled receives, from the first of these on.
  BufferPool& Pool() {
    if (__builtin_expect(pool_ == nullptr, 0)) MakePool();
    return *pool_;
  }

 protected:
  // At the end; `ring` is what the pool was attached to, if it was.
  void ClosePool(Ring* ring) noexcept;
  // As MakeCall, for a pooled receive.
  int32_t CallPooled(const Op& op) noexcept;
  // Does what was posted; in each poll and each sleep, behind what may have slept, and at the end.
  // Wake is heard by a sleep that begins later, too, so nothing that was posted waits.
  void TakePosted() noexcept {
    // relaxed: who has posted wakes the poller behind it.
    if (__builtin_expect(posted_.load(std::memory_order_relaxed) != nullptr, 0)) CancelPosted();
  }
  // The same, the first time that it is asked for.
  virtual void EndOp(Op& op) noexcept = 0;
  virtual void AttachPool(BufferPool&) {}

 private:
  void CancelPosted() noexcept;
  void MakePool();

  BufferPool* pool_ = nullptr;
  bobbin::internal::Counter accept_pauses_;
  bobbin::internal::Counter copied_sends_;
  // A stack: pushed to by any thread, emptied by the carrier.
  bobbin::internal::Atomic<LastingOp*> posted_{nullptr};
};

// The poller of the calling virtual thread's carrier. Aborts, and says what to do, if that cannot
// do I/O. Nobody keeps the result over a wait.
IoPoller& CurrentIoPoller() noexcept;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_IO_POLLER_H_
