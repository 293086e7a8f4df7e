// SPDX-License-Identifier: Apache-2.0

#include "io/src/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include <bobbin/core/status.h>

namespace bobbin::io::internal {

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
  if ((word & ~kStateMask) != 0) ::shutdown(fd(), SHUT_RDWR);
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
                    fmt::format("{}: another thread is in a {} of this stream", operation,
                                user_ == User::kReader ? "read" : "write"));
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
