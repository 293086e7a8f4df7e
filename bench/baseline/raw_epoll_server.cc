// SPDX-License-Identifier: Apache-2.0

#include "bench/baseline/raw_epoll_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/baseline/raw_server.h"
#include "bench/echo/server_meter.h"
#include "bench/echo/socket_address.h"

namespace bobbin::bench {
namespace {

// Not tuned: beyond a few dozen the system call is a small part of a turn.
constexpr size_t kEventsPerTurn = 256;

constexpr uint32_t kEndings = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

class RawEpollServer {
 public:
  explicit RawEpollServer(const RawServerParts& parts)
      : buffer_(parts.options.buffer_bytes),
        listener_(parts.listener),
        stop_(parts.stop),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  // Serves until the stop descriptor is readable. Returns the error text, empty if all was well.
  std::string Serve();

  ServerMeter& meter() { return meter_; }

 private:
  using Bytes = std::vector<std::byte>;

  struct Connection {
    Bytes unsent;                // What a slow peer has not taken yet.
    bool is_unfinished = false;  // In unfinished_.
  };

  bool Watch(int fd, uint32_t events);
  void Accept();
  void EchoUnfinished();
  void Echo(int fd, bool may_hide_more);
  bool Write(int fd, std::span<const std::byte> bytes);
  void Close(int fd);

  ServerMeter meter_;
  Bytes buffer_;  // Shared: what is read is normally written before the next read.
  std::vector<Connection> connections_;  // By descriptor.
  std::vector<int> unfinished_;          // To read again without an event. May name closed ones.
  const int listener_;
  const int stop_;
  UniqueFd epoll_;
};

std::string RawEpollServer::Serve() {
  if (!Watch(listener_, EPOLLIN) || !Watch(stop_, EPOLLIN)) return "epoll: " + ErrorText(errno);
  std::array<epoll_event, kEventsPerTurn> events;
  while (true) {
    EchoUnfinished();
    const int wait = unfinished_.empty() ? -1 : 0;
    const int ready =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait);
    if (ready < 0 && errno != EINTR) return "epoll wait: " + ErrorText(errno);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == stop_) return "";
      if (fd == listener_) {
        Accept();
      } else {
        Echo(fd, (events[static_cast<size_t>(i)].events & kEndings) != 0);
      }
    }
  }
}

bool RawEpollServer::Watch(int fd, uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void RawEpollServer::Accept() {
  // Out of descriptors, this returns and is called again at once until a connection closes: it
  // costs CPU, and a benchmark that opens more than it may has failed anyway.
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (!Watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
      ::close(fd);
      continue;
    }
    const size_t index = static_cast<size_t>(fd);
    if (index >= connections_.size()) connections_.resize(index + 1);
    meter_.OnOpen();
  }
}

void RawEpollServer::EchoUnfinished() {
  if (unfinished_.empty()) return;
  for (const int fd : std::exchange(unfinished_, {})) {
    if (std::exchange(connections_[static_cast<size_t>(fd)].is_unfinished, false)) Echo(fd, true);
  }
}

// Edge-triggered, which measured 1 to 2 % less CPU than level-triggered: no further event tells
// what is still there, so the socket must be read until it is empty. A read that does not fill the
// buffer says that without a second call, unless the end of the stream is behind it. One read a
// turn: a peer that sends as fast as it is answered would hold up all others.
void RawEpollServer::Echo(int fd, bool may_hide_more) {
  Connection& connection = connections_[static_cast<size_t>(fd)];
  if (!connection.unsent.empty()) {
    const Bytes pending = std::exchange(connection.unsent, {});
    if (!Write(fd, pending)) return Close(fd);
    if (!connection.unsent.empty()) return;
  }
  const ssize_t received = ::recv(fd, buffer_.data(), buffer_.size(), 0);
  if (received < 0 && errno == EAGAIN) return;
  if (received <= 0) return Close(fd);
  const size_t bytes = static_cast<size_t>(received);
  meter_.OnReceive(bytes);
  if (!Write(fd, std::span(buffer_).first(bytes))) return Close(fd);
  if (bytes < buffer_.size() && !may_hide_more) return;
  if (!std::exchange(connection.is_unfinished, true)) unfinished_.push_back(fd);
}

// Writes what the socket takes now and keeps the rest. False: the peer is gone.
bool RawEpollServer::Write(int fd, std::span<const std::byte> bytes) {
  const ssize_t written = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (written < 0 && errno != EAGAIN) return false;
  const auto rest = bytes.subspan(written < 0 ? 0 : static_cast<size_t>(written));
  if (!rest.empty()) {
    connections_[static_cast<size_t>(fd)].unsent.assign(rest.begin(), rest.end());
  }
  return true;
}

void RawEpollServer::Close(int fd) {
  meter_.OnClose();
  connections_[static_cast<size_t>(fd)] = {};
  ::close(fd);
}

}  // namespace

int RunRawEpollServer(const ServerOptions& options) {
  return RunRawServer<RawEpollServer>("raw-epoll", options);
}

}  // namespace bobbin::bench
