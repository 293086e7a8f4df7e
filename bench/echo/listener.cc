// SPDX-License-Identifier: Apache-2.0

#include "bench/echo/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "bench/echo/socket_address.h"

namespace bobbin::bench {
namespace {

// The usual net.core.somaxconn; the kernel lowers it to its own limit.
constexpr int kBacklog = 4096;

}  // namespace

Listener OpenListener(const ServerOptions& options) {
  const std::optional<SocketAddress> address = SocketAddress::Parse(options.host, options.port);
  if (!address) return {.fd = {}, .error = "listen " + options.host + ": not a numeric address"};

  const auto failed = [&] {
    return Listener{.fd = {}, .error = "listen " + address->ToString() + ": " + ErrorText(errno)};
  };
  UniqueFd fd(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return failed();

  // Accepted sockets inherit TCP_NODELAY: one call here instead of one per connection.
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::bind(fd.get(), address->get(), address->length()) != 0) return failed();
  if (::listen(fd.get(), kBacklog) != 0) return failed();
  return {.fd = std::move(fd), .error = {}};
}

void AnnounceListening(const Listener& listener) {
  std::printf("listening %s\n", SocketAddress::OfSocket(listener.fd.get()).ToString().c_str());
  std::fflush(stdout);
}

}  // namespace bobbin::bench
