// SPDX-License-Identifier: Apache-2.0
//
// RingPoller: a carrier's poller on an io_uring.
//
// Virtual threads prepare entries while they run; one enter a turn submits them and collects what
// has completed, and when the carrier has nothing else to do the same enter sleeps. Deadlines are
// not the ring's business: the carrier's timers ask for a cancel.
//
// Waking. A carrier that sleeps in its ring wakes when a completion is posted. From Linux 6.13 on,
// anybody may post one by a message to the ring. Before that, a read of an eventfd is always in
// flight, and a write to the eventfd completes it. Either is kept until it is taken, so a wake that
// comes before the sleep ends that sleep.
//
// Not sleeping. Where sleeps are short (short_sleeps.h) the carrier first looks for some
// microseconds whether something has come; the ring's flags, which it reads, need no system call.
// To others it sleeps meanwhile, and a message to it is seen like a completion.
//
// Waiting for room. A send that finds none is not left to the kernel to wait for. When the peer has
// finished (RDHUP), the kernel takes that for a reason to try a send again, a hundred times in a
// row, and then gives it to a thread of its own, which blocks; there is one for all of a ring, and
// any peer could keep it. So a send only tries (kCall). If there is no room, a one-shot poll says
// when there is (kLook), and the send is made anew. If that poll says no more than RDHUP, a
// multishot poll does it (kWatch): it says RDHUP once, and then only what changes; it is taken back
// when there is room.
//
// Pipes, and batches of datagrams. A poll says when one is ready, and the carrier makes the call
// itself: not every kernel reads a pipe without a thread of its own, a write is to be an error, not
// a signal, when nobody reads any more, and of batches rings know nothing.
//
// Pooled receives. The kernel chooses a buffer when bytes have come (kCall). Where it finds none,
// those that came back from other carriers are given to it; if there are none of these, a poll says
// when there are bytes (kLook), and the virtual thread receives them when its turn has come, into a
// buffer that it then takes or allocates: what was received early would keep more of them.
//
// Datagrams that are received ahead. One request brings one after the other, each in a buffer that
// the kernel chooses. It ends by itself where there is no buffer, for an empty datagram, and for
// whatever the kernel finds; whoever wants more starts it anew, or receives with a call.
//
// Sends without a copy. One record, one request after the other: with each the kernel takes a part
// of the bytes (kCall), and the next one follows at once, or when there is room (kLook, kWatch).
// Each that took some has one more completion, when the kernel has let go of them: for TCP, when
// the peer has acknowledged them. The operation ends when all of these have come. A request to give
// up ends the sending, not the waiting: the bytes are the caller's again when the call returns.
//
//   Called from   the carrier's OS thread; Wake by anyone, until the carrier has ended.
//   Suspends      PollUntil blocks the OS thread.

#ifndef BOBBIN_IO_SRC_RING_POLLER_H_
#define BOBBIN_IO_SRC_RING_POLLER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

#include <bobbin/core/internal/counter.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/io/io.h>

#include "io/src/file_descriptor.h"
#include "io/src/io_poller.h"
#include "io/src/ring.h"
#include "io/src/short_sleeps.h"

namespace bobbin::io::internal {

class RingPoller final : public IoPoller {
 public:
  explicit RingPoller(const UringOptions& options) : options_(options) {}
  ~RingPoller() override;

  // --- Poller

  absl::Status Start() override;
  void Poll() noexcept override;
  void PollUntil(Deadline until) noexcept override;
  void Wake() noexcept override;
  size_t in_flight() const noexcept override { return in_flight_; }
  PollerStatistics Statistics() const noexcept override;
  void CancelAll() noexcept override;
  void Stop() noexcept override;
  std::string_view name() const noexcept override { return "io_uring"; }

  // --- IoPoller

  bool DoOrStart(ParkedOp& op) noexcept override;
  void StartAccept(AcceptOp& op) noexcept override;
  bool CanReceiveAhead() noexcept override;
  void StartReceiveAhead(DatagramOp& op) noexcept override;
  bool is_stopping() const noexcept override { return is_stopping_; }
  bool does_zero_copy() const noexcept override { return true; }

 private:
  void EndOp(Op& op) noexcept override;
  bool DoOrStartPooled(ParkedOp& op) noexcept;
  void AttachPool(BufferPool& pool) override { pool.Attach(ring_); }

  enum class DoorbellState : uint8_t { kUnused, kDown, kArmed };

  // Hands `op` to the kernel, soon, beginning with `step`.
  void Start(Op& op, Op::Step step) noexcept;
  // Has the kernel do `step` for an operation that was started.
  void Submit(Op& op, Op::Step step) noexcept;
  // Whether a send may be a system call of its own, which is shorter than the way through the ring,
  // without that others wait for it: nobody is ready, nothing waits to be submitted or has
  // completed, and there were not too many such calls since the last poll. Counts as one.
  bool TakeTurnForCall(const ParkedOp& op) noexcept;
  // Prepares what the record says. False: no room.
  bool Prepare(Op& op) noexcept;
  bool PrepareCancel(Op& op) noexcept;
  // What had no room before.
  void PrepareDeferred() noexcept;

  void Sleep(Deadline until) noexcept;
  // Looks whether the sleep that is due has ended before it begins; true: there is no need for it.
  bool LookForEnd(Deadline until) noexcept;
  uint32_t TakeCompletions() noexcept;
  void Dispatch(const io_uring_cqe& completion) noexcept;
  void Finish(Op& op, int32_t result) noexcept;
  // The next step of one that waits for room, whose step has ended with `result`.
  void AfterStep(Op& op, int32_t result) noexcept;
  // The same for a pooled receive, which may have been lent a buffer.
  void AfterPooled(Op& op, const io_uring_cqe& completion) noexcept;
  // Hands a datagram on, or the end of its operation.
  void AfterDatagram(DatagramOp& op, const io_uring_cqe& completion) noexcept;
  // The same as AfterStep for a send without a copy.
  void AfterZeroCopy(Op& op, const io_uring_cqe& completion) noexcept;
  // Whether there is nothing left to give up.
  static bool IsEnding(const Op& op) noexcept;
  // Sends no more, and finishes it once the kernel holds nothing of it.
  void EndZeroCopy(Op& op, int32_t error) noexcept;
  // Ends the watch if there is room.
  void OnWatched(Op& op, int32_t result) noexcept;

  // Posts a completion to the ring; from any thread. Negative: an error number.
  int SendMessage() noexcept;
  void ArmDoorbell() noexcept;
  bool MustNotSleep() const noexcept {
    return !deferred_.empty() || doorbell_state_ == DoorbellState::kDown;
  }
  void CheckOwner() const noexcept;

  Ring ring_;
  size_t in_flight_ = 0;  // Operations without their last completion, deferred ones included.
  uint16_t generation_ = 0;
  uint16_t calls_ = 0;  // Made by virtual threads themselves, since the last poll.
  bool is_stopping_ = false;
  ShortSleeps short_sleeps_;
  // Records that wait for room: to be started, or to be cancelled.
  bobbin::internal::IntrusiveList<Op> deferred_;
  // Written here, read by everyone.
  bobbin::internal::Counter deferred_ever_;
  bobbin::internal::Counter small_queues_;

  const UringOptions options_;
  DoorbellState doorbell_state_ = DoorbellState::kUnused;
  FileDescriptor doorbell_;
  uint64_t doorbell_count_ = 0;  // Where the kernel puts what it read from the doorbell.
  uintptr_t owner_ = 0;          // The OS thread.
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_RING_POLLER_H_
