// SPDX-License-Identifier: Apache-2.0

#include "io/src/blocking.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <ctime>

#include <bobbin/core/clock.h>

#include "io/src/connect.h"

namespace bobbin::io::internal {

namespace {

using bobbin::internal::Thread;
using bobbin::internal::TimerNode;

// Runs `call(flags)`, which returns like a system call, until it does more than being interrupted.
template <typename Call>
Result Repeat(Thread& self, int fd, short events, Call call) {
  while (true) {
    if (self.ShouldStop()) return WhyStopped(self);
    const bool is_bounded = self.governing() != nullptr;
    if (is_bounded) {
      if (const Result stop = BlockingAwait(self, fd, events); stop != 0) return stop;
    }
    const int64_t value = call(is_bounded ? MSG_DONTWAIT : 0);
    const Result result = value < 0 ? -errno : value;
    if (!IsWorthRepeating(result)) return result;
  }
}

}  // namespace

Result BlockingAwait(Thread& self, int fd, short events) {
  while (true) {
    if (self.ShouldStop()) return WhyStopped(self);
    timespec left{};
    TimerNode* const governing = self.governing();
    if (governing != nullptr) {
      const int64_t nanoseconds = governing->deadline - MonotonicNow().time_since_epoch().count();
      if (nanoseconds <= 0) {
        governing->has_expired = true;
        return kStoppedByDeadline;
      }
      constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
      left = {.tv_sec = nanoseconds / kNanosecondsPerSecond,
              .tv_nsec = nanoseconds % kNanosecondsPerSecond};
    }
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    // A signal, or no memory: as if nothing had happened.
    if (::ppoll(&entry, 1, governing == nullptr ? nullptr : &left, nullptr) > 0) {
      return (entry.revents & POLLNVAL) != 0 ? -EBADF : 0;
    }
  }
}

Result BlockingReceive(Thread& self, int fd, void* data, size_t bytes) {
  return Repeat(self, fd, POLLIN, [&](int flags) { return ::recv(fd, data, bytes, flags); });
}

Result BlockingSend(Thread& self, int fd, const void* data, size_t bytes) {
  return Repeat(self, fd, POLLOUT,
                [&](int flags) { return ::send(fd, data, bytes, flags | MSG_NOSIGNAL); });
}

Result BlockingReceiveMessage(Thread& self, int fd, msghdr& message) {
  return Repeat(self, fd, POLLIN,
                [&](int flags) { return ::recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC); });
}

Result BlockingSendMessage(Thread& self, int fd, const msghdr& message) {
  return Repeat(self, fd, POLLOUT,
                [&](int flags) { return ::sendmsg(fd, &message, flags | MSG_NOSIGNAL); });
}

Result BlockingAccept(Thread& self, int fd) {
  while (true) {
    if (const Result stop = BlockingAwait(self, fd, POLLIN); stop != 0) return stop;
    const int accepted = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    const Result result = accepted < 0 ? -errno : accepted;
    // Another process may have been quicker.
    if (!IsWorthRepeating(result)) return result;
  }
}

Result BlockingConnect(Thread& self, int fd, const SocketAddress& address) {
  if (self.ShouldStop()) return WhyStopped(self);
  const Result begun = BeginConnect(fd, address.data(), address.bytes());
  if (begun != -EAGAIN) return begun;
  if (const Result stop = BlockingAwait(self, fd, POLLOUT); stop != 0) return stop;
  return ConnectOutcome(fd);
}

}  // namespace bobbin::io::internal
