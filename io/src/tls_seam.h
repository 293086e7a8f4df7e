// SPDX-License-Identifier: Apache-2.0
//
// TlsServer, TlsClient: what HTTP needs of TLS, so that bobbin::io knows no OpenSSL.
//
//   Called from   any thread that may use the stream.
//   Suspends      Accept and Connect: they shake hands.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED.
//   Errors        as TlsStream.
//   Lifetime      The stream must outlive the transport.

#ifndef BOBBIN_IO_SRC_TLS_SEAM_H_
#define BOBBIN_IO_SRC_TLS_SEAM_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

#include <bobbin/io/tcp.h>
#include <bobbin/io/tls_options.h>

#include "io/src/http/transport.h"

namespace bobbin::io::internal {

// The transports speak HTTP/1.1, and say so in the handshake.
class TlsServer {
 public:
  TlsServer() = default;
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  virtual ~TlsServer() = default;

  // A transport that takes a connection that is cut off for one that ends.
  virtual absl::StatusOr<std::unique_ptr<http::internal::Transport>> Accept(
      TcpStream& stream) const = 0;
  virtual TlsStatistics Statistics() const = 0;
};

class TlsClient {
 public:
  TlsClient() = default;
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;
  virtual ~TlsClient() = default;

  virtual absl::StatusOr<std::unique_ptr<http::internal::Transport>> Connect(
      TcpStream& stream, std::string_view host) const = 0;
  virtual TlsStatistics Statistics() const = 0;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_SEAM_H_
