// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/tls_stream.h>

#include "io/src/stream_access.h"
#include "io/src/tls/openssl_client.h"
#include "io/src/tls/openssl_server.h"
#include "io/src/tls/tls_channel.h"

namespace bobbin::io {

using internal::OpenSslClient;
using internal::OpenSslServer;
using internal::StreamAccess;
using internal::TlsChannel;

struct TlsStream::State {
  explicit State(TcpStream stream) : own(std::move(stream)), tcp(own) {}
  // Over one that stays where it is.
  struct Over {
    TcpStream& stream;
  };
  explicit State(Over over) : tcp(over.stream) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { channel != nullptr ? channel->Close() : tcp.Close(); }

  TcpStream own;
  TcpStream& tcp;
  std::unique_ptr<TlsChannel> channel;
};

TlsStream::TlsStream() = default;
TlsStream::TlsStream(TlsStream&& other) noexcept = default;
TlsStream& TlsStream::operator=(TlsStream&& other) noexcept = default;
TlsStream::~TlsStream() = default;
TlsStream::TlsStream(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsChannel& TlsStream::channel() const {
  BOBBIN_CHECK(state_ != nullptr, "this TlsStream holds no connection");
  return *state_->channel;
}

absl::StatusOr<TlsStream> TlsStream::Accept(const TlsServerContext& context, TcpStream stream) {
  return Accept(context, std::make_unique<State>(std::move(stream)));
}

absl::StatusOr<TlsStream> TlsStream::AcceptOver(const TlsServerContext& context,
                                                TcpStream& stream) {
  return Accept(context, std::make_unique<State>(State::Over{stream}));
}

absl::StatusOr<TlsStream> TlsStream::Accept(const TlsServerContext& context,
                                            std::unique_ptr<State> state) {
  BOBBIN_CHECK(context.server_ != nullptr, "Accept wants a TlsServerContext that holds something");
  // There is no other kind.
  const auto& server = static_cast<const OpenSslServer&>(*context.server_);
  BOBBIN_ASSIGN_OR_RETURN(state->channel, server.Open(StreamAccess::SocketOf(state->tcp)));
  return TlsStream(std::move(state));
}

absl::StatusOr<TlsStream> TlsStream::Accept(const TlsServerContext& context, UnixStream stream) {
  return Accept(context, StreamAccess::AsTcp(std::move(stream)));
}

absl::StatusOr<TlsStream> TlsStream::Connect(const TlsClientContext& context, std::string_view host,
                                             uint16_t port, const ConnectOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(TcpStream stream, TcpStream::Connect(options, host, port));
  return Connect(context, host, std::move(stream));
}

absl::StatusOr<TlsStream> TlsStream::Connect(const TlsClientContext& context, std::string_view host,
                                             TcpStream stream) {
  BOBBIN_CHECK(context.client_ != nullptr, "Connect wants a TlsClientContext that holds something");
  // There is no other kind.
  const auto& client = static_cast<const OpenSslClient&>(*context.client_);
  auto state = std::make_unique<State>(std::move(stream));
  BOBBIN_ASSIGN_OR_RETURN(state->channel, client.Open(StreamAccess::SocketOf(state->tcp), host));
  return TlsStream(std::move(state));
}

absl::StatusOr<TlsStream> TlsStream::Connect(const TlsClientContext& context, std::string_view host,
                                             UnixStream stream) {
  return Connect(context, host, StreamAccess::AsTcp(std::move(stream)));
}

absl::StatusOr<size_t> TlsStream::Read(std::span<std::byte> buffer) {
  return channel().Read(buffer);
}

absl::Status TlsStream::ReadExact(std::span<std::byte> buffer) {
  return channel().ReadExact(buffer);
}

absl::StatusOr<size_t> TlsStream::Write(std::span<const std::byte> bytes) {
  return channel().Write({&bytes, 1});
}

absl::StatusOr<size_t> TlsStream::Write(std::span<const std::span<const std::byte>> parts) {
  return channel().Write(parts);
}

absl::Status TlsStream::WriteAll(std::span<const std::byte> bytes) {
  return channel().WriteCounted({&bytes, 1}).status;
}

absl::Status TlsStream::WriteAll(std::span<const std::span<const std::byte>> parts) {
  return channel().WriteCounted(parts).status;
}

Progress TlsStream::WriteCounted(std::span<const std::byte> bytes) {
  return channel().WriteCounted({&bytes, 1});
}

Progress TlsStream::WriteCounted(std::span<const std::span<const std::byte>> parts) {
  return channel().WriteCounted(parts);
}

absl::Status TlsStream::ShutdownWrite() { return channel().ShutdownWrite(); }

void TlsStream::Close() { channel().Close(); }

bool TlsStream::IsQuiet() const { return channel().IsDrained() && state_->tcp.IsQuiet(); }

TlsVersion TlsStream::version() const { return channel().version(); }

std::string_view TlsStream::cipher() const { return channel().cipher(); }

std::string_view TlsStream::alpn() const { return channel().alpn(); }

std::string_view TlsStream::server_name() const { return channel().server_name(); }

bool TlsStream::is_resumed() const { return channel().is_resumed(); }

std::string TlsStream::peer_certificate_pem() const { return channel().peer_certificate_pem(); }

TcpStream& TlsStream::tcp() {
  BOBBIN_CHECK(state_ != nullptr, "this TlsStream holds no connection");
  return state_->tcp;
}

}  // namespace bobbin::io
