// SPDX-License-Identifier: Apache-2.0
//
// OpenSslClient: what is behind a TlsClientContext. SessionCache: sessions, by server.
//
//   Called from   any thread, any number at a time.
//   Suspends      Connect and Open: they shake hands. Make, as TlsClientContext::Make.

#ifndef BOBBIN_IO_SRC_TLS_OPENSSL_CLIENT_H_
#define BOBBIN_IO_SRC_TLS_OPENSSL_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "openssl/ssl.h"

#include <bobbin/core/mutex.h>
#include <bobbin/io/tls_client_context.h>

#include "io/src/socket.h"
#include "io/src/tls/handshake_counters.h"
#include "io/src/tls/openssl.h"
#include "io/src/tls/tls_channel.h"
#include "io/src/tls_seam.h"

namespace bobbin::io::internal {

class SessionCache {
 public:
  // Of how many servers.
  explicit SessionCache(size_t servers_max) : servers_max_(servers_max) {}

  // The newest one for that server, or null. With TLS 1.3 it is used once: who sees a ticket twice
  // knows that the two connections are of one client.
  OpenSslPtr<SSL_SESSION> Take(const std::string& server);
  void Keep(const std::string& server, OpenSslPtr<SSL_SESSION> session);

 private:
  // A server gives two tickets, as a rule; with some to spare for connections that begin together.
  static constexpr size_t kSessionsPerServer = 4;

  struct Server {
    std::vector<OpenSslPtr<SSL_SESSION>> sessions;  // The newest one last.
    uint64_t used = 0;
  };
  void DropTheOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t servers_max_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Server> servers_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

class OpenSslClient final : public TlsClient, public std::enable_shared_from_this<OpenSslClient> {
 public:
  explicit OpenSslClient(size_t sessions_max) : sessions_(sessions_max) {}

  // The way to make one.
  static absl::StatusOr<std::shared_ptr<const OpenSslClient>> Make(const TlsClientOptions& options);

  absl::StatusOr<std::unique_ptr<http::internal::Transport>> Connect(
      TcpStream& stream, std::string_view host) const override;
  TlsStatistics Statistics() const override { return counters_.Statistics(); }

  // Shakes hands with the server of that name over a connected socket, which must outlive the
  // channel.
  absl::StatusOr<std::unique_ptr<TlsChannel>> Open(Socket& socket, std::string_view host) const {
    return Open(socket, host, alpn_);
  }

 private:
  absl::Status Prepare(const TlsClientOptions& options);
  absl::StatusOr<std::unique_ptr<TlsChannel>> Open(Socket& socket, std::string_view host,
                                                   std::string_view alpn) const;
  // Has the handshake ask for that name and believe no other. INVALID_ARGUMENT: it is none.
  absl::Status Expect(SSL* ssl, std::string_view host) const;

  static int TakeSession(SSL* ssl, SSL_SESSION* session);

  OpenSslPtr<SSL_CTX> context_;
  bool is_verifying_ = true;
  bool keeps_sessions_ = true;
  std::string alpn_;
  mutable SessionCache sessions_;
  mutable HandshakeCounters counters_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_OPENSSL_CLIENT_H_
