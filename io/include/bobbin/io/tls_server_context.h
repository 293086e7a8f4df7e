// SPDX-License-Identifier: Apache-2.0
//
// TlsServerContext: how a server speaks TLS: its certificates, and what it asks of clients.
//
// Given to TlsStream::Accept, or to an http::Server. Of several certificates a client gets one
// whose names (subjectAltName, wildcards included) cover the name it asks for; if it asks for none,
// or for one that nobody has, the first one, or one that shares a name with it. Where keys of
// several kinds (ECDSA, RSA, Ed25519) are there for a name, the client gets the kind that it can
// check, and of those the one that it likes best. Of two with keys of one kind the first counts,
// but a name as it stands counts before a wildcard.
//
// The type is bobbin::io's, so that http::Server can take one; making one is bobbin::tls's, and so
// is OpenSSL.
//
//   Called from   any thread, any number at a time.
//   Suspends      never. Make and Renew compute for about a millisecond.
//   Errors        of Make and Renew: INVALID_ARGUMENT: no certificate, one that cannot be read, or
//                 a key that is not its own.
//   Lifetime      A copy is the same context; it lives as long as a copy or a connection of it.
//   Cost          Sessions are the client's to keep: it gets them as tickets, sealed with a key
//                 that the context has made for itself. The server keeps nothing.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto tls, bobbin::io::TlsServerContext::Make(
//                                         {.certificates = {certificate}, .alpn = {"http/1.1"}}));

#ifndef BOBBIN_IO_TLS_SERVER_CONTEXT_H_
#define BOBBIN_IO_TLS_SERVER_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/tls_certificate.h>
#include <bobbin/io/tls_options.h>

namespace bobbin {
class PlatformPool;
}

namespace bobbin::io {

namespace http {
class Server;
}
namespace internal {
class TlsServer;
}

// Whether clients have to say who they are.
enum class ClientCertificates : uint8_t {
  kNotAsked,
  kAsked,  // A client may have none; one that is not good is refused.
  kRequired,
};

// Whether a client gets tickets to resume its session with, which saves both sides the costly part
// of the next handshake.
enum class SessionTickets : uint8_t { kIssued, kNone };

struct TlsServerOptions {
  // At least one.
  std::vector<TlsCertificate> certificates = {};
  // The protocols above TLS, the preferred ones first. A client that names some, and none of these,
  // is refused. Empty: clients may name what they like, and none is chosen.
  std::vector<std::string> alpn = {};
  TlsVersion version_min = TlsVersion::kTls12;
  SessionTickets tickets = SessionTickets::kIssued;
  ClientCertificates client_certificates = ClientCertificates::kNotAsked;
  // Whose signature makes a client's certificate good, as PEM.
  std::string client_roots_pem = {};
  // Computes the handshakes, on its platform threads; it must outlive the context and what is
  // accepted with it. Its queue bounds how many wait: beyond it a handshake fails with
  // RESOURCE_EXHAUSTED. Null: they are computed on the carrier, where one keeps the others waiting
  // for up to a millisecond, and a storm for many (docs/tls.md).
  PlatformPool* handshakes = nullptr;
};

class TlsServerContext {
 public:
  // Holds nothing; to be assigned to.
  TlsServerContext() = default;

  // REQUIRES: the program links bobbin::tls.
  static absl::StatusOr<TlsServerContext> Make(const TlsServerOptions& options);

  // Has connections that begin from now on be as `options` say; those that have begun go on. For
  // certificates that are about to expire. Sessions of before can be resumed. If it fails, nothing
  // has changed. REQUIRES: it holds a context.
  absl::Status Renew(const TlsServerOptions& options) const;

  TlsStatistics Statistics() const;
  // Whether it holds a context.
  explicit operator bool() const { return server_ != nullptr; }

 private:
  friend class TlsStream;
  friend class http::Server;
  explicit TlsServerContext(std::shared_ptr<const internal::TlsServer> server)
      : server_(std::move(server)) {}

  std::shared_ptr<const internal::TlsServer> server_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_TLS_SERVER_CONTEXT_H_
