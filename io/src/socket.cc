// SPDX-License-Identifier: Apache-2.0

#include "io/src/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

#include "io/src/blocking.h"
#include "io/src/error.h"
#include "io/src/io_poller.h"
#include "io/src/limits.h"
#include "io/src/op.h"

namespace bobbin::io::internal {

using bobbin::internal::Thread;

// --- Who is inside

bool Socket::Enter(User user) noexcept {
  const uint32_t bits = static_cast<uint32_t>(user);
  uint32_t word = word_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
  do {
    if ((word & kClosing) != 0) return false;
    if (user != User::kGuest && (word & bits) != 0) return false;
    // Pairs with the release in Leave: the reader before this one is done with the reader's fields.
  } while (!word_.compare_exchange_weak(word, word + bits, std::memory_order_acquire,
                                        std::memory_order_relaxed));  // relaxed: looked at anew.
  return true;
}

void Socket::Leave(User user) noexcept {
  const uint32_t bits = static_cast<uint32_t>(user);
  const int fd = fd_;  // The owner may free the socket once this user is out.
  // Pairs with itself: the last one out comes after everybody else.
  const uint32_t left = word_.fetch_sub(bits, std::memory_order_acq_rel) - bits;
  if (__builtin_expect((left & ~kOwned) != kClosing, 1)) return;
  ::close(fd);
  if ((left & kOwned) == 0) const std::unique_ptr<Socket> last(this);
}

void Socket::Close() noexcept {
  const uint32_t closer = static_cast<uint32_t>(User::kCloser);
  uint32_t word = word_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
  do {
    if ((word & kClosing) != 0) return;
    // Pairs with the acquire in is_closing.
  } while (!word_.compare_exchange_weak(word, (word | kClosing) + closer, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));  // relaxed: looked at anew.
  if ((word & ~kStateMask) != 0) ::shutdown(fd_, SHUT_RDWR);
  Leave(User::kCloser);
}

void Socket::Release() noexcept {
  Close();
  // Pairs with Leave: as there.
  const uint32_t left = word_.fetch_sub(kOwned, std::memory_order_acq_rel) - kOwned;
  if (left == kClosing) const std::unique_ptr<Socket> last(this);
}

absl::Status Socket::Use::Refusal(std::string_view operation) const {
  if (socket_.is_closing()) return ClosedError(operation);
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    fmt::format("{}: another thread is in a {} of this stream", operation,
                                user_ == User::kReader ? "read" : "write"));
}

absl::Status Socket::Failure(int error, std::string_view operation) const {
  if (is_closing()) return ClosedError(operation);
  return SocketError(error, operation);
}

bool Socket::EndWasReset() const noexcept {
  if (writer_met_reset_.load()) return true;
  constexpr uint32_t kWriter = static_cast<uint32_t>(User::kWriter);
  if ((word_.load() & kWriter) == 0) return false;
  // The writer may be about to hear of it. After a proper end, the peer's, this side is still open.
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  return ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_state == TCP_CLOSE;
}

// --- Transfers

namespace {

// What one attempt came to: a count, or a negative error number; unless `stop` is not OK.
struct Attempt {
  int64_t value;
  absl::Status stop;
};

// Has the ring do it.
inline Attempt Park(Thread& self, ParkedOp& op) {
  const int32_t result = op.Run(self);
  if (__builtin_expect(result == -ECANCELED && op.is_stop_requested(), 0)) {
    return {0, Thread::StatusOf(op.stop_cause())};
  }
  return {result, absl::OkStatus()};
}

// An interruption from outside bobbin, or memory that was short: the operation did nothing.
bool IsWorthRepeating(int64_t value) { return value == -EINTR || value == -EAGAIN; }

uint32_t TransferBytes(size_t bytes) {
  return static_cast<uint32_t>(std::min(bytes, kTransferBytesMax));
}

}  // namespace

absl::StatusOr<size_t> Socket::Receive(Thread& self, std::span<std::byte> buffer) {
  while (true) {
    if (self.ShouldStop()) return self.StopStatus();
    int64_t value;
    if (__builtin_expect(self.role() == Role::kVirtual, 1)) {
      ParkedOp op(OpCode::kReceive, fd_, buffer.data(), TransferBytes(buffer.size()));
      op.set_waits_first(!may_have_more_);
      Attempt attempt = Park(self, op);
      if (!attempt.stop.ok()) return std::move(attempt.stop);
      may_have_more_ = op.has_more();
      value = attempt.value;
    } else {
      BlockingResult result = BlockingReceive(self, fd_, buffer.data(), buffer.size());
      if (!result.stop.ok()) return std::move(result.stop);
      value = result.value;
    }
    if (__builtin_expect(value > 0, 1)) return static_cast<size_t>(value);
    if (value == 0) {
      // A close of this side looks like the peer's, and so may a reset.
      if (is_closing()) return ClosedError("read");
      if (EndWasReset()) return SocketError(ECONNRESET, "read");
      return size_t{0};
    }
    if (!IsWorthRepeating(value)) return Failure(static_cast<int>(-value), "read");
  }
}

absl::StatusOr<size_t> Socket::Send(Thread& self, std::span<const std::byte> bytes) {
  while (true) {
    if (self.ShouldStop()) return self.StopStatus();
    int64_t value;
    if (__builtin_expect(self.role() == Role::kVirtual, 1)) {
      ParkedOp op(OpCode::kSend, fd_, const_cast<std::byte*>(bytes.data()),
                  TransferBytes(bytes.size()));
      Attempt attempt = Park(self, op);
      if (!attempt.stop.ok()) return std::move(attempt.stop);
      value = attempt.value;
    } else {
      BlockingResult result = BlockingSend(self, fd_, bytes.data(), bytes.size());
      if (!result.stop.ok()) return std::move(result.stop);
      value = result.value;
    }
    if (__builtin_expect(value >= 0, 1)) return static_cast<size_t>(value);
    if (value == -ECONNRESET) writer_met_reset_.store(true);
    if (!IsWorthRepeating(value)) return Failure(static_cast<int>(-value), "write");
  }
}

absl::Status Socket::ReceiveExact(Thread& self, std::span<std::byte> buffer) {
  const size_t wanted = buffer.size();
  while (!buffer.empty()) {
    BOBBIN_ASSIGN_OR_RETURN(const size_t received, Receive(self, buffer));
    if (received == 0) {
      return MakeStatus(absl::StatusCode::kOutOfRange,
                        fmt::format("read: the peer ended after {} of {} bytes",
                                    wanted - buffer.size(), wanted));
    }
    buffer = buffer.subspan(received);
  }
  return absl::OkStatus();
}

absl::Status Socket::SendAll(Thread& self, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    BOBBIN_ASSIGN_OR_RETURN(const size_t sent, Send(self, bytes));
    bytes = bytes.subspan(sent);
  }
  return absl::OkStatus();
}

}  // namespace bobbin::io::internal
