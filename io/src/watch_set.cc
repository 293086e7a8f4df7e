// SPDX-License-Identifier: Apache-2.0

#include "io/src/watch_set.h"

#include <cerrno>

#include <bobbin/core/cancel.h>
#include <bobbin/core/status.h>
#include <bobbin/io/readiness.h>

namespace bobbin::io::internal {

WatchSet::WatchSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) status_ = ResultStatus(-errno, "epoll_create");
}

Result WatchSet::Watch(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return 0;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return 0;
  return -errno;
}

void WatchSet::Forget(int fd) {
  epoll_event event{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &event);
}

absl::StatusOr<std::span<const epoll_event>> WatchSet::AwaitUntil(Deadline deadline) {
  absl::Status waited;
  {
    const DeadlineScope scope(deadline);
    waited = WaitReadable(epoll_.get());
  }
  if (absl::IsDeadlineExceeded(waited)) {
    // Whose deadline was it?
    BOBBIN_RETURN_IF_ERROR(CheckStop());
    return std::span<const epoll_event>();
  }
  BOBBIN_RETURN_IF_ERROR(waited);
  const int count = ::epoll_wait(epoll_.get(), ready_.data(), static_cast<int>(ready_.size()), 0);
  return std::span<const epoll_event>(ready_.data(), count > 0 ? static_cast<size_t>(count) : 0);
}

}  // namespace bobbin::io::internal
