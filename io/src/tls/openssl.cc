// SPDX-License-Identifier: Apache-2.0

#include "io/src/tls/openssl.h"

#include <limits>
#include <utility>

#include "openssl/err.h"
#include "openssl/pem.h"
#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>

namespace bobbin::io::internal {

namespace {

absl::Status NotReadable(std::string_view what, std::string_view why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, fmt::format("tls {}: {}", what, why));
}

// Without it OpenSSL would ask at the terminal.
int KnowNoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*nothing*/) { return 0; }

OpenSslPtr<BIO> ReaderOf(std::string_view text) {
  BOBBIN_CHECK(text.size() <= size_t{std::numeric_limits<int>::max()}, "a PEM text of 2 GiB");
  return OpenSslPtr<BIO>(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace

OpenSslError TakeOpenSslError() {
  // The first one is the cause; those behind it say how it was passed on.
  const unsigned long error = ::ERR_get_error();
  ::ERR_clear_error();
  if (error == 0) return {.text = "for no reason that OpenSSL gives"};
  const char* const text = ::ERR_reason_error_string(error);
  return {.reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0,
          .text = text != nullptr ? std::string(text) : fmt::format("error {:x}", error)};
}

absl::StatusOr<std::vector<OpenSslPtr<X509>>> ReadCertificates(std::string_view what,
                                                               std::string_view pem) {
  const NoSuspendScope own_error_queue;
  ::ERR_clear_error();
  const OpenSslPtr<BIO> reader = ReaderOf(pem);
  std::vector<OpenSslPtr<X509>> certificates;
  while (true) {
    OpenSslPtr<X509> next(::PEM_read_bio_X509(reader.get(), nullptr, KnowNoPassword, nullptr));
    if (next == nullptr) break;
    certificates.push_back(std::move(next));
  }
  const bool is_end = ERR_GET_REASON(::ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string why = TakeOpenSslError().text;
  if (!is_end) return NotReadable(what, why);
  if (certificates.empty()) return NotReadable(what, "there is no certificate in it");
  return certificates;
}

absl::StatusOr<Identity> Identity::Read(const TlsCertificate& pem) {
  BOBBIN_ASSIGN_OR_RETURN(auto chain, ReadCertificates("certificate", pem.chain_pem));
  const NoSuspendScope own_error_queue;
  ::ERR_clear_error();
  Identity identity;
  identity.certificate = std::move(chain.front());
  chain.erase(chain.begin());
  identity.signers = std::move(chain);
  const OpenSslPtr<BIO> reader = ReaderOf(pem.key_pem);
  identity.key.reset(::PEM_read_bio_PrivateKey(reader.get(), nullptr, KnowNoPassword, nullptr));
  if (identity.key == nullptr) return NotReadable("key", TakeOpenSslError().text);
  if (::X509_check_private_key(identity.certificate.get(), identity.key.get()) != 1) {
    return NotReadable("key", TakeOpenSslError().text);
  }
  ::ERR_clear_error();
  return identity;
}

std::string CertificatePem(X509* certificate) {
  if (certificate == nullptr) return {};
  const OpenSslPtr<BIO> text(::BIO_new(::BIO_s_mem()));
  ::PEM_write_bio_X509(text.get(), certificate);
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(text.get(), &data);
  return std::string(data, static_cast<size_t>(bytes));
}

absl::StatusOr<std::string> AlpnWire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255) {
      return NotReadable("alpn", "a protocol's name has 1 to 255 bytes");
    }
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  }
  return wire;
}

OpenSslPtr<SSL_CTX> MakeContext(const SSL_METHOD* method, TlsVersion version_min) {
  OpenSslPtr<SSL_CTX> context(::SSL_CTX_new(method));
  BOBBIN_CHECK(context != nullptr, "OpenSSL makes no context");
  SSL_CTX_set_min_proto_version(
      context.get(), version_min == TlsVersion::kTls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  // A peer may not shake hands anew in the middle: TLS 1.3 has done away with it for good reasons.
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A connection at rest has no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  return context;
}

void AddRoots(SSL_CTX* context, const std::vector<OpenSslPtr<X509>>& roots) {
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
  for (const OpenSslPtr<X509>& root : roots) ::X509_STORE_add_cert(store, root.get());
}

}  // namespace bobbin::io::internal
