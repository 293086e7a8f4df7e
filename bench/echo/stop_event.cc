// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/stop_event.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <cmath>
#include <csignal>

namespace bobbin::bench {
namespace {

itimerspec Once(double seconds) {
  const double whole = std::floor(seconds);
  itimerspec once{};
  once.it_value.tv_sec = static_cast<time_t>(whole);
  once.it_value.tv_nsec = static_cast<long>((seconds - whole) * 1e9);
  return once;
}

}  // namespace

StopEvent::StopEvent(double seconds) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));

  // A timer set to zero never fires, which is what "no time limit" needs.
  timer_ = UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const itimerspec once = Once(seconds);
  UniqueFd either(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (timerfd_settime(timer_.get(), 0, &once, nullptr) != 0 ||
      epoll_ctl(either.get(), EPOLL_CTL_ADD, signal_.get(), &event) != 0 ||
      epoll_ctl(either.get(), EPOLL_CTL_ADD, timer_.get(), &event) != 0) {
    return;
  }
  either_ = UniqueFd(std::move(either));
}

}  // namespace bobbin::bench
