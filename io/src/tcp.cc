// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>
#include <bobbin/io/tcp.h>

#include "io/src/blocking.h"
#include "io/src/file_descriptor.h"
#include "io/src/listener.h"
#include "io/src/op.h"
#include "io/src/result.h"
#include "io/src/socket.h"

namespace bobbin::io {

using bobbin::internal::Current;
using bobbin::internal::Thread;
using internal::FileDescriptor;
using internal::Listener;
using internal::Result;
using internal::ResultStatus;
using internal::ShortRead;
using internal::Socket;
using Use = internal::Socket::Use;
using User = internal::Socket::User;

namespace internal {

void ReleaseListener::operator()(Listener* listener) const noexcept { listener->Release(); }
void ReleaseSocket::operator()(Socket* socket) const noexcept { socket->Release(); }

}  // namespace internal

namespace {

bool SetFlag(int fd, int level, int name, bool is_on) {
  const int value = is_on ? 1 : 0;
  return ::setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

// getsockname(2) or getpeername(2).
template <typename Call>
absl::StatusOr<SocketAddress> AddressOf(int fd, Call call, std::string_view operation) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  const int error = call(fd, address, &bytes) == 0 ? 0 : errno;
  if (error != 0) return ResultStatus(-error, operation);
  return SocketAddress::FromSockaddr(address, bytes);
}

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

Socket& TcpStream::socket() const {
  BOBBIN_CHECK(socket_ != nullptr, "this TcpStream holds no connection");
  return *socket_;
}

TcpStream TcpStream::Adopt(int fd) {
  // Waiting is the kernel's part, also for those who block.
  const int flags = ::fcntl(fd, F_GETFL);
  BOBBIN_CHECK(flags >= 0, "TcpStream::Adopt wants an open descriptor");
  if ((flags & O_NONBLOCK) != 0) ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  return TcpStream(std::make_unique<Socket>(FileDescriptor(fd), ShortRead::kMayHideMore).release());
}

absl::StatusOr<TcpStream> TcpStream::Connect(const SocketAddress& peer) {
  Thread& self = Current();
  self.CheckMayWait();
  if (self.ShouldStop()) return self.StopStatus();
  const auto operation = [&] { return fmt::format("connect {}", peer.ToString()); };
  FileDescriptor fd(::socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int error = fd.is_open() ? 0 : errno;
  if (error != 0) return ResultStatus(-error, operation());
  SetFlag(fd.get(), IPPROTO_TCP, TCP_NODELAY, true);
  // A socket whose connect was given up is of no use: it is closed here in any case.
  const Result result = ConnectSocket(self, fd.get(), peer);
  if (result < 0) return ResultStatus(result, operation());
  return TcpStream(std::make_unique<Socket>(std::move(fd), ShortRead::kMeansNoMore).release());
}

absl::StatusOr<TcpStream> TcpStream::Connect(std::string_view peer) {
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(peer));
  return Connect(address);
}

absl::StatusOr<TcpStream> TcpStream::Connect(std::string_view host, uint16_t port) {
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(host, port));
  return Connect(address);
}

absl::StatusOr<size_t> TcpStream::Read(std::span<std::byte> buffer) {
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();
  const Use use(socket, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  if (buffer.empty()) return size_t{0};
  const Result received = socket.Receive(self, buffer);
  if (__builtin_expect(received > 0, 1)) return static_cast<size_t>(received);
  return socket.AfterReceive(received);
}

absl::Status TcpStream::ReadExact(std::span<std::byte> buffer) {
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();
  const Use use(socket, User::kReader);
  if (!use.ok()) return use.Refusal("read");
  for (size_t have = 0; have < buffer.size();) {
    const Result received = socket.Receive(self, buffer.subspan(have));
    if (__builtin_expect(received <= 0, 0)) {
      BOBBIN_RETURN_IF_ERROR(socket.AfterReceive(received).status());
      return MakeStatus(
          absl::StatusCode::kOutOfRange,
          fmt::format("read: the peer ended after {} of {} bytes", have, buffer.size()));
    }
    have += static_cast<size_t>(received);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> TcpStream::Write(std::span<const std::byte> bytes) {
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();
  const Use use(socket, User::kWriter);
  if (!use.ok()) return use.Refusal("write");
  if (bytes.empty()) return size_t{0};
  const Result sent = socket.Send(self, bytes);
  if (__builtin_expect(sent >= 0, 1)) return static_cast<size_t>(sent);
  return socket.AfterSend(sent);
}

absl::Status TcpStream::WriteAll(std::span<const std::byte> bytes) {
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();
  const Use use(socket, User::kWriter);
  if (!use.ok()) return use.Refusal("write");
  while (!bytes.empty()) {
    const Result sent = socket.Send(self, bytes);
    if (__builtin_expect(sent < 0, 0)) return socket.AfterSend(sent);
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::Status TcpStream::ShutdownWrite() {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("shut down");
  if (::shutdown(socket_->fd(), SHUT_WR) != 0) return ResultStatus(-errno, "shut down");
  return absl::OkStatus();
}

absl::Status TcpStream::ShutdownRead() {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("shut down");
  if (::shutdown(socket_->fd(), SHUT_RD) != 0) return ResultStatus(-errno, "shut down");
  return absl::OkStatus();
}

void TcpStream::Close() { socket().Close(); }

absl::Status TcpStream::SetSmallWrites(SmallWrites small_writes) {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("set small writes");
  if (!SetFlag(socket_->fd(), IPPROTO_TCP, TCP_NODELAY, small_writes == SmallWrites::kAtOnce)) {
    return ResultStatus(-errno, "set small writes");
  }
  return absl::OkStatus();
}

absl::StatusOr<SocketAddress> TcpStream::local_address() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("local address");
  return AddressOf(socket_->fd(), ::getsockname, "local address");
}

absl::StatusOr<SocketAddress> TcpStream::peer_address() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("peer address");
  return AddressOf(socket_->fd(), ::getpeername, "peer address");
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
  // Accepted sockets inherit the second: a call here instead of one for each connection.
  SetFlag(fd.get(), SOL_SOCKET, SO_REUSEADDR, true);
  SetFlag(fd.get(), IPPROTO_TCP, TCP_NODELAY, true);
  if (options.reuse_port && !SetFlag(fd.get(), SOL_SOCKET, SO_REUSEPORT, true)) {
    return failed(errno);
  }
  if (::bind(fd.get(), local.data(), local.bytes()) != 0) return failed(errno);
  if (::listen(fd.get(), options.backlog) != 0) return failed(errno);
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress bound,
                          AddressOf(fd.get(), ::getsockname, "local address"));
  return TcpListener(std::make_unique<Listener>(std::move(fd), bound).release());
}

absl::StatusOr<TcpListener> TcpListener::Bind(std::string_view local,
                                              const TcpListenerOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(local));
  return Bind(address, options);
}

absl::StatusOr<TcpStream> TcpListener::Accept() {
  BOBBIN_ASSIGN_OR_RETURN(FileDescriptor fd, listener().Accept());
  return TcpStream(std::make_unique<Socket>(std::move(fd), ShortRead::kMeansNoMore).release());
}

void TcpListener::Close() { listener().Close(); }

const SocketAddress& TcpListener::local_address() const { return listener().local_address(); }

uint64_t TcpListener::accept_pauses() const { return listener().pauses(); }

}  // namespace bobbin::io
