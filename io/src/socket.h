// SPDX-License-Identifier: Apache-2.0
//
// Socket: a connected stream socket that may be closed while others use it.
//
// Or an end of a pipe, of which nobody can be told that it was closed: that is for those who know
// that nobody uses it.
//
// The word counts who is inside: one reader, one writer, any number of guests (short calls), and
// the one that closes. It says whether the socket is closing, and whether a handle still owns it.
//
// Transitions
//
//   in    +reader, +writer or +guest     refused once it is closing, or if there is such a one
//         already
//   Close +closing +closer               the first time; then the users are kicked by shutdown(2)
//   out   -reader, -writer, -guest, -closer
//   Release -owned                       the handle's end
//
// Why no operation meets a descriptor that was reused. The descriptor is closed by whoever leaves a
// closing socket as its last user, and nobody enters after that. A user is inside from before its
// operation is started to after its last completion; the closer is one, too, so that its
// shutdown(2) cannot hit a stranger. Why it is closed once: once the socket is closing the count
// only falls, and it reaches zero once. The memory goes with the last of users and owner, likewise
// once.
//
//   Called from   any thread, each function as its user; Close by any thread at any time.
//   Suspends      the calls of a stream, and transfers.
//   Cost          a read-modify-write on entry and one on exit.

#ifndef BOBBIN_IO_SRC_SOCKET_H_
#define BOBBIN_IO_SRC_SOCKET_H_

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/io/internal/handles.h>
#include <bobbin/io/pooled_bytes.h>
#include <bobbin/io/progress.h>

#include "io/src/blocking.h"
#include "io/src/file_descriptor.h"
#include "io/src/limits.h"
#include "io/src/op.h"
#include "io/src/pollable.h"
#include "io/src/result.h"
#include "io/src/transfer.h"

namespace bobbin::io::internal {

class Socket {
 public:
  enum class User : uint32_t { kReader = 1, kWriter = 2, kCloser = 4, kGuest = 32 };

  enum class Kind : uint8_t { kSocket, kPipe };

  Socket(FileDescriptor fd, ShortRead short_read, Kind kind = Kind::kSocket)
      : receive_code_(kind == Kind::kPipe ? OpCode::kRead : OpCode::kReceive),
        send_code_(kind == Kind::kPipe ? OpCode::kWrite : OpCode::kSend),
        pollable_(fd.Release(), short_read) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  static SocketHandle Make(FileDescriptor fd, ShortRead short_read, Kind kind = Kind::kSocket);
  // Takes over a connected stream socket of any family.
  static SocketHandle Adopt(int fd);

  // The owner's last call: closes it, if that has not been done. Memory is freed when all are out.
  void Release() noexcept;
  // Ends what others do with it, and closes the descriptor when they have let go. From any thread.
  void Close() noexcept;
  bool is_closing() const noexcept {
    return (word_.load(std::memory_order_acquire) & kClosing) != 0;  // Pairs with Close.
  }

  // Inside from construction to destruction, if `ok()`.
  class Use {
   public:
    Use(Socket& socket, User user) noexcept
        : socket_(socket), user_(user), is_in_(socket.Enter(user)) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (is_in_) socket_.Leave(user_);
    }
    bool ok() const { return __builtin_expect(is_in_, 1); }
    // Why not.
    absl::Status Refusal(std::string_view operation) const;

   private:
    Socket& socket_;
    const User user_;
    const bool is_in_;
  };

  // --- The calls of a stream, as TcpStream has them.

  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  absl::StatusOr<size_t> Read(std::span<const std::span<std::byte>> buffers);
  absl::Status ReadExact(std::span<std::byte> buffer);
  absl::StatusOr<PooledBytes> ReadPooled();
  absl::Status WaitReadable();
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes);
  absl::StatusOr<size_t> Write(std::span<const std::span<const std::byte>> parts);
  absl::Status WriteAll(std::span<const std::byte> bytes);
  Progress WriteCounted(std::span<const std::byte> bytes);
  Progress WriteCounted(std::span<const std::span<const std::byte>> parts);
  Progress WriteZeroCopy(std::span<const std::byte> bytes);
  // `how` is one of SHUT_RD, SHUT_WR and SHUT_RDWR.
  absl::Status Shutdown(int how);

  // Has `read` fill one of the carrier's buffers, which is empty if that was nothing.
  static absl::StatusOr<PooledBytes> FillPooled(
      absl::FunctionRef<absl::StatusOr<size_t>(std::span<std::byte>)> read);

  // --- One transfer. REQUIRES: the calling thread is inside as reader or writer.

  Result Receive(bobbin::internal::Thread& self, std::span<std::byte> buffer) {
    if (__builtin_expect(self.role() != Role::kVirtual, 0)) {
      return ReceiveBlocking(self, buffer);
    }
    return Move(self, receive_code_, buffer.data(), buffer.size());
  }
  Result Send(bobbin::internal::Thread& self, std::span<const std::byte> bytes) {
    if (__builtin_expect(self.role() != Role::kVirtual, 0)) {
      return SendBlocking(self, bytes);
    }
    return Move(self, send_code_, const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  // What msghdr says; its parts hold `bytes` together.
  Result ReceiveMessage(bobbin::internal::Thread& self, msghdr& message, size_t bytes);
  Result SendMessage(bobbin::internal::Thread& self, const msghdr& message, size_t bytes);
  // As many as are there, at least one; how many.
  Result ReceiveMessages(bobbin::internal::Thread& self, std::span<mmsghdr> messages);
  // What a reader is told of a result that is not positive, and a writer of a negative one.
  absl::StatusOr<size_t> AfterReceive(Result result) const;
  absl::Status AfterSend(Result result);

  // REQUIRES: the calling thread is inside.
  int fd() const { return pollable_.fd; }
  const Pollable& pollable() const { return pollable_; }

 private:
  static constexpr uint32_t kOwned = 8;
  static constexpr uint32_t kClosing = 16;
  static constexpr uint32_t kStateMask = kOwned | kClosing;

  Result Move(bobbin::internal::Thread& self, OpCode code, void* data, size_t bytes) {
    while (true) {
      if (self.ShouldStop()) return WhyStopped(self);
      ParkedOp op(code, pollable_, data, static_cast<uint32_t>(std::min(bytes, kTransferBytesMax)));
      const Result result = op.Run(self);
      if (__builtin_expect(result >= 0, 1) || !IsWorthRepeating(result)) return result;
      // The news that it was shut down may have been met, and is not told twice.
      if (is_closing()) return -ESHUTDOWN;
    }
  }

  Result ReceiveBlocking(bobbin::internal::Thread& self, std::span<std::byte> buffer);
  Result SendBlocking(bobbin::internal::Thread& self, std::span<const std::byte> bytes);
  // As much as it can in one operation, without a copy.
  Result SendZeroCopy(bobbin::internal::Thread& self, std::span<const std::byte> bytes);
  // Sends the next of them; one system call's worth.
  Result SendParts(bobbin::internal::Thread& self, Transfer<const std::byte>& transfer);

  [[nodiscard]] bool Enter(User user) noexcept {
    const uint32_t bits = static_cast<uint32_t>(user);
    uint32_t word = word_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
    do {
      if ((word & kClosing) != 0) return false;
      if (user != User::kGuest && (word & bits) != 0) return false;
      // Pairs with the release in Leave: the reader before this one is done with the reader's
      // fields.
    } while (!word_.compare_exchange_weak(word, word + bits, std::memory_order_acquire,
                                          std::memory_order_relaxed));  // relaxed: looked at anew.
    return true;
  }
  void Leave(User user) noexcept {
    const uint32_t bits = static_cast<uint32_t>(user);
    const int fd = this->fd();  // The owner may free the socket once this user is out.
    // Pairs with itself: the last one out comes after everybody else.
    const uint32_t left = word_.fetch_sub(bits, std::memory_order_acq_rel) - bits;
    if (__builtin_expect((left & ~kOwned) == kClosing, 0)) LastOut(fd, (left & kOwned) == 0);
  }
  void LastOut(int fd, bool is_orphan) noexcept;
  // Whether the end that a reader met was a reset, of which a writer took the notice.
  bool EndWasReset() const noexcept;

  // Written by whoever enters, leaves, closes or releases; see above. The release of a leaver comes
  // before the acquire of the last one, which closes and frees.
  bobbin::internal::Atomic<uint32_t> word_{kOwned};
  // Set by a writer that met a reset, which the system tells only once; read by readers that meet
  // an end.
  bobbin::internal::Atomic<bool> writer_met_reset_{false};
  const OpCode receive_code_;
  const OpCode send_code_;
  const Pollable pollable_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_SOCKET_H_
