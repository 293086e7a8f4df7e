// SPDX-License-Identifier: Apache-2.0
//
// TlsCertificate: who one side of a TLS connection is, with the proof.
//
// Of bobbin::tls. TlsServerContext and TlsClientContext take it apart, and say what is wrong with
// it.
//
//   Called from   any thread.
//   Suspends      Load, as ReadFile.
//   Cancellation  Load returns CANCELLED or DEADLINE_EXCEEDED.
//   Errors        of Load: those of ReadFile.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto certificate,
//                           bobbin::io::TlsCertificate::Load("/etc/app/chain.pem",
//                           "/etc/app/key.pem"));

#ifndef BOBBIN_IO_TLS_CERTIFICATE_H_
#define BOBBIN_IO_TLS_CERTIFICATE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bobbin::io {

struct TlsCertificate {
  // Certificates as PEM: its own first, then those of who has signed it, without the root.
  std::string chain_pem;
  // The private key as PEM, without a password.
  std::string key_pem;

  // Reads both from files.
  static absl::StatusOr<TlsCertificate> Load(std::string_view chain_path,
                                             std::string_view key_path);
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_TLS_CERTIFICATE_H_
