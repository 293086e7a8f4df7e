// SPDX-License-Identifier: Apache-2.0
//
// OpenSslServer: what is behind a TlsServerContext. ServerSetup: what it is made of.
//
//   Called from   any thread, any number at a time.
//   Suspends      Accept and Open: they shake hands.

#ifndef BOBBIN_IO_SRC_TLS_OPENSSL_SERVER_H_
#define BOBBIN_IO_SRC_TLS_OPENSSL_SERVER_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "openssl/ssl.h"

#include <bobbin/core/mutex.h>
#include <bobbin/io/tls_server_context.h>

#include "io/src/socket.h"
#include "io/src/tls/handshake_counters.h"
#include "io/src/tls/openssl.h"
#include "io/src/tls/tls_channel.h"
#include "io/src/tls_seam.h"

namespace bobbin::io::internal {

// What a server is until it is renewed. Never changes.
class ServerSetup {
 public:
  // The way to make one.
  static absl::StatusOr<std::shared_ptr<const ServerSetup>> Make(const TlsServerOptions& options);

  SSL_CTX* context() const { return context_.get(); }
  std::string_view alpn() const { return alpn_; }
  PlatformPool* handshakes() const { return handshakes_; }

 private:
  // Identities of which no two have keys of one kind, the first for each: OpenSSL holds one of each
  // kind, and shows a client the one whose signature that can check.
  using Choice = absl::InlinedVector<const Identity*, 3>;

  absl::Status Prepare(const TlsServerOptions& options);
  // Takes down which names each identity is for.
  void AddNames();
  // The certificates for a name: those that have it as it stands, then those with a wildcard.
  Choice Find(std::string_view name) const;
  void Add(const std::string& name, Choice& choice) const;
  // For clients that name nobody: the first one, and those that are for one of its names, too.
  Choice Default() const;

  // OpenSSL asks for them inside of a handshake.
  static int ChooseCertificate(SSL* ssl, int* alert, void* setup);
  static int ChooseProtocol(SSL* ssl, const unsigned char** chosen, unsigned char* chosen_bytes,
                            const unsigned char* offered, unsigned offered_bytes, void* setup);

  OpenSslPtr<SSL_CTX> context_;
  std::vector<Identity> identities_;
  // Whose identities have them, by number, as the options list them. Names in lower case,
  // "*.example.org" as it stands, an address as its bytes behind a blank.
  absl::flat_hash_map<std::string, std::vector<size_t>> names_;
  Choice default_;  // What the context shows.
  std::string alpn_;
  PlatformPool* handshakes_ = nullptr;
};

class OpenSslServer final : public TlsServer {
 public:
  explicit OpenSslServer(std::shared_ptr<const ServerSetup> setup) : setup_(std::move(setup)) {}

  absl::StatusOr<std::unique_ptr<http::internal::Transport>> Accept(
      TcpStream& stream) const override;
  TlsStatistics Statistics() const override { return counters_.Statistics(); }

  // Shakes hands over a connected socket, which must outlive the channel.
  absl::StatusOr<std::unique_ptr<TlsChannel>> Open(Socket& socket) const;
  absl::Status Renew(const TlsServerOptions& options) const;

 private:
  absl::StatusOr<std::unique_ptr<TlsChannel>> Open(Socket& socket, const ServerSetup& setup,
                                                   std::string_view alpn) const;
  std::shared_ptr<const ServerSetup> setup() const;

  mutable Mutex mutex_;
  mutable std::shared_ptr<const ServerSetup> setup_ ABSL_GUARDED_BY(mutex_);
  mutable HandshakeCounters counters_;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_OPENSSL_SERVER_H_
