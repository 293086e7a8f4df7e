// SPDX-License-Identifier: Apache-2.0

#include "io/src/blocking.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <ctime>

#include <bobbin/core/clock.h>

namespace bobbin::io::internal {

namespace {

using bobbin::internal::Thread;
using bobbin::internal::TimerNode;
using bobbin::internal::Wake;

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

// Waits until `fd` has one of `events` or an error, within the governing deadline.
absl::Status AwaitReady(Thread& self, int fd, short events) {
  while (true) {
    if (self.ShouldStop()) return self.StopStatus();
    timespec left{};
    TimerNode* const governing = self.governing();
    if (governing != nullptr) {
      const int64_t nanoseconds = governing->deadline - MonotonicNow().time_since_epoch().count();
      if (nanoseconds <= 0) {
        governing->has_expired = true;
        return Thread::StatusOf(Wake::kExpired);
      }
      left = {.tv_sec = nanoseconds / kNanosecondsPerSecond,
              .tv_nsec = nanoseconds % kNanosecondsPerSecond};
    }
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    // A signal, or no memory: as if nothing had happened. The call behind this one tells of errors.
    if (::ppoll(&entry, 1, governing == nullptr ? nullptr : &left, nullptr) > 0) {
      return absl::OkStatus();
    }
  }
}

// Runs `call(flags)`, which returns like a system call, until it does more than being interrupted.
template <typename Call>
BlockingResult Repeat(Thread& self, int fd, short events, Call call) {
  while (true) {
    const bool is_bounded = self.governing() != nullptr;
    if (is_bounded) {
      if (absl::Status stop = AwaitReady(self, fd, events); !stop.ok()) return {0, std::move(stop)};
    }
    const int64_t value = call(is_bounded ? MSG_DONTWAIT : 0);
    const int error = value < 0 ? errno : 0;
    if (error == 0) return {value, absl::OkStatus()};
    if (error != EINTR && error != EAGAIN) return {-error, absl::OkStatus()};
    if (self.ShouldStop()) return {0, self.StopStatus()};
  }
}

int ErrorOf(int fd) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

}  // namespace

BlockingResult BlockingReceive(Thread& self, int fd, void* data, size_t bytes) {
  return Repeat(self, fd, POLLIN, [&](int flags) { return ::recv(fd, data, bytes, flags); });
}

BlockingResult BlockingSend(Thread& self, int fd, const void* data, size_t bytes) {
  return Repeat(self, fd, POLLOUT,
                [&](int flags) { return ::send(fd, data, bytes, flags | MSG_NOSIGNAL); });
}

BlockingResult BlockingAccept(Thread& self, int fd) {
  return Repeat(self, fd, POLLIN,
                [&](int) { return ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC); });
}

BlockingResult BlockingConnect(Thread& self, int fd, const SocketAddress& address) {
  // It may wait, and be interrupted, only once: after that it goes on by itself.
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const int error = ::connect(fd, address.data(), address.bytes()) == 0 ? 0 : errno;
  ::fcntl(fd, F_SETFL, flags);
  if (error != EINPROGRESS && error != EINTR) return {-error, absl::OkStatus()};
  if (absl::Status stop = AwaitReady(self, fd, POLLOUT); !stop.ok()) return {0, std::move(stop)};
  return {-ErrorOf(fd), absl::OkStatus()};
}

}  // namespace bobbin::io::internal
