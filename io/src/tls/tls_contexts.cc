// SPDX-License-Identifier: Apache-2.0
//
// What makes contexts, and loads what they are made of: the half of their headers that needs
// OpenSSL.

#include <memory>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/file_system.h>
#include <bobbin/io/tls_certificate.h>
#include <bobbin/io/tls_client_context.h>
#include <bobbin/io/tls_server_context.h>

#include "io/src/tls/openssl_client.h"
#include "io/src/tls/openssl_server.h"

namespace bobbin::io {

absl::StatusOr<TlsCertificate> TlsCertificate::Load(std::string_view chain_path,
                                                    std::string_view key_path) {
  TlsCertificate certificate;
  BOBBIN_ASSIGN_OR_RETURN(certificate.chain_pem, ReadFile(chain_path));
  BOBBIN_ASSIGN_OR_RETURN(certificate.key_pem, ReadFile(key_path));
  return certificate;
}

absl::StatusOr<TlsServerContext> TlsServerContext::Make(const TlsServerOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(auto setup, internal::ServerSetup::Make(options));
  return TlsServerContext(std::make_shared<const internal::OpenSslServer>(std::move(setup)));
}

absl::Status TlsServerContext::Renew(const TlsServerOptions& options) const {
  BOBBIN_CHECK(server_ != nullptr, "this TlsServerContext holds nothing");
  // There is no other kind.
  return static_cast<const internal::OpenSslServer&>(*server_).Renew(options);
}

absl::StatusOr<TlsClientContext> TlsClientContext::Make(const TlsClientOptions& options) {
  BOBBIN_ASSIGN_OR_RETURN(auto client, internal::OpenSslClient::Make(options));
  return TlsClientContext(std::move(client));
}

}  // namespace bobbin::io
