// SPDX-License-Identifier: Apache-2.0
//
// DnsAnswer: what a name server's message says about the addresses of a name.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_DNS_ANSWER_H_
#define BOBBIN_IO_SRC_DNS_ANSWER_H_

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include <bobbin/io/address.h>

namespace bobbin::io::internal {

enum class DnsOutcome : uint8_t {
  kUnasked,
  kAddresses,
  kNoAddress,       // The name exists.
  kNoName,          // NXDOMAIN.
  kSilence,         // Nobody has answered.
  kFailure,         // SERVFAIL.
  kRefusal,         // REFUSED.
  kNotImplemented,  // NOTIMP.
  kNonsense,        // An answer that cannot be read, or says that the question could not be.
};

struct DnsAnswer {
  // Of the answer to a question for addresses of `family`.
  static DnsAnswer Parse(int family, std::span<const uint8_t> message);

  // Whether it is worth nothing to ask another server.
  bool is_settled() const {
    return outcome == DnsOutcome::kAddresses || outcome == DnsOutcome::kNoAddress ||
           outcome == DnsOutcome::kNoName;
  }

  DnsOutcome outcome = DnsOutcome::kUnasked;
  std::vector<SocketAddress> addresses = {};
  // How long it may be kept, if it is settled.
  std::chrono::seconds keep{0};
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_DNS_ANSWER_H_
