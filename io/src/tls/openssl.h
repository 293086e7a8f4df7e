// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL: its objects with owners, its errors as text, and what it takes as PEM.
//
// OpenSSL keeps its errors in a queue for each OS thread, in which anybody may have left some, and
// SSL_get_error looks there. So the queue is emptied before each call whose result is looked at,
// and again after it, and in between the thread must not suspend: it would go on beside another
// queue.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_TLS_OPENSSL_H_
#define BOBBIN_IO_SRC_TLS_OPENSSL_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "openssl/evp.h"
#include "openssl/ssl.h"
#include "openssl/x509.h"

#include <bobbin/io/tls_certificate.h>
#include <bobbin/io/tls_options.h>

namespace bobbin::io::internal {

struct FreeOpenSsl {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
  void operator()(SSL_SESSION* session) const { ::SSL_SESSION_free(session); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(BIO_METHOD* method) const { ::BIO_meth_free(method); }
};

template <typename T>
using OpenSslPtr = std::unique_ptr<T, FreeOpenSsl>;

// Why the last call failed; empties the queue.
struct OpenSslError {
  int reason = 0;  // SSL_R_..., where it is one of TLS.
  std::string text;
};
OpenSslError TakeOpenSslError();

// A certificate with its key and those who have signed it.
struct Identity {
  OpenSslPtr<X509> certificate;
  OpenSslPtr<EVP_PKEY> key;
  std::vector<OpenSslPtr<X509>> signers;

  // INVALID_ARGUMENT if it cannot be read, or the key is not its own.
  static absl::StatusOr<Identity> Read(const TlsCertificate& pem);
};

// All certificates in a PEM text, at least one. `what` is for the message.
absl::StatusOr<std::vector<OpenSslPtr<X509>>> ReadCertificates(std::string_view what,
                                                               std::string_view pem);

// A certificate as PEM.
std::string CertificatePem(X509* certificate);

// Protocols as ALPN writes them: each behind its length. INVALID_ARGUMENT: an empty one, or one of
// more than 255 bytes.
absl::StatusOr<std::string> AlpnWire(const std::vector<std::string>& protocols);

// What both sides' contexts begin with. `method` is TLS_server_method() or TLS_client_method().
OpenSslPtr<SSL_CTX> MakeContext(const SSL_METHOD* method, TlsVersion version_min);

// Has the context believe those, and nobody else.
void AddRoots(SSL_CTX* context, const std::vector<OpenSslPtr<X509>>& roots);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_OPENSSL_H_
