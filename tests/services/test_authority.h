// SPDX-License-Identifier: Apache-2.0
//
// TestAuthority: signs certificates for tests, made when they are asked for, so that none expires.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_TESTS_SERVICES_TEST_AUTHORITY_H_
#define BOBBIN_TESTS_SERVICES_TEST_AUTHORITY_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <bobbin/io/tls_certificate.h>

namespace bobbin::test {

class TestAuthority {
 public:
  enum class Key { kEcdsa, kEd25519, kRsa };

  struct Wish {
    // As subjectAltName has them: "DNS:a.test", "IP:127.0.0.1".
    std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1"};
    // From now.
    std::chrono::seconds begins = std::chrono::hours(-1);
    std::chrono::seconds ends = std::chrono::hours(24);
    Key key = Key::kEcdsa;
    // Signed by an authority in between, whose certificate is in the chain.
    bool has_intermediate = false;
  };

  explicit TestAuthority(const std::string& name);
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;
  ~TestAuthority();

  // The one of this process, for tests that need no other.
  static const TestAuthority& Default();

  const std::string& root_pem() const { return root_pem_; }
  io::TlsCertificate Issue(const Wish& wish) const;
  io::TlsCertificate Issue() const { return Issue(Wish{}); }

 private:
  struct Issuer;
  std::unique_ptr<Issuer> issuer_;
  std::string root_pem_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SERVICES_TEST_AUTHORITY_H_
