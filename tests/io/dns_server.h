// SPDX-License-Identifier: Apache-2.0
//
// DnsServer: a name server of a test's own, on 127.0.0.1, over UDP and TCP, on an OS thread. It
// answers what it is told to, also wrongly, late or not at all.
//
//   Called from   any thread. The handler is called on the server's own thread.
//   Suspends      never; the destructor blocks until its thread has ended.
//
// Example:
//   DnsServer server([](const DnsAsked& asked) -> DnsReply {
//     if (asked.name == "a.test") return {.addresses = {"192.0.2.1"}};
//     return {.code = DnsReply::kNoName};
//   });
//   io::Resolver resolver({.servers = {server.address()}});

#ifndef BOBBIN_TESTS_IO_DNS_SERVER_H_
#define BOBBIN_TESTS_IO_DNS_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bobbin/io/address.h>

namespace bobbin::test {

struct DnsAsked {
  std::string name;
  bool is_ipv6 = false;  // Whether AAAA is asked for; else A.
  bool is_over_tcp = false;

  friend bool operator==(const DnsAsked&, const DnsAsked&) = default;
};

// What is sent before the answer, if there is one.
enum class DnsNonsense : uint8_t {
  kWrongNumber,    // An answer to another question number.
  kWrongQuestion,  // An answer to the question for another name.
  kGarbage,        // Bytes that are no message.
  kShort,          // Less than a header.
};

struct DnsReply {
  static constexpr uint8_t kOk = 0, kFailure = 2, kNoName = 3, kNotImplemented = 4, kRefusal = 5;
  enum class Delivery : uint8_t {
    kSent,
    kHeld,       // Until DnsServer::Release.
    kDropped,    // Never.
    kTruncated,  // Over UDP only a header that says so; over TCP whole.
    kHungUp,     // Over UDP as kTruncated; the TCP connection is closed without an answer.
    kLooping,    // The answer's name leads in a circle.
    kCut,        // The answer's record ends in the middle.
  };

  uint8_t code = kOk;
  // Those of the family that is asked for are sent.
  std::vector<std::string> addresses = {};
  // The name is an alias of this one, whose addresses they are.
  std::string alias = {};
  uint32_t keep = 60;
  // How long it may be kept that there is nothing; empty: not said.
  std::optional<uint32_t> keep_nothing = std::nullopt;
  Delivery delivery = Delivery::kSent;
  std::vector<DnsNonsense> before = {};
};

class DnsServer {
 public:
  using Handler = std::function<DnsReply(const DnsAsked&)>;

  explicit DnsServer(Handler handler);
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;
  ~DnsServer();

  const io::SocketAddress& address() const;
  // What has been asked so far; the two families of a name in no order.
  std::vector<DnsAsked> asked() const;
  // How often it was asked for `name`, in either family.
  size_t CountOf(const std::string& name) const;
  // The names that it was asked for, one after the other, each once in a row.
  std::vector<std::string> names() const;
  // Sends what is held, and holds nothing from now on.
  void Release();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_DNS_SERVER_H_
