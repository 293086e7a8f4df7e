// SPDX-License-Identifier: Apache-2.0
//
// TlsClientContext: how a client speaks TLS: whom it believes, and the sessions it can resume.
//
// Given to TlsStream::Connect, or to an http::Client. A server is believed if its certificate is
// signed by one of the roots, is neither too old nor too new, and is for the name (or the address)
// that was connected to.
//
// The type is bobbin::io's, so that http::Client can take one; making one is bobbin::tls's, and so
// is OpenSSL.
//
//   Called from   any thread, any number at a time.
//   Suspends      Make, as ReadFile, where it takes the system's roots; then it computes for some
//                 milliseconds. Make one at the start, and share it.
//   Cancellation  Make returns CANCELLED or DEADLINE_EXCEEDED.
//   Errors        of Make: INVALID_ARGUMENT: roots or a certificate that cannot be read. NOT_FOUND:
//                 the system has no roots where systems have them, nor where SSL_CERT_FILE says.
//   Lifetime      A copy is the same context; it lives as long as a copy or a connection of it.
//   Cost          The system's roots: about 1 MB of memory.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto tls, bobbin::io::TlsClientContext::Make());
//   bobbin::io::http::Client client({.tls = tls});
//   BOBBIN_ASSIGN_OR_RETURN(auto response, client.Get("https://example.org/"));

#ifndef BOBBIN_IO_TLS_CLIENT_CONTEXT_H_
#define BOBBIN_IO_TLS_CLIENT_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include <bobbin/io/tls_certificate.h>
#include <bobbin/io/tls_options.h>

namespace bobbin::io {

namespace http::internal {
class ClientPool;
}
namespace internal {
class TlsClient;
}

// Which servers are believed.
enum class ServerCertificates : uint8_t {
  kVerified,
  // Whoever answers is believed, also who sits in between: for tests, and where the layer above
  // finds out who it is.
  kNotVerified,
};

struct TlsClientOptions {
  // Whose signature makes a server's certificate good, as PEM. Empty: the system's.
  std::string roots_pem = {};
  ServerCertificates server_certificates = ServerCertificates::kVerified;
  // For servers that ask who it is.
  std::optional<TlsCertificate> certificate = std::nullopt;
  // The protocols above TLS that it names, the preferred ones first. Empty: it names none.
  std::vector<std::string> alpn = {};
  TlsVersion version_min = TlsVersion::kTls12;
  // Of how many servers, by name and port, the newest session is kept for the next connection.
  // 0: every handshake is a full one.
  size_t sessions_max = 256;
};

class TlsClientContext {
 public:
  // Holds nothing; to be assigned to.
  TlsClientContext() = default;

  // REQUIRES: the program links bobbin::tls.
  static absl::StatusOr<TlsClientContext> Make(const TlsClientOptions& options = {});

  TlsStatistics Statistics() const;
  // Whether it holds a context.
  explicit operator bool() const { return client_ != nullptr; }

 private:
  friend class TlsStream;
  friend class http::internal::ClientPool;
  explicit TlsClientContext(std::shared_ptr<const internal::TlsClient> client)
      : client_(std::move(client)) {}

  std::shared_ptr<const internal::TlsClient> client_;
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_TLS_CLIENT_CONTEXT_H_
