// SPDX-License-Identifier: Apache-2.0
//
// DatagramQueue: what a ring receives from a socket ahead of whoever asks, and the one who waits.
//
// A receive of its own costs a datagram two ways into the kernel: one that finds nothing and waits,
// and one that fetches it. Here one operation goes on (DatagramOp), and brings each datagram with a
// completion, in a buffer of the carrier's; whoever asks copies it out.
//
// The operation belongs to the carrier of the virtual thread that started it; the one who asks may
// be anywhere. Where no operation can be had - an epoll, no free buffer, an OS thread that finds
// none in flight - the one who asks receives with a call of its own, as from any other socket.
//
// Stages
//
//   kIdle      nobody receives ahead, and nothing but the queue comes before a call
//   kRunning   the operation is in flight
//   kStopping  the same, and it was asked to end: enough is queued
//
// Transitions
//
//   kIdle    -> kRunning   who asks, on its carrier, when little is queued
//   kRunning -> kStopping  the carrier of the operation, when much is queued
//   kRunning, kStopping -> kIdle  the same carrier, with the last completion
//
// Why nobody waits in vain. Who waits has seen an operation in flight, or has started it, under the
// lock under which it joined the queue. Each completion, the last one too, ends its wait.
//
// Why the order stays. Nobody calls before the queue is empty and the operation has ended; what is
// in the kernel then came later.
//
// Why no operation meets a descriptor that was reused. It is inside the socket (socket.h) from
// before it is started to after its last completion.
//
//   Called from   any thread, one receiver at a time; Close by any thread at any time.
//   Suspends      Receive.
//   Lifetime      shared by the socket's owner, whoever is inside, and the operation.

#ifndef BOBBIN_IO_SRC_DATAGRAM_QUEUE_H_
#define BOBBIN_IO_SRC_DATAGRAM_QUEUE_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/io/internal/handles.h>

#include "io/src/op.h"
#include "io/src/result.h"
#include "io/src/socket.h"

namespace bobbin::io::internal {

class DatagramQueue final : public DatagramOp, public std::enable_shared_from_this<DatagramQueue> {
 public:
  // REQUIRES: whoever calls Receive is inside `socket`.
  static DatagramQueueHandle Make(Socket& socket);
  explicit DatagramQueue(Socket& socket);

  // As Socket::ReceiveMessages, whose buffers have one part each.
  Result Receive(bobbin::internal::Thread& self, std::span<mmsghdr> messages);
  // Drops what nobody has taken, and ends the operation and the wait of a receiver, who is told
  // that the socket was shut down. From any thread.
  void Close() noexcept;
  // The owner's last call: as Close; memory is freed when all are out.
  void Release() noexcept;

 private:
  enum class Stage : uint8_t { kIdle, kRunning, kStopping };
  // One that has come, in its buffer.
  struct Arrived {
    BufferPool* pool = nullptr;
    std::byte* buffer = nullptr;
    size_t bytes = 0;
  };

  void OnDatagram(int32_t result, const PooledSlot& lent, bool is_last) noexcept override;
  void OnPostedCancel() noexcept override;

  // Starts the operation here. REQUIRES: the caller has set the stage under the lock.
  void StartOp(IoPoller& here) noexcept;
  // What the operation's end says to whoever asks next.
  void TakeEnd(int32_t result) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Has `message` say what a call would have put there, and gives the buffer back.
  static void CopyOut(const Arrived& arrived, mmsghdr& message) noexcept;

  Socket& socket_;
  msghdr shape_{};  // The kernel reads from it how much room a name has.
  bobbin::internal::SpinLock lock_;
  bobbin::internal::WaitQueue waiters_ ABSL_GUARDED_BY(lock_);
  std::deque<Arrived> arrived_ ABSL_GUARDED_BY(lock_);
  Stage stage_ ABSL_GUARDED_BY(lock_) = Stage::kIdle;
  // An error that the operation has met and nobody was told of.
  int32_t error_ ABSL_GUARDED_BY(lock_) = 0;
  bool is_refused_ ABSL_GUARDED_BY(lock_) = false;  // The kernel does not do that.
  bool is_closing_ ABSL_GUARDED_BY(lock_) = false;
  // Who has the operation, from when it was started until its last completion.
  IoPoller* op_poller_ ABSL_GUARDED_BY(lock_) = nullptr;
  // What keeps it: the owner, the operation, and a cancel that was posted. Each is set and reset by
  // one of them at a time.
  std::shared_ptr<DatagramQueue> owned_self_;
  std::shared_ptr<DatagramQueue> op_self_;
  std::shared_ptr<DatagramQueue> posted_self_;
  std::optional<Socket::Use> op_use_;  // The operation's.
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_DATAGRAM_QUEUE_H_
