// SPDX-License-Identifier: Apache-2.0

#include "io/src/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/status.h>

#include "io/src/buffer_pool.h"
#include "io/src/io_poller.h"

namespace bobbin::io::internal {

using bobbin::internal::Current;
using bobbin::internal::Thread;

namespace {
// A socket or a kernel that cannot, or a shortage of what it takes.
bool IsRefusalOfZeroCopy(Result result) noexcept {
  return result == -EOPNOTSUPP || result == -EINVAL || result == -ENOMEM || result == -ENOBUFS;
}
}  // namespace

void ReleaseSocket::operator()(Socket* socket) const noexcept { socket->Release(); }

SocketHandle Socket::Make(FileDescriptor fd, ShortRead short_read, Kind kind) {
  return SocketHandle(std::make_unique<Socket>(std::move(fd), short_read, kind).release());
}

SocketHandle Socket::Adopt(int fd) {
  // Waiting is the kernel's part, also for those who block.
  const int flags = ::fcntl(fd, F_GETFL);
  BOBBIN_CHECK(flags >= 0, "Adopt wants an open descriptor");
  if ((flags & O_NONBLOCK) != 0) ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  // A close that waits for the peer would hold a carrier up.
  linger how{};
  socklen_t bytes = sizeof(how);
  const bool is_known = ::getsockopt(fd, SOL_SOCKET, SO_LINGER, &how, &bytes) == 0;
  if (is_known && how.l_onoff != 0 && how.l_linger != 0) {
    how = {};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &how, sizeof(how));
  }
  return Make(FileDescriptor(fd), ShortRead::kMayHideMore);
}

void Socket::LastOut(int fd, bool is_orphan) noexcept {
  ::close(fd);
  if (is_orphan) const std::unique_ptr<Socket> last(this);
}

void Socket::Close() noexcept {
  const uint32_t closer = static_cast<uint32_t>(User::kCloser);
  uint32_t word = word_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
  do {
    if ((word & kClosing) != 0) return;
    // Pairs with the acquire in is_closing.
  } while (!word_.compare_exchange_weak(word, (word | kClosing) + closer, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));  // relaxed: looked at anew.
  if ((word & ~kStateMask) != 0) {
    BOBBIN_CHECK(receive_code_ != OpCode::kRead, "an end of a pipe is closed while it is used");
    ::shutdown(fd(), SHUT_RDWR);
  }
  Leave(User::kCloser);
}

void Socket::Release() noexcept {
  Close();
  // Pairs with Leave: as there.
  const uint32_t left = word_.fetch_sub(kOwned, std::memory_order_acq_rel) - kOwned;
  if (left == kClosing) const std::unique_ptr<Socket> last(this);
}

absl::Status Socket::Use::Refusal(std::string_view operation) const {
  if (socket_.is_closing()) return ClosedStatus(operation);
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    fmt::format("{}: another thread is in a {} of this socket", operation,
                                user_ == User::kReader ? "read" : "write"));
}

// --- The calls of a stream

absl::StatusOr<size_t> Socket::Read(std::span<std::byte> buffer) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  if (buffer.empty()) return size_t{0};
  const Result received = Receive(self, buffer);
  if (__builtin_expect(received > 0, 1)) return static_cast<size_t>(received);
  return AfterReceive(received);
}

absl::StatusOr<size_t> Socket::Read(std::span<const std::span<std::byte>> buffers) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  Transfer<std::byte> transfer(buffers);
  if (transfer.is_done()) return size_t{0};
  const std::span<iovec> vectors = transfer.Next(kTransferBytesMax);
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  const Result received = ReceiveMessage(self, message, SizeOf(vectors));
  if (received > 0) return static_cast<size_t>(received);
  return AfterReceive(received);
}

absl::Status Socket::ReadExact(std::span<std::byte> buffer) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  for (size_t have = 0; have < buffer.size();) {
    const Result received = Receive(self, buffer.subspan(have));
    if (__builtin_expect(received <= 0, 0)) {
      BOBBIN_RETURN_IF_ERROR(AfterReceive(received).status());
      return MakeStatus(
          absl::StatusCode::kOutOfRange,
          fmt::format("read: the peer ended after {} of {} bytes", have, buffer.size()));
    }
    have += static_cast<size_t>(received);
  }
  return absl::OkStatus();
}

absl::StatusOr<PooledBytes> Socket::ReadPooled() {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  PooledSlot slot;
  Result received;
  if (__builtin_expect(self.role() == Role::kVirtual, 1)) {
    received = Move(self, OpCode::kReceivePooled, &slot, PooledBytes::kBytesMax);
  } else {
    received = BlockingAwait(self, fd(), POLLIN);
    auto buffer = std::make_unique<std::byte[]>(received == 0 ? PooledBytes::kBytesMax : 0);
    if (received == 0) {
      received = BlockingReceive(self, fd(), buffer.get(), PooledBytes::kBytesMax);
    }
    if (received > 0) slot.buffer = buffer.release();
  }
  if (__builtin_expect(received > 0, 1)) {
    return PooledBytes(slot.pool, {slot.buffer, static_cast<size_t>(received)});
  }
  BOBBIN_RETURN_IF_ERROR(AfterReceive(received).status());
  return PooledBytes();
}

absl::Status Socket::WaitReadable() {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  const bool is_virtual = self.role() == Role::kVirtual;
  const Result ready = is_virtual ? Move(self, OpCode::kAwaitReadable, nullptr, 0)
                                  : BlockingAwait(self, fd(), POLLIN);
  if (ready >= 0 && !is_closing()) return absl::OkStatus();
  return AfterReceive(std::min(ready, Result{0})).status();
}

absl::StatusOr<PooledBytes> Socket::FillPooled(
    absl::FunctionRef<absl::StatusOr<size_t>(std::span<std::byte>)> read) {
  const bool is_virtual = Current().role() == Role::kVirtual;
  BufferPool* const pool = is_virtual ? &CurrentIoPoller().Pool() : nullptr;
  std::byte* const buffer =
      is_virtual ? pool->Take()
                 : std::make_unique_for_overwrite<std::byte[]>(PooledBytes::kBytesMax).release();
  PooledBytes all(pool, {buffer, PooledBytes::kBytesMax});
  BOBBIN_ASSIGN_OR_RETURN(const size_t filled, read(all.bytes()));
  if (filled == 0) return PooledBytes();
  all.bytes_ = all.bytes_.first(filled);
  return all;
}

absl::StatusOr<size_t> Socket::Write(std::span<const std::byte> bytes) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kWriter);
  if (!use.ok()) return use.Refusal("write");
  if (bytes.empty()) return size_t{0};
  const Result sent = Send(self, bytes);
  if (__builtin_expect(sent >= 0, 1)) return static_cast<size_t>(sent);
  return AfterSend(sent);
}

absl::StatusOr<size_t> Socket::Write(std::span<const std::span<const std::byte>> parts) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kWriter);
  if (!use.ok()) return use.Refusal("write");
  Transfer<const std::byte> transfer(parts);
  if (transfer.is_done()) return size_t{0};
  const Result sent = SendParts(self, transfer);
  if (sent >= 0) return static_cast<size_t>(sent);
  return AfterSend(sent);
}

absl::Status Socket::WriteAll(std::span<const std::byte> bytes) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kWriter);
  if (!use.ok()) return use.Refusal("write");
  while (!bytes.empty()) {
    const Result sent = Send(self, bytes);
    if (__builtin_expect(sent < 0, 0)) return AfterSend(sent);
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

Progress Socket::WriteCounted(std::span<const std::byte> bytes) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kWriter);
  if (!use.ok()) return {.bytes = 0, .status = use.Refusal("write")};
  size_t moved = 0;
  while (moved < bytes.size()) {
    const Result sent = Send(self, bytes.subspan(moved));
    if (sent < 0) return {.bytes = moved, .status = AfterSend(sent)};
    moved += static_cast<size_t>(sent);
  }
  return {.bytes = moved, .status = absl::OkStatus()};
}

Progress Socket::WriteCounted(std::span<const std::span<const std::byte>> parts) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kWriter);
  if (!use.ok()) return {.bytes = 0, .status = use.Refusal("write")};
  Transfer<const std::byte> transfer(parts);
  while (!transfer.is_done()) {
    const Result sent = SendParts(self, transfer);
    if (sent < 0) return {.bytes = transfer.moved(), .status = AfterSend(sent)};
    transfer.Advance(static_cast<size_t>(sent));
  }
  return {.bytes = transfer.moved(), .status = absl::OkStatus()};
}

Progress Socket::WriteZeroCopy(std::span<const std::byte> bytes) {
  Thread& self = Current();
  self.CheckMayWait();
  const Use use(*this, User::kWriter);
  if (!use.ok()) return {.bytes = 0, .status = use.Refusal("write")};
  const bool is_virtual = self.role() == Role::kVirtual;
  bool is_copied = !is_virtual || !CurrentIoPoller().does_zero_copy();
  size_t moved = 0;
  while (moved < bytes.size()) {
    const std::span<const std::byte> rest = bytes.subspan(moved);
    const Result sent = is_copied ? Send(self, rest) : SendZeroCopy(self, rest);
    if (is_copied && is_virtual) CurrentIoPoller().CountCopiedSend();
    if (sent >= 0) {
      moved += static_cast<size_t>(sent);
    } else if (is_copied || !IsRefusalOfZeroCopy(sent)) {
      return {.bytes = moved, .status = AfterSend(sent)};
    } else {
      is_copied = true;
    }
  }
  return {.bytes = moved, .status = absl::OkStatus()};
}

absl::Status Socket::Shutdown(int how) {
  const Use use(*this, User::kGuest);
  if (!use.ok()) return use.Refusal("shut down");
  if (::shutdown(fd(), how) != 0) return ResultStatus(-errno, "shut down");
  return absl::OkStatus();
}

// --- Transfers

Result Socket::ReceiveBlocking(Thread& self, std::span<std::byte> buffer) {
  if (receive_code_ == OpCode::kRead) return BlockingRead(self, fd(), buffer.data(), buffer.size());
  return BlockingReceive(self, fd(), buffer.data(), buffer.size());
}

Result Socket::SendBlocking(Thread& self, std::span<const std::byte> bytes) {
  if (send_code_ == OpCode::kWrite) return BlockingWrite(self, fd(), bytes.data(), bytes.size());
  return BlockingSend(self, fd(), bytes.data(), bytes.size());
}

Result Socket::SendZeroCopy(Thread& self, std::span<const std::byte> bytes) {
  if (self.ShouldStop()) return WhyStopped(self);
  ZeroCopySend send{.rest = bytes.first(std::min(bytes.size(), kTransferBytesMax))};
  ParkedOp op(OpCode::kSendZeroCopy, pollable_, &send, static_cast<uint32_t>(send.rest.size()));
  return op.Run(self);
}

Result Socket::SendParts(Thread& self, Transfer<const std::byte>& transfer) {
  const std::span<iovec> vectors = transfer.Next(kTransferBytesMax);
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  return SendMessage(self, message, SizeOf(vectors));
}

Result Socket::ReceiveMessage(Thread& self, msghdr& message, size_t bytes) {
  if (self.role() != Role::kVirtual) return BlockingReceiveMessage(self, fd(), message);
  return Move(self, OpCode::kReceiveMessage, &message, bytes);
}

Result Socket::ReceiveMessages(Thread& self, std::span<mmsghdr> messages) {
  if (self.role() != Role::kVirtual) return BlockingReceiveMessages(self, fd(), messages);
  return Move(self, OpCode::kReceiveBatch, messages.data(), messages.size());
}

Result Socket::SendMessage(Thread& self, const msghdr& message, size_t bytes) {
  if (self.role() != Role::kVirtual) return BlockingSendMessage(self, fd(), message);
  return Move(self, OpCode::kSendMessage, const_cast<msghdr*>(&message), bytes);
}

absl::StatusOr<size_t> Socket::AfterReceive(Result result) const {
  const bool is_stop = result == kStoppedByDeadline || result == kStoppedByCancel;
  // A close of this side looks like the peer's, and so may a reset.
  if (!is_stop && is_closing()) return ClosedStatus("read");
  if (result != 0) return ResultStatus(result, "read");
  if (EndWasReset()) return ResultStatus(-ECONNRESET, "read");
  return size_t{0};
}

absl::Status Socket::AfterSend(Result result) {
  if (result == -ECONNRESET) writer_met_reset_.store(true);
  const bool is_stop = result == kStoppedByDeadline || result == kStoppedByCancel;
  if (!is_stop && is_closing()) return ClosedStatus("write");
  return ResultStatus(result, "write");
}

bool Socket::EndWasReset() const noexcept {
  if (writer_met_reset_.load()) return true;
  constexpr uint32_t kWriter = static_cast<uint32_t>(User::kWriter);
  if ((word_.load() & kWriter) == 0) return false;
  // The writer may be about to hear of it. After a proper end, the peer's, this side is still open.
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  return ::getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_state == TCP_CLOSE;
}

}  // namespace bobbin::io::internal
