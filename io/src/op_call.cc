// SPDX-License-Identifier: Apache-2.0

#include "io/src/op_call.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include <bobbin/core/check.h>

#include "io/src/connect.h"

namespace bobbin::io::internal {

namespace {

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
    case OpCode::kConnect:
      return static_cast<int32_t>(
          BeginConnect(op.fd(), static_cast<const sockaddr*>(op.data()), op.bytes()));
    case OpCode::kAwaitReadable:
      return Look(op.fd(), POLLIN);
    case OpCode::kAwaitWritable:
      return Look(op.fd(), POLLOUT);
    case OpCode::kAccept:
      break;
  }
  BOBBIN_CHECK(false, "an operation that nobody parks for");
  return 0;
}

int32_t Look(int fd, short events) noexcept {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  if (::poll(&entry, 1, 0) <= 0) return -EAGAIN;
  return (entry.revents & POLLNVAL) != 0 ? -EBADF : entry.revents;
}

}  // namespace bobbin::io::internal
