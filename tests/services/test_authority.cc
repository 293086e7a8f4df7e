// SPDX-License-Identifier: Apache-2.0

#include "tests/services/test_authority.h"

#include <atomic>

#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509v3.h"

#include <bobbin/core/check.h>

namespace bobbin::test {

struct FreeForTest {
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { ::BIO_free(bio); }
};

namespace {

template <typename T>
using Owned = std::unique_ptr<T, FreeForTest>;

void Expect(bool is_good) { BOBBIN_CHECK(is_good, "OpenSSL does not do what a test needs"); }

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(bytes));
}

std::string PemOf(X509* certificate) {
  const Owned<BIO> bio(::BIO_new(::BIO_s_mem()));
  Expect(::PEM_write_bio_X509(bio.get(), certificate) == 1);
  return Text(bio.get());
}

std::string PemOf(EVP_PKEY* key) {
  const Owned<BIO> bio(::BIO_new(::BIO_s_mem()));
  Expect(::PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Text(bio.get());
}

Owned<EVP_PKEY> MakeKey(TestAuthority::Key kind) {
  Owned<EVP_PKEY> key;
  switch (kind) {
    case TestAuthority::Key::kEcdsa:
      key.reset(EVP_EC_gen("P-256"));
      break;
    case TestAuthority::Key::kEd25519:
      key.reset(::EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
      break;
    case TestAuthority::Key::kRsa: {
      // One for all of them: its primes take a while to find.
      static EVP_PKEY* const shared = EVP_RSA_gen(2048);
      Expect(::EVP_PKEY_up_ref(shared) == 1);
      key.reset(shared);
    }
  }
  Expect(key != nullptr);
  return key;
}

void AddExtension(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = ::X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  Expect(extension != nullptr);
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
}

// A certificate without its signature.
Owned<X509> Draft(const std::string& name, EVP_PKEY* key, std::chrono::seconds begins,
                  std::chrono::seconds ends) {
  static std::atomic<long> serial{1};
  Owned<X509> made(::X509_new());
  ::X509_set_version(made.get(), X509_VERSION_3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()), ++serial);
  ::X509_gmtime_adj(X509_getm_notBefore(made.get()), begins.count());
  ::X509_gmtime_adj(X509_getm_notAfter(made.get()), ends.count());
  ::X509_set_pubkey(made.get(), key);
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return made;
}

}  // namespace

struct TestAuthority::Issuer {
  // With `by` null it signs itself.
  Issuer(const std::string& name, const Issuer* by) : key(MakeKey(Key::kEcdsa)) {
    certificate = Draft(name, key.get(), std::chrono::hours(-1), std::chrono::hours(48));
    const Issuer& signer = by != nullptr ? *by : *this;
    AddExtension(certificate.get(), signer.certificate.get(), NID_basic_constraints,
                 "critical,CA:TRUE");
    AddExtension(certificate.get(), signer.certificate.get(), NID_key_usage,
                 "critical,keyCertSign,cRLSign");
    signer.Sign(certificate.get());
  }

  void Sign(X509* draft) const {
    ::X509_set_issuer_name(draft, ::X509_get_subject_name(certificate.get()));
    Expect(::X509_sign(draft, key.get(), ::EVP_sha256()) > 0);
  }

  Owned<EVP_PKEY> key;
  Owned<X509> certificate;
};

TestAuthority::TestAuthority(const std::string& name)
    : issuer_(std::make_unique<Issuer>(name, nullptr)),
      root_pem_(PemOf(issuer_->certificate.get())) {}

TestAuthority::~TestAuthority() = default;

const TestAuthority& TestAuthority::Default() {
  static const TestAuthority authority("bobbin's test authority");
  return authority;
}

io::TlsCertificate TestAuthority::Issue(const Wish& wish) const {
  std::unique_ptr<Issuer> between;
  if (wish.has_intermediate) between = std::make_unique<Issuer>("in between", issuer_.get());
  const Issuer& signer = between != nullptr ? *between : *issuer_;
  const Owned<EVP_PKEY> key = MakeKey(wish.key);
  const Owned<X509> made = Draft("bobbin's test", key.get(), wish.begins, wish.ends);
  std::string names;
  for (const std::string& name : wish.names) names += (names.empty() ? "" : ",") + name;
  AddExtension(made.get(), signer.certificate.get(), NID_subject_alt_name, names);
  signer.Sign(made.get());
  return {.chain_pem =
              PemOf(made.get()) + (between != nullptr ? PemOf(between->certificate.get()) : ""),
          .key_pem = PemOf(key.get())};
}

}  // namespace bobbin::test
