// SPDX-License-Identifier: Apache-2.0

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>
#include <bobbin/io/udp.h>

#include "io/src/datagram_queue.h"
#include "io/src/file_descriptor.h"
#include "io/src/result.h"
#include "io/src/socket.h"
#include "io/src/socket_options.h"

namespace bobbin::io {

using bobbin::internal::Current;
using bobbin::internal::Thread;
using internal::DatagramQueue;
using internal::Result;
using internal::ResultStatus;
using internal::SetNumber;
using internal::Socket;
using Use = internal::Socket::Use;
using User = internal::Socket::User;

namespace {

// An open socket of that family, with its options; the operation is for errors.
absl::StatusOr<FileDescriptor> OpenSocket(int family, const UdpOptions& options,
                                          std::string_view operation) {
  FileDescriptor fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Result result = fd.is_open() ? 0 : -errno;
  if (result == 0 && options.reuse_port) result = SetNumber(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  if (result == 0 && options.may_broadcast) {
    result = SetNumber(fd.get(), SOL_SOCKET, SO_BROADCAST, 1);
  }
  if (result == 0) {
    result = internal::SetBufferBytes(fd.get(), SO_RCVBUF, options.receive_buffer_bytes);
  }
  if (result == 0) {
    result = internal::SetBufferBytes(fd.get(), SO_SNDBUF, options.send_buffer_bytes);
  }
  if (result < 0) return ResultStatus(result, operation);
  return fd;
}

// What the kernel fills in besides the bytes.
struct Envelope {
  iovec part{};
  sockaddr_storage peer{};

  void Address(msghdr& message, std::span<std::byte> buffer) {
    part = {.iov_base = buffer.data(), .iov_len = buffer.size()};
    message = {};
    message.msg_name = &peer;
    message.msg_namelen = sizeof(peer);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
  }

  Datagram Open(const msghdr& message, size_t bytes) const {
    Datagram datagram{
        .bytes = bytes, .is_truncated = (message.msg_flags & MSG_TRUNC) != 0, .peer = {}};
    auto from =
        SocketAddress::FromSockaddr(reinterpret_cast<const sockaddr*>(&peer), message.msg_namelen);
    if (from.ok()) datagram.peer = *from;
    return datagram;
  }
};

// What a caller is told of an error, which may be the end by this side.
absl::Status After(const Socket& socket, Result result, std::string_view operation) {
  const bool is_stop =
      result == internal::kStoppedByDeadline || result == internal::kStoppedByCancel;
  if (!is_stop && (socket.is_closing() || result == -ESHUTDOWN)) {
    return internal::ClosedStatus(operation);
  }
  return ResultStatus(result, operation);
}

Result ReceiveMessages(Socket& socket, DatagramQueue* ahead, Thread& self,
                       std::span<mmsghdr> messages) {
  return ahead != nullptr ? ahead->Receive(self, messages) : socket.ReceiveMessages(self, messages);
}

absl::Status SendMessage(Socket& socket, std::span<const std::byte> bytes,
                         const SocketAddress* peer) {
  Thread& self = Current();
  self.CheckMayWait();
  // Any number send at the same time: datagrams do not mix.
  const Use use(socket, User::kGuest);
  if (!use.ok()) return use.Refusal("send");
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  if (peer != nullptr) {
    message.msg_name = const_cast<sockaddr*>(peer->data());
    message.msg_namelen = peer->bytes();
  }
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const Result sent = socket.SendMessage(self, message, bytes.size());
  if (__builtin_expect(sent >= 0, 1)) return absl::OkStatus();
  return After(socket, sent, "send");
}

}  // namespace

UdpSocket::UdpSocket(internal::SocketHandle socket, Receiving receiving)
    : ahead_(receiving == Receiving::kAhead ? DatagramQueue::Make(*socket) : nullptr),
      socket_(std::move(socket)) {}

Socket& UdpSocket::socket() const {
  BOBBIN_CHECK(socket_ != nullptr, "this UdpSocket holds no socket");
  return *socket_;
}

absl::StatusOr<UdpSocket> UdpSocket::Bind(const SocketAddress& local, const UdpOptions& options) {
  const std::string operation = fmt::format("bind {}", local.ToString());
  BOBBIN_ASSIGN_OR_RETURN(FileDescriptor fd, OpenSocket(local.family(), options, operation));
  if (::bind(fd.get(), local.data(), local.bytes()) != 0) return ResultStatus(-errno, operation);
  return UdpSocket(Socket::Make(std::move(fd), internal::ShortRead::kMayHideMore),
                   options.receiving);
}

absl::StatusOr<UdpSocket> UdpSocket::Bind(std::string_view local, const UdpOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(local));
  return Bind(address, options);
}

absl::StatusOr<UdpSocket> UdpSocket::Connect(const SocketAddress& peer, const UdpOptions& options) {
  const std::string operation = fmt::format("connect {}", peer.ToString());
  BOBBIN_ASSIGN_OR_RETURN(FileDescriptor fd, OpenSocket(peer.family(), options, operation));
  if (::connect(fd.get(), peer.data(), peer.bytes()) != 0) return ResultStatus(-errno, operation);
  return UdpSocket(Socket::Make(std::move(fd), internal::ShortRead::kMayHideMore),
                   options.receiving);
}

absl::StatusOr<UdpSocket> UdpSocket::Connect(std::string_view peer, const UdpOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(peer));
  return Connect(address, options);
}

absl::StatusOr<Datagram> UdpSocket::Receive(std::span<std::byte> buffer) {
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();  // The handle may go while this waits.
  const Use use(socket, User::kReader);
  if (!use.ok()) return use.Refusal("receive");
  Envelope envelope;
  mmsghdr message{};
  envelope.Address(message.msg_hdr, buffer);
  const Result received = ReceiveMessages(socket, ahead_.get(), self, std::span(&message, 1));
  if (received < 0) return After(socket, received, "receive");
  return envelope.Open(message.msg_hdr, message.msg_len);
}

absl::StatusOr<size_t> UdpSocket::ReceiveBatch(std::span<DatagramSlot> slots) {
  BOBBIN_CHECK(!slots.empty(), "a batch wants slots");
  Thread& self = Current();
  self.CheckMayWait();
  Socket& socket = this->socket();  // The handle may go while this waits.
  const Use use(socket, User::kReader);
  if (!use.ok()) return use.Refusal("receive");
  slots = slots.first(std::min(slots.size(), kBatchMax));
  std::array<Envelope, kBatchMax> envelopes;
  std::array<mmsghdr, kBatchMax> messages;
  for (size_t i = 0; i < slots.size(); ++i) {
    messages[i] = {};
    envelopes[i].Address(messages[i].msg_hdr, slots[i].buffer);
  }
  const Result received =
      ReceiveMessages(socket, ahead_.get(), self, std::span(messages).first(slots.size()));
  if (received < 0) return After(socket, received, "receive");
  const size_t count = static_cast<size_t>(received);
  for (size_t i = 0; i < count; ++i) {
    slots[i].datagram = envelopes[i].Open(messages[i].msg_hdr, messages[i].msg_len);
  }
  return count;
}

absl::Status UdpSocket::Send(std::span<const std::byte> bytes) {
  return SendMessage(socket(), bytes, nullptr);
}

absl::Status UdpSocket::SendTo(std::span<const std::byte> bytes, const SocketAddress& peer) {
  return SendMessage(socket(), bytes, &peer);
}

void UdpSocket::Close() {
  socket().Close();
  if (ahead_ != nullptr) ahead_->Close();
}

absl::StatusOr<SocketAddress> UdpSocket::local_address() const {
  const Use use(socket(), User::kGuest);
  if (!use.ok()) return use.Refusal("local address");
  return internal::LocalAddress(socket_->fd());
}

}  // namespace bobbin::io
