// SPDX-License-Identifier: Apache-2.0
//
// AskServer: one name, one name server, both families.
//
// A channel of c-ares for each of the families, on the caller's stack, so that neither can be
// harmed by what becomes of the other one. It says which descriptors are to be watched and until
// when; the rest is waiting for that, and telling it. It is used by one thread, outside of its own
// callbacks, and nothing of it lives on when the call returns.
//
//   Called from   Virtual threads of a runtime with an I/O poller, platform and foreign threads;
//                 the last two block.
//   Suspends      until the server has answered, or its time is over.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED.
//   Errors        RESOURCE_EXHAUSTED: no descriptor or no memory is left. What the server says, or
//                 does not say, is an answer.

#ifndef BOBBIN_IO_SRC_DNS_QUESTION_H_
#define BOBBIN_IO_SRC_DNS_QUESTION_H_

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

#include <bobbin/io/address.h>

#include "io/src/dns_answer.h"

namespace bobbin::io::internal {

enum class DnsTransport : uint8_t { kUdpFirst, kTcp };

struct DnsQuestion {
  const std::string& name;  // Canonical.
  const SocketAddress& server;
  DnsTransport transport = DnsTransport::kUdpFirst;
  // How long the server has.
  std::chrono::nanoseconds attempt;
  // How long a verdict of one family waits for the other one.
  std::chrono::nanoseconds other_family_wait;
};

struct FamilyAnswer {
  int family;  // AF_INET or AF_INET6.
  DnsAnswer answer = {};

  // Whether it will do, whatever comes of the other family. That there is no such name holds for
  // both, but there are servers that say so of every AAAA that they do not have (RFC 4074): from
  // them it counts only beside what they say of A.
  bool is_verdict() const {
    return answer.outcome == DnsOutcome::kAddresses ||
           (answer.outcome == DnsOutcome::kNoName && family == AF_INET);
  }
};

// Asks for those that are not settled.
absl::Status AskServer(const DnsQuestion& question, std::span<FamilyAnswer> families);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_DNS_QUESTION_H_
