// SPDX-License-Identifier: Apache-2.0

#include "io/src/tcp_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "io/src/socket_options.h"

namespace bobbin::io::internal {

namespace {

// Linux 5.14: which buffers have a size that somebody wanted.
constexpr int kBufferLock = 72;
constexpr int kSendBufferLocked = 1, kReceiveBufferLocked = 2;

int Bounded(int64_t value) noexcept {
  return static_cast<int>(std::clamp(value, int64_t{0}, int64_t{std::numeric_limits<int>::max()}));
}

Result ApplyKeepAlive(int fd, const std::optional<KeepAlive>& wanted) noexcept {
  const Result result = SetNumber(fd, SOL_SOCKET, SO_KEEPALIVE, wanted.has_value() ? 1 : 0);
  if (result < 0 || !wanted.has_value()) return result;
  for (const auto& [name, value] : {std::pair<int, int64_t>(TCP_KEEPIDLE, wanted->idle.count()),
                                    {TCP_KEEPINTVL, wanted->interval.count()},
                                    {TCP_KEEPCNT, wanted->questions_max}}) {
    if (const Result set = SetNumber(fd, IPPROTO_TCP, name, Bounded(value)); set < 0) return set;
  }
  return 0;
}

int NumberOf(int fd, int level, int name) noexcept {
  int value = 0;
  socklen_t bytes = sizeof(value);
  return ::getsockopt(fd, level, name, &value, &bytes) == 0 ? value : 0;
}

// What was asked for; the system keeps twice that, for what it needs itself.
size_t BufferOf(int fd, int name, int locked) noexcept {
  if ((NumberOf(fd, SOL_SOCKET, kBufferLock) & locked) == 0) return 0;
  return static_cast<size_t>(NumberOf(fd, SOL_SOCKET, name)) / 2;
}

}  // namespace

Result ApplyTcpOptions(int fd, const TcpOptions& options, Before before) noexcept {
  const bool is_new = before == Before::kSystemDefaults;
  const bool is_at_once = options.small_writes == SmallWrites::kAtOnce;
  Result result = 0;
  if (is_at_once || !is_new) {
    result = SetNumber(fd, IPPROTO_TCP, TCP_NODELAY, is_at_once ? 1 : 0);
  }
  if (result == 0 && (options.keep_alive.has_value() || !is_new)) {
    result = ApplyKeepAlive(fd, options.keep_alive);
  }
  if (result == 0 && (options.unanswered_max.count() != 0 || !is_new)) {
    result = SetNumber(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, Bounded(options.unanswered_max.count()));
  }
  if (result == 0) result = SetBufferBytes(fd, SO_RCVBUF, options.receive_buffer_bytes);
  if (result == 0) result = SetBufferBytes(fd, SO_SNDBUF, options.send_buffer_bytes);
  if (result == 0 && (options.on_close != OnClose::kDeliver || !is_new)) {
    const linger how{.l_onoff = options.on_close == OnClose::kReset ? 1 : 0, .l_linger = 0};
    result = ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &how, sizeof(how)) == 0 ? 0 : -errno;
  }
  return result;
}

absl::StatusOr<TcpOptions> ReadTcpOptions(int fd) {
  TcpOptions options;
  int is_at_once = 0;
  socklen_t bytes = sizeof(is_at_once);
  const bool is_tcp = ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_at_once, &bytes) == 0;
  const int error = is_tcp ? 0 : errno;
  if (error != 0) return ResultStatus(-error, "options");
  options.small_writes = is_at_once != 0 ? SmallWrites::kAtOnce : SmallWrites::kGathered;
  if (NumberOf(fd, SOL_SOCKET, SO_KEEPALIVE) != 0) {
    options.keep_alive = {
        .idle = std::chrono::seconds(NumberOf(fd, IPPROTO_TCP, TCP_KEEPIDLE)),
        .interval = std::chrono::seconds(NumberOf(fd, IPPROTO_TCP, TCP_KEEPINTVL)),
        .questions_max = NumberOf(fd, IPPROTO_TCP, TCP_KEEPCNT)};
  }
  options.unanswered_max = std::chrono::milliseconds(NumberOf(fd, IPPROTO_TCP, TCP_USER_TIMEOUT));
  options.receive_buffer_bytes = BufferOf(fd, SO_RCVBUF, kReceiveBufferLocked);
  options.send_buffer_bytes = BufferOf(fd, SO_SNDBUF, kSendBufferLocked);
  linger how{};
  bytes = sizeof(how);
  ::getsockopt(fd, SOL_SOCKET, SO_LINGER, &how, &bytes);
  options.on_close = how.l_onoff != 0 ? OnClose::kReset : OnClose::kDeliver;
  return options;
}

}  // namespace bobbin::io::internal
