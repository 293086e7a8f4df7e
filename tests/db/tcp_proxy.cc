// SPDX-License-Identifier: Apache-2.0

#include "tests/db/tcp_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace bobbin::test {

namespace {

constexpr size_t kKeptBytesMax = 1 << 16;

int Checked(int result, const char* what) {
  if (result >= 0) return result;
  std::perror(what);
  std::abort();
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

TcpProxy::TcpProxy(int server_port) : server_port_(server_port) {
  listener_ = Checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  Checked(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), "bind");
  Checked(::listen(listener_, 1024), "listen");
  Checked(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  port_ = ntohs(address.sin_port);
  wake_ = Checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  thread_ = std::thread([this] { Run(); });
}

TcpProxy::~TcpProxy() {
  is_ending_ = true;
  ::eventfd_write(wake_, 1);
  thread_.join();
  ::close(listener_);
  ::close(wake_);
}

void TcpProxy::Set(Mode mode) {
  mode_ = mode;
  ::eventfd_write(wake_, 1);
}

// Returns when the order was carried out.
void TcpProxy::Order(std::atomic<int>& order) {
  ++order;
  ::eventfd_write(wake_, 1);
  while (order != 0) std::this_thread::yield();
}

void TcpProxy::Close(Link& link, bool is_reset) {
  for (const int fd : {link.client, link.server}) {
    const linger now = {.l_onoff = 1, .l_linger = 0};
    if (is_reset) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    ::close(fd);
  }
  --connections_;
}

void TcpProxy::Accept() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  ++accepted_;
  const int server = Checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  const sockaddr_in address = Loopback(server_port_);
  if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(client);
    ::close(server);
    return;
  }
  const int on = 1;
  for (const int fd : {client, server}) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ++connections_;
  links_.push_back({.client = client, .server = server, .kept = {}});
}

bool TcpProxy::Pass(Link& link, int direction, bool is_readable) {
  const auto side = static_cast<size_t>(direction);
  const int from = direction == 0 ? link.client : link.server;
  const int to = direction == 0 ? link.server : link.client;
  std::string& kept = link.kept[side];
  if (is_readable && !link.is_ended[side] && kept.size() < kKeptBytesMax) {
    char buffer[8192];
    const ssize_t received = ::recv(from, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (received < 0 && errno != EAGAIN) return false;
    if (received == 0) {
      link.is_ended[side] = true;
      if (kept.empty()) ::shutdown(to, SHUT_WR);
    }
    if (received > 0) {
      kept.append(buffer, static_cast<size_t>(received));
      if (direction == 0) from_clients_bytes_ += static_cast<size_t>(received);
    }
    if (stall_behind_ != 0 && from_clients_bytes_ >= stall_behind_) {
      stall_behind_ = 0;
      mode_ = Mode::kStalled;
      return true;
    }
  }
  if (!kept.empty()) {
    const size_t piece =
        piece_bytes_ == 0 ? kept.size() : std::min<size_t>(piece_bytes_, kept.size());
    const ssize_t sent = ::send(to, kept.data(), piece, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent > 0) kept.erase(0, static_cast<size_t>(sent));
    if (kept.empty() && link.is_ended[side]) ::shutdown(to, SHUT_WR);
  }
  return !(link.is_ended[0] && link.is_ended[1] && link.kept[0].empty() && link.kept[1].empty());
}

void TcpProxy::Run() {
  while (!is_ending_) {
    const bool is_open = mode_ == Mode::kOpen;
    std::vector<pollfd> waits = {{.fd = wake_, .events = POLLIN, .revents = 0}};
    if (is_open) waits.push_back({.fd = listener_, .events = POLLIN, .revents = 0});
    const size_t first = waits.size();
    bool has_kept = false;
    if (is_open) {
      for (const Link& link : links_) {
        for (const int direction : {0, 1}) {
          const auto side = static_cast<size_t>(direction);
          // In pieces, more is read when all of it has gone: else what comes would end the pause.
          const size_t kept_bytes_max = piece_bytes_ == 0 ? kKeptBytesMax : 1;
          const bool may_read = !link.is_ended[side] && link.kept[side].size() < kept_bytes_max;
          has_kept |= !link.kept[side].empty();
          waits.push_back({.fd = direction == 0 ? link.client : link.server,
                           .events = static_cast<short>(may_read ? POLLIN : 0),
                           .revents = 0});
        }
      }
    }
    ::poll(waits.data(), waits.size(), has_kept ? 1 : -1);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);

    if (cuts_ != 0) {
      for (Link& link : links_) Close(link, true);
      links_.clear();
      cuts_ = 0;
      continue;
    }
    if (half_closes_ != 0) {
      for (Link& link : links_) ::shutdown(link.client, SHUT_WR);
      half_closes_ = 0;
      continue;
    }
    if (!is_open) continue;
    size_t at = first;
    for (auto link = links_.begin(); link != links_.end();) {
      bool goes_on = true;
      for (const int direction : {0, 1}) {
        const bool is_readable = (waits[at++].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
        goes_on = goes_on && Pass(*link, direction, is_readable);
      }
      if (goes_on) {
        ++link;
        continue;
      }
      Close(*link, false);
      link = links_.erase(link);
    }
    if ((waits[1].revents & POLLIN) != 0) Accept();
  }
  for (Link& link : links_) Close(link, true);
}

}  // namespace bobbin::test
