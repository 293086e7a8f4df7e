// SPDX-License-Identifier: Apache-2.0

#include "io/src/op_call.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include <bobbin/core/check.h>

#include "io/src/connect.h"

namespace bobbin::io::internal {

namespace {

constexpr int kWriteNoSignal = 0x100;  // Linux 6.18.

int32_t ResultOf(ssize_t value) noexcept {
  return value < 0 ? -errno : static_cast<int32_t>(value);
}

}  // namespace

int32_t MakeCall(const Op& op) noexcept {
  switch (op.code()) {
    case OpCode::kReceive:
      return ResultOf(::recv(op.fd(), op.data(), op.bytes(), MSG_DONTWAIT));
    case OpCode::kSend:
      return ResultOf(::send(op.fd(), op.data(), op.bytes(), MSG_DONTWAIT | MSG_NOSIGNAL));
    case OpCode::kReceiveMessage:
      return ResultOf(
          ::recvmsg(op.fd(), static_cast<msghdr*>(op.data()), MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    case OpCode::kSendMessage:
      return ResultOf(
          ::sendmsg(op.fd(), static_cast<const msghdr*>(op.data()), MSG_DONTWAIT | MSG_NOSIGNAL));
    case OpCode::kRead:
      return ResultOf(::read(op.fd(), op.data(), op.bytes()));
    case OpCode::kWrite:
      return static_cast<int32_t>(WriteWithoutSignal(op.fd(), op.data(), op.bytes()));
    case OpCode::kReceiveBatch:
      return ResultOf(
          ::recvmmsg(op.fd(), static_cast<mmsghdr*>(op.data()), op.bytes(), MSG_DONTWAIT, nullptr));
    case OpCode::kConnect:
      return static_cast<int32_t>(
          BeginConnect(op.fd(), static_cast<const sockaddr*>(op.data()), op.bytes()));
    case OpCode::kAwaitReadable:
      return Look(op.fd(), POLLIN);
    case OpCode::kAwaitWritable:
      return Look(op.fd(), POLLOUT);
    case OpCode::kAccept:
    case OpCode::kReceivePooled:
    case OpCode::kSendZeroCopy:
    case OpCode::kReceiveAhead:
      break;
  }
  BOBBIN_CHECK(false, "an operation that nobody parks for");
  return 0;
}

Result WriteWithoutSignal(int fd, const void* data, size_t bytes) noexcept {
  const iovec part{.iov_base = const_cast<void*>(data), .iov_len = bytes};
  const ssize_t written = ::pwritev2(fd, &part, 1, -1, kWriteNoSignal);
  const int error = written < 0 ? errno : 0;
  if (error == 0) return written;
  if (error != EOPNOTSUPP && error != EINVAL && error != ENOSYS) return -error;

  // An older kernel: the signal is held off, and taken back if it came.
  sigset_t signals, before, pending;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  const Result result = ResultOf(::write(fd, data, bytes));
  if (result == -EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    constexpr timespec kAtOnce{};
    sigtimedwait(&signals, nullptr, &kAtOnce);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

int32_t Look(int fd, short events) noexcept {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  if (::poll(&entry, 1, 0) <= 0) return -EAGAIN;
  return (entry.revents & POLLNVAL) != 0 ? -EBADF : entry.revents;
}

}  // namespace bobbin::io::internal
