// SPDX-License-Identifier: Apache-2.0

#include "openssl/err.h"
#include "openssl/pem.h"

#include "tests/io/tls_test.h"

namespace bobbin::test {

namespace {

void UseTestCertificate(SSL_CTX* context) {
  const io::TlsCertificate pem = TestAuthority::Default().Issue();
  BIO* const chain = ::BIO_new_mem_buf(pem.chain_pem.data(), -1);
  BIO* const key_pem = ::BIO_new_mem_buf(pem.key_pem.data(), -1);
  X509* const certificate = ::PEM_read_bio_X509(chain, nullptr, nullptr, nullptr);
  EVP_PKEY* const key = ::PEM_read_bio_PrivateKey(key_pem, nullptr, nullptr, nullptr);
  EXPECT_EQ(::SSL_CTX_use_certificate(context, certificate), 1);
  EXPECT_EQ(::SSL_CTX_use_PrivateKey(context, key), 1);
  ::EVP_PKEY_free(key);
  ::X509_free(certificate);
  ::BIO_free(key_pem);
  ::BIO_free(chain);
}

absl::Status Broken(const char* what) {
  ::ERR_clear_error();
  return absl::InternalError(what);
}

}  // namespace

RawTlsPeer::RawTlsPeer(io::TcpStream& stream, Side side, void (*prepare)(SSL_CTX*))
    : stream_(stream),
      context_(::SSL_CTX_new(side == Side::kServer ? TLS_server_method() : TLS_client_method())) {
  if (side == Side::kServer) UseTestCertificate(context_);
  if (prepare != nullptr) prepare(context_);
  ssl_ = ::SSL_new(context_);
  ::SSL_set_bio(ssl_, ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  side == Side::kServer ? ::SSL_set_accept_state(ssl_) : ::SSL_set_connect_state(ssl_);
}

RawTlsPeer::~RawTlsPeer() {
  ::SSL_free(ssl_);
  ::SSL_CTX_free(context_);
}

absl::Status RawTlsPeer::Flush() {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(::SSL_get_wbio(ssl_), &data);
  const std::string sealed(data, static_cast<size_t>(bytes));
  static_cast<void>(BIO_reset(::SSL_get_wbio(ssl_)));
  return stream_.WriteAll(Bytes(sealed));
}

absl::Status RawTlsPeer::Feed() {
  std::array<std::byte, 4096> buffer;
  BOBBIN_ASSIGN_OR_RETURN(const size_t received, stream_.Read(buffer));
  if (received == 0) return absl::OutOfRangeError("the end");
  ::BIO_write(::SSL_get_rbio(ssl_), buffer.data(), static_cast<int>(received));
  return absl::OkStatus();
}

absl::Status RawTlsPeer::Handshake() {
  while (true) {
    const int result = ::SSL_do_handshake(ssl_);
    const bool wants = result <= 0 && ::SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ;
    BOBBIN_RETURN_IF_ERROR(Flush());
    if (result == 1) return absl::OkStatus();
    if (!wants) return Broken("handshake");
    BOBBIN_RETURN_IF_ERROR(Feed());
  }
}

absl::Status RawTlsPeer::Write(std::string_view text) {
  if (::SSL_write(ssl_, text.data(), static_cast<int>(text.size())) <= 0) return Broken("write");
  return Flush();
}

absl::StatusOr<std::string> RawTlsPeer::Read(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    const int result = ::SSL_read(ssl_, text.data() + have, static_cast<int>(bytes - have));
    if (result > 0) {
      have += static_cast<size_t>(result);
      continue;
    }
    if (::SSL_get_error(ssl_, result) != SSL_ERROR_WANT_READ) return Broken("read");
    BOBBIN_RETURN_IF_ERROR(Feed());
  }
  return text;
}

absl::Status RawTlsPeer::UpdateKeys(int kind) {
  if (::SSL_key_update(ssl_, kind) != 1 || ::SSL_do_handshake(ssl_) != 1) return Broken("keys");
  return Flush();
}

absl::Status RawTlsPeer::SayGoodbye() {
  ::SSL_shutdown(ssl_);
  return Flush();
}

}  // namespace bobbin::test
