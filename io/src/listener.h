// SPDX-License-Identifier: Apache-2.0
//
// Listener: a listening socket, the connections that came and nobody has taken yet, and who waits.
//
// Somebody must be asking the kernel: the acceptor. As a rule that is a poller, in which one
// operation brings connection after connection, wanted or not, up to a bound. The operation belongs
// to the carrier of the virtual thread that found nobody asking; all others wait in the queue,
// wherever they run. An OS thread that finds nobody asking asks for itself, with a blocking call.
//
// Rejected. An operation in each carrier's poller: a connection would wake all of them (or one that
// the kernel chooses, with EPOLLEXCLUSIVE), and who has waited longest would not be served first.
// Spreading the load is the part of whoever spawns for the connection.
//
// The acceptor
//
//   kNobody      nobody asks; then nobody waits, or somebody has been told to see about it (kRetry)
//   kPoller      an operation is in flight
//   kStopping    the same, and the kernel was asked to end it: enough connections are queued
//   kOsThread    an OS thread is in accept(2)
//   kPausing     the process is out of descriptors or memory; a thread sleeps before it asks again
//
// Transitions
//
//   kNobody   -> kPoller      a virtual thread that needs a connection, or finds few queued ones
//   kNobody   -> kOsThread  an OS thread that needs a connection
//   kPoller     -> kStopping  the carrier, when many are queued
//   kPoller, kStopping -> kNobody, kPoller, kPausing  the carrier, with the operation's last
//   completion kOsThread -> kNobody    the OS thread kNobody, kPoller -> kPausing  whoever meets
//   the shortage; kPausing -> kNobody  the one who slept
//
// Why nobody waits in vain. A thread that joins the queue has seen an acceptor, or has become the
// one who starts it, under the same lock. Each transition to kNobody either finds no waiter or
// tells one to see about it; a thread so told that goes away without (its deadline has come) tells
// the next one: Leave.
//
// Why no connection is lost. A connection goes to a waiter whose wait it ended, who then returns it
// whatever else happens; or to the queue. Closing empties the queue, and what comes after that is
// closed.
//
// Users are counted as in socket.h, here under the lock: threads in Accept, the operation, the
// closer, and a request to end the operation that is on its way to the carrier.
//
//   Called from   any thread; OnAccept by the poller's carrier.
//   Suspends      Accept.

#ifndef BOBBIN_IO_SRC_LISTENER_H_
#define BOBBIN_IO_SRC_LISTENER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>

#include "io/src/file_descriptor.h"
#include "io/src/op.h"
#include "io/src/result.h"
#include "io/src/unix_name.h"

namespace bobbin::io::internal {

class Listener final : public AcceptOp {
 public:
  // What shutdown(2) does to those who wait in accept(2), or for it: of the machine's own sockets
  // they do not hear of it.
  enum class Shutdown : uint8_t { kEndsAccepts, kIsNotNoticed };

  // `name` is for people. `path` goes when it is closed.
  Listener(FileDescriptor fd, std::string name, Shutdown shutdown, BoundPath path)
      : AcceptOp(pollable_),
        pollable_(fd.Release()),
        name_(std::move(name)),
        shutdown_(shutdown),
        path_(std::move(path)) {}

  const std::string& name() const { return name_; }

  // How often an acceptor has paused.
  uint64_t pauses() const { return pauses_.load(); }

  // Waits for a connection.
  absl::StatusOr<FileDescriptor> Accept();
  // Ends all waits, and closes the descriptor when all have let go. From any thread.
  void Close() noexcept;
  // The owner's last call: as Close; memory is freed when all are out.
  void Release() noexcept;

 private:
  enum class Acceptor : uint8_t { kNobody, kPoller, kStopping, kOsThread, kPausing };
  // What a waiter may be told besides a result.
  static constexpr Result kRetry = -10'000;
  static constexpr Result kPause = -10'001;
  static constexpr Result kClosed = -10'002;

  void OnAccept(int32_t result, bool is_last) noexcept override;
  void OnPostedCancel() noexcept override;

  // One round of Accept, and its parts: a result, or one of the above.
  Result Attempt(bobbin::internal::Thread& self);
  Result AskBlocking(bobbin::internal::Thread& self);
  Result Pause();

  // Hands a connection over. Returns it if it is nobody's: the caller closes it.
  int Deliver(int fd, bobbin::internal::WakeList& woken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // What comes after the operation has ended with `result`; true: the caller starts it again.
  bool NextAcceptor(int32_t result, bool may_start, bobbin::internal::WakeList& woken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Ends waits with a word in place of a connection. TellFirst returns whether there was one.
  bool TellFirst(Result what, bobbin::internal::WakeList& woken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void TellAll(Result what, bobbin::internal::WakeList& woken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // Starts the operation here. REQUIRES: the caller has become its starter under the lock.
  void StartOp(IoPoller& here) noexcept;
  // Ends what a shutdown does not end.
  void EndAccepts() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  [[nodiscard]] bool Enter();
  void Leave() noexcept;
  // Ends `users` and, with `is_owner`, the ownership; closes and frees if these were the last.
  void Drop(uint32_t users, bool is_owner) noexcept;

  const Pollable pollable_;
  const std::string name_;
  // Counted by acceptors, the first of which tells; read by anyone.
  bobbin::internal::Atomic<uint64_t> pauses_{0};
  const Shutdown shutdown_;
  BoundPath path_;  // Whoever closes it.

  bobbin::internal::SpinLock lock_;
  bobbin::internal::WaitQueue waiters_ ABSL_GUARDED_BY(lock_);
  std::deque<int> queued_ ABSL_GUARDED_BY(lock_);
  // Who has the operation, from when it was started until its last completion.
  IoPoller* op_poller_ ABSL_GUARDED_BY(lock_) = nullptr;
  // Rung for the OS thread that asks, where a shutdown would not end that.
  FileDescriptor bell_ ABSL_GUARDED_BY(lock_);
  Acceptor acceptor_ ABSL_GUARDED_BY(lock_) = Acceptor::kNobody;
  bool is_closing_ ABSL_GUARDED_BY(lock_) = false;
  bool is_owned_ ABSL_GUARDED_BY(lock_) = true;
  uint32_t users_ ABSL_GUARDED_BY(lock_) = 0;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_LISTENER_H_
