// SPDX-License-Identifier: Apache-2.0
//
// EpollPoller: a carrier's poller on an epoll, where there is no io_uring.
//
// An operation is a system call that does not wait, made at once, and again whenever its descriptor
// may be ready. In between its thread is parked and the record is in the descriptor's watch
// (watch_table.h). A descriptor is made known to the kernel when somebody first waits for it on
// this carrier, edge-triggered, once for reading and once more for writing, and stays known until
// it is closed: a wait costs no system call but the one that found nothing.
//
// Why no wake-up is lost. The try that found nothing and the joining of the watch are one step for
// the poller: both happen on the carrier, which takes no events in between. So what comes after the
// try is told by an event that is taken after the joining, and finds the record. A descriptor that
// is made known after the try is reported at once if it is ready by then.
//
// Why a stale event does no harm. An event completes nothing; it makes the carrier try once more,
// which finds what is there, or nothing. So it may be of bytes that another carrier has read, or of
// a closed socket that lives on in another process; the latter is told by its generation and
// dropped. Nor is a descriptor taken for known because one with the same number was: serials tell.
//
// Why a read may be left out. A read of a plain TCP stream that found less than it had room for
// has found the end of what was there; whatever comes later has its own event, or is reported
// when the descriptor is made known. The next read then waits without a try, which on a busy
// server saves one call of three. Not so once an end, an error or urgent data was reported, of
// which there is no second event.
//
// Fairness. A virtual thread that always finds something never parks; after a number of calls in a
// row its next one is put off until the next poll, and others run.
//
// Rejected. Making the descriptor known anew at each wait (EPOLLONESHOT): one system call more a
// wait. Letting the woken thread make the call: a thread that is woken in vain costs two switches.
//
//   Called from   the carrier's OS thread; Wake by anyone, until the carrier has ended.
//   Suspends      PollUntil blocks the OS thread.

#ifndef BOBBIN_IO_SRC_EPOLL_POLLER_H_
#define BOBBIN_IO_SRC_EPOLL_POLLER_H_

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

#include <bobbin/core/internal/intrusive_list.h>

#include "io/src/file_descriptor.h"
#include "io/src/io_poller.h"
#include "io/src/limits.h"
#include "io/src/watch_table.h"

namespace bobbin::io::internal {

class EpollPoller final : public IoPoller {
 public:
  // `reason` is why there is no ring; empty if nobody wanted one.
  explicit EpollPoller(std::string reason) : reason_(std::move(reason)) {}
  ~EpollPoller() override;

  // --- Poller

  absl::Status Start() override;
  void Poll() noexcept override;
  void PollUntil(Deadline until) noexcept override;
  void Wake() noexcept override;
  size_t in_flight() const noexcept override { return in_flight_; }
  PollerStatistics Statistics() const noexcept override {
    return {.accept_pauses = accept_pauses(), .copied_sends = copied_sends()};
  }
  void CancelAll() noexcept override;
  void Stop() noexcept override;
  std::string_view name() const noexcept override { return "epoll"; }
  std::string_view reason() const noexcept override { return reason_; }

  // --- IoPoller

  bool DoOrStart(ParkedOp& op) noexcept override;
  void StartAccept(AcceptOp& op) noexcept override;
  bool is_stopping() const noexcept override { return is_stopping_; }

 private:
  void EndOp(Op& op) noexcept override;

  void Begin(Op& op) noexcept;
  void Defer(Op& op) noexcept;
  // Whether the thread of `op` may make one more call before others run. Counts as one.
  bool TakeTurnForCall(const ParkedOp& op) noexcept;

  // Makes the call of `op`: its result, or -EAGAIN if it must wait.
  int32_t Try(ParkedOp& op) noexcept;
  int32_t TryReceive(const ParkedOp& op) noexcept;
  // Tries `op`, which waits, and ends it if that came to something, or if the events say that
  // nothing will.
  void TryAgain(Op& op, uint32_t events) noexcept;
  // The same for one that brings connections: takes those that are there, up to a number.
  void TakeConnections(AcceptOp& op) noexcept;
  void TryDeferred() noexcept;
  void TryDeferred(Op& op) noexcept;
  void Finish(Op& op, int32_t result) noexcept;

  // The watch of the operation's descriptor.
  Watch& WatchOf(const Op& op) noexcept;
  // Puts `op` into its watch: 0, or an error number.
  int32_t Await(Op& op) noexcept;
  void LeaveWatch(Op& op) noexcept;
  int32_t MakeKnown(Watch& watch, int fd, uint32_t interest) noexcept;

  // How many events have come by `until`, or sooner; negative on an error.
  int Sleep(Deadline until) noexcept;
  void TakeEvents(int taken) noexcept;
  void Dispatch(const epoll_event& event) noexcept;
  void CheckOwner() const noexcept;

  FileDescriptor epoll_;
  size_t in_flight_ = 0;  // Started and not ended.
  size_t waiting_ = 0;    // Of them, those in a watch.
  bool is_stopping_ = false;
  uint16_t calls_ = 0;  // Made in a row by one thread,
  uint32_t picks_ = 0;  // the one that was picked as this number.
  WatchTable watches_;
  // To be tried in the next poll, or to be given up there.
  bobbin::internal::IntrusiveList<Op> deferred_;

  const std::string reason_;
  FileDescriptor doorbell_;
  uintptr_t owner_ = 0;          // The OS thread.
  bool has_nanoseconds_ = true;  // Whether the kernel can sleep for less than a millisecond.
  std::array<epoll_event, kEventsPerPoll> events_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_EPOLL_POLLER_H_
