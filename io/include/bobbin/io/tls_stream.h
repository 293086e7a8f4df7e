// SPDX-License-Identifier: Apache-2.0
//
// TlsStream: a connection that nobody else can read or change, to a peer that has shown who it is.
//
// TLS 1.2 and 1.3, by OpenSSL, which here does nothing but compute: what it has sealed is written,
// and what it is to open is read, by a stream of ours. So every wait obeys deadlines and requests
// to stop, and no carrier blocks. A stream exists once its handshake is done.
//
// The end of a TLS connection is said (close_notify), inside what is sealed. A connection that ends
// without it may have been cut off by somebody in between: a Read then fails, and does not return
// 0. A peer that is known to end so, and says in its own protocol how much there is to come, has
// lost nothing.
//
//   Called from   As TcpStream: virtual, platform and foreign threads; one reader and one writer at
//                 a time. Close: any thread at any time. Moving and destroying: nobody else may be
//                 about to begin a call.
//   Suspends      Accept and Connect, which shake hands; Read, Write and those built on them;
//                 ShutdownWrite.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED. A Read has lost nothing. What an
//                 interrupted write was given may have been sealed; then it is sent before what is
//                 written next, and WriteCounted tells how much that is.
//   Errors        UNAUTHENTICATED: the peer's certificate is not good, or it has none. UNAVAILABLE:
//                 the peer reset, has gone, cut the connection off, refuses this side, or does not
//                 speak TLS; the message has OpenSSL's reason. ABORTED: this side has closed it.
//                 FAILED_PRECONDITION: a second reader or writer; a write after ShutdownWrite.
//                 OUT_OF_RANGE: ReadExact met the end. Of connecting: as TcpStream.
//   Lifetime      Closed by the destructor. The buffer of a call must live until the call returns.
//   Cost          A handshake: some hundred microseconds of computing on a carrier, with RSA keys
//                 some more; a resumed one half of that. A read or write: that of TcpStream, a few
//                 uncontended locks, and some microseconds for 16 KiB. A connection at rest: about
//                 15 KB, half of it OpenSSL's object, and no buffer; see docs/tls.md.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto peer, bobbin::io::TlsStream::Connect(tls, "example.org", 443));
//   BOBBIN_RETURN_IF_ERROR(peer.WriteAll(std::as_bytes(std::span(request))));
//   BOBBIN_ASSIGN_OR_RETURN(size_t received, peer.Read(buffer));

#ifndef BOBBIN_IO_TLS_STREAM_H_
#define BOBBIN_IO_TLS_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/progress.h>
#include <bobbin/io/tcp.h>
#include <bobbin/io/tls_client_context.h>
#include <bobbin/io/tls_options.h>
#include <bobbin/io/tls_server_context.h>
#include <bobbin/io/unix.h>

namespace bobbin::io {

namespace internal {
class TlsChannel;
}

class TlsStream {
 public:
  // Holds nothing; to be assigned to.
  TlsStream();
  TlsStream(TlsStream&& other) noexcept;
  TlsStream& operator=(TlsStream&& other) noexcept;
  ~TlsStream();

  // Shakes hands with a client that has connected. A connection whose handshake fails is closed.
  static absl::StatusOr<TlsStream> Accept(const TlsServerContext& context, TcpStream stream);
  static absl::StatusOr<TlsStream> Accept(const TlsServerContext& context, UnixStream stream);
  // The same where the connection is somebody else's, as a ServerConnection's: `stream` stays where
  // it is, must outlive what is returned, and is closed with it. A drain ends the connection below:
  // then a Read fails, as if the peer had cut it off.
  static absl::StatusOr<TlsStream> AcceptOver(const TlsServerContext& context, TcpStream& stream);

  // Connects as TcpStream does, and shakes hands with the server, whose name is `host`.
  static absl::StatusOr<TlsStream> Connect(const TlsClientContext& context, std::string_view host,
                                           uint16_t port, const ConnectOptions& options = {});
  // The same over a connection that there is.
  static absl::StatusOr<TlsStream> Connect(const TlsClientContext& context, std::string_view host,
                                           TcpStream stream);
  static absl::StatusOr<TlsStream> Connect(const TlsClientContext& context, std::string_view host,
                                           UnixStream stream);

  // Waits until something comes and returns how much; 0 when the peer has said that it has
  // finished. An empty buffer gets 0 at once.
  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  // Fills `buffer`.
  absl::Status ReadExact(std::span<std::byte> buffer);
  // Seals and sends some of it, 64 KiB at most, and returns how much.
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes);
  absl::StatusOr<size_t> Write(std::span<const std::span<const std::byte>> parts);
  // Writes all of it. Small parts are sealed together.
  absl::Status WriteAll(std::span<const std::byte> bytes);
  absl::Status WriteAll(std::span<const std::span<const std::byte>> parts);
  // The same, and tells how much was sealed, which an error may have kept from being sent.
  Progress WriteCounted(std::span<const std::byte> bytes);
  Progress WriteCounted(std::span<const std::span<const std::byte>> parts);

  // Says that nothing more will be written. Reading goes on.
  absl::Status ShutdownWrite();
  // Ends the connection. Calls of other threads return ABORTED, from now on all calls do. Never
  // waits: the peer is told (close_notify) if that goes without waiting and nobody is in a write.
  void Close();
  // Whether it is open, and nothing has come that nobody has read. Never waits.
  bool IsQuiet() const;

  TlsVersion version() const;
  // Such as "TLS_AES_256_GCM_SHA384".
  std::string_view cipher() const;
  // The protocol that both sides have chosen; empty if none.
  std::string_view alpn() const;
  // The name that the client has asked for; empty if none.
  std::string_view server_name() const;
  // Whether the handshake has gone on with the keys of an earlier connection.
  bool is_resumed() const;
  // The peer's certificate as PEM; empty if it has shown none.
  std::string peer_certificate_pem() const;

  // What it is sent over: for addresses and options. To read or write there breaks the connection.
  TcpStream& tcp();
  // Whether it holds a connection, open or closed.
  explicit operator bool() const { return state_ != nullptr; }

 private:
  struct State;
  explicit TlsStream(std::unique_ptr<State> state);
  static absl::StatusOr<TlsStream> Accept(const TlsServerContext& context,
                                          std::unique_ptr<State> state);
  internal::TlsChannel& channel() const;

  std::unique_ptr<State> state_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_TLS_STREAM_H_
