// SPDX-License-Identifier: Apache-2.0

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>
#include <bobbin/io/host_port.h>
#include <bobbin/io/resolver.h>
#include <bobbin/io/tcp.h>

#include "io/src/blocking.h"
#include "io/src/connect_race.h"
#include "io/src/file_descriptor.h"
#include "io/src/listener.h"
#include "io/src/op.h"
#include "io/src/result.h"
#include "io/src/socket.h"
#include "io/src/socket_options.h"
#include "io/src/tcp_options.h"
#include "io/src/unix_name.h"

namespace bobbin::io {

using bobbin::internal::Current;
using bobbin::internal::Thread;
using internal::BoundPath;
using internal::Listener;
using internal::ListenerHandle;
using internal::Result;
using internal::ResultStatus;
using internal::ShortRead;
using internal::Socket;
using Use = internal::Socket::Use;
using User = internal::Socket::User;

namespace {

// Connects `fd`; 0 if it is connected.
Result ConnectSocket(Thread& self, int fd, const SocketAddress& peer) {
  if (self.role() != Role::kVirtual) return internal::BlockingConnect(self, fd, peer);
  // The kernel has copied the address before this returns.
  const internal::Pollable pollable(fd);
  internal::ParkedOp op(internal::OpCode::kConnect, pollable, const_cast<sockaddr*>(peer.data()),
                        peer.bytes());
  return op.Run(self);
}

}  // namespace

// --- TcpStream

TcpStream TcpStream::Adopt(int fd) { return TcpStream(Socket::Adopt(fd)); }

absl::StatusOr<TcpStream> TcpStream::Connect(const SocketAddress& peer, const TcpOptions& options) {
  Thread& self = Current();
  self.CheckMayWait();
  if (self.ShouldStop()) return self.StopStatus();
  const auto operation = [&] { return fmt::format("connect {}", peer.ToString()); };
  FileDescriptor fd(::socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int error = fd.is_open() ? 0 : errno;
  if (error != 0) return ResultStatus(-error, operation());
  Result result = internal::ApplyTcpOptions(fd.get(), options, internal::Before::kSystemDefaults);
  // A socket whose connect was given up is of no use: it is closed here in any case.
  if (result == 0) result = ConnectSocket(self, fd.get(), peer);
  if (result < 0) return ResultStatus(result, operation());
  return TcpStream(Socket::Make(std::move(fd), ShortRead::kMeansNoMore));
}

absl::StatusOr<TcpStream> TcpStream::Connect(std::string_view peer, const TcpOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(const HostPort parts, HostPort::Split(peer));
  return Connect(parts.host, parts.port, options);
}

absl::StatusOr<TcpStream> TcpStream::Connect(std::string_view host, uint16_t port,
                                             const TcpOptions& options) {
  return Connect(ConnectOptions{.tcp = options}, host, port);
}

absl::StatusOr<TcpStream> TcpStream::Connect(const ConnectOptions& options, std::string_view host,
                                             uint16_t port) {
  Resolver& resolver = options.resolver != nullptr ? *options.resolver : Resolver::Default();
  BOBBIN_ASSIGN_OR_RETURN(
      const std::vector<SocketAddress> addresses,
      resolver.Resolve({.families = options.families, .search = options.search, .port = port},
                       host));
  if (addresses.size() == 1) return Connect(addresses.front(), options.tcp);
  BOBBIN_ASSIGN_OR_RETURN(FileDescriptor fd,
                          internal::RaceToConnect({.addresses = addresses,
                                                   .attempt_delay = options.attempt_delay,
                                                   .tcp = options.tcp,
                                                   .name = host}));
  return TcpStream(Socket::Make(std::move(fd), ShortRead::kMeansNoMore));
}

Progress TcpStream::WriteZeroCopy(std::span<const std::byte> bytes) {
  return socket().WriteZeroCopy(bytes);
}

absl::Status TcpStream::ShutdownRead() { return socket().Shutdown(SHUT_RD); }

bool TcpStream::IsQuiet() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return false;
  std::byte next;
  const ssize_t peeked = ::recv(socket().fd(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return peeked < 0 && errno == EAGAIN;
}

absl::Status TcpStream::SetOptions(const TcpOptions& options) {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("set options");
  const Result result =
      internal::ApplyTcpOptions(socket().fd(), options, internal::Before::kAnything);
  return result < 0 ? ResultStatus(result, "set options") : absl::OkStatus();
}

absl::StatusOr<TcpOptions> TcpStream::options() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("options");
  return internal::ReadTcpOptions(socket().fd());
}

absl::StatusOr<SocketAddress> TcpStream::local_address() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("local address");
  return internal::LocalAddress(socket().fd());
}

absl::StatusOr<SocketAddress> TcpStream::peer_address() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("peer address");
  return internal::PeerAddress(socket().fd());
}

// --- TcpListener

Listener& TcpListener::listener() const {
  BOBBIN_CHECK(listener_ != nullptr, "this TcpListener holds no socket");
  return *listener_;
}

absl::StatusOr<TcpListener> TcpListener::Bind(const SocketAddress& local,
                                              const TcpListenerOptions& options) {
  const auto failed = [&](int error) {
    return ResultStatus(-error, fmt::format("listen {}", local.ToString()));
  };
  FileDescriptor fd(::socket(local.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return failed(errno);
  internal::SetNumber(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  // Accepted sockets inherit them: calls here instead of some for each connection.
  Result set =
      internal::ApplyTcpOptions(fd.get(), options.streams, internal::Before::kSystemDefaults);
  if (set == 0 && options.reuse_port)
    set = internal::SetNumber(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  if (set < 0) return failed(static_cast<int>(-set));
  if (::bind(fd.get(), local.data(), local.bytes()) != 0) return failed(errno);
  if (::listen(fd.get(), options.backlog) != 0) return failed(errno);
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress bound, internal::LocalAddress(fd.get()));
  ListenerHandle listener(std::make_unique<Listener>(std::move(fd), bound.ToString(),
                                                     Listener::Shutdown::kEndsAccepts, BoundPath())
                              .release());
  return TcpListener(std::move(listener), bound);
}

absl::StatusOr<TcpListener> TcpListener::Bind(std::string_view local,
                                              const TcpListenerOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(local));
  return Bind(address, options);
}

absl::StatusOr<TcpStream> TcpListener::Accept() {
  BOBBIN_ASSIGN_OR_RETURN(FileDescriptor fd, listener().Accept());
  return TcpStream(Socket::Make(std::move(fd), ShortRead::kMeansNoMore));
}

void TcpListener::Close() { listener().Close(); }

const SocketAddress& TcpListener::local_address() const {
  listener();
  return local_address_;
}

uint64_t TcpListener::accept_pauses() const { return listener().pauses(); }

}  // namespace bobbin::io
