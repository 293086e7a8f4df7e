// SPDX-License-Identifier: Apache-2.0

#include "io/src/blocking.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include <bobbin/core/clock.h>

#include "io/src/connect.h"
#include "io/src/op_call.h"

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

// Waits, and makes a call that does not. Others may have been quicker: then it waits again.
template <typename Call>
Result AwaitAndCall(Thread& self, int fd, short events, Call call, int bell = kNoBell) {
  while (true) {
    if (const Result stop = BlockingAwait(self, fd, events, bell); stop != 0) return stop;
    if (const Result result = call(); !IsWorthRepeating(result)) return result;
  }
}

}  // namespace

Result BlockingAwait(Thread& self, int fd, short events, int bell) {
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
    // A negative number is passed over.
    std::array<pollfd, 2> entries = {pollfd{.fd = fd, .events = events, .revents = 0},
                                     pollfd{.fd = bell, .events = POLLIN, .revents = 0}};
    // A signal, or no memory: as if nothing had happened.
    if (::ppoll(entries.data(), entries.size(), governing == nullptr ? nullptr : &left, nullptr) >
        0) {
      if (entries[1].revents != 0) return -ECANCELED;
      return (entries[0].revents & POLLNVAL) != 0 ? -EBADF : 0;
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

Result BlockingReceiveMessages(Thread& self, int fd, std::span<mmsghdr> messages) {
  return AwaitAndCall(self, fd, POLLIN, [&]() -> Result {
    const int count = ::recvmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()),
                                 MSG_DONTWAIT, nullptr);
    if (count >= 0) return count;
    const int error = errno;
    return error == EAGAIN && IsOver(Look(fd, 0)) ? -ESHUTDOWN : -error;
  });
}

Result BlockingRead(Thread& self, int fd, void* data, size_t bytes) {
  return AwaitAndCall(self, fd, POLLIN, [&]() -> Result {
    const ssize_t got = ::read(fd, data, bytes);
    return got < 0 ? -errno : got;
  });
}

Result BlockingWrite(Thread& self, int fd, const void* data, size_t bytes) {
  return AwaitAndCall(self, fd, POLLOUT, [&] { return WriteWithoutSignal(fd, data, bytes); });
}

Result BlockingAccept(Thread& self, int fd, int bell) {
  return AwaitAndCall(
      self, fd, POLLIN,
      [&]() -> Result {
        const int accepted = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
        return accepted < 0 ? -errno : accepted;
      },
      bell);
}

Result BlockingConnect(Thread& self, int fd, const SocketAddress& address) {
  if (self.ShouldStop()) return WhyStopped(self);
  const Result begun = BeginConnect(fd, address.data(), address.bytes());
  if (begun != -EAGAIN) return begun;
  if (const Result stop = BlockingAwait(self, fd, POLLOUT); stop != 0) return stop;
  return ConnectOutcome(fd);
}

}  // namespace bobbin::io::internal
