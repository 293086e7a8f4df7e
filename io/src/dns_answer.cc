// SPDX-License-Identifier: Apache-2.0

#include "io/src/dns_answer.h"

#include <ares.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace bobbin::io::internal {

namespace {

constexpr size_t kHeaderBytes = 12;
constexpr uint16_t kTypeSoa = 6;
// More than fit into a datagram; what is beyond is of no use to anybody.
constexpr size_t kAddressesMax = 128;

// A message, read from front to back. Once something does not fit, nothing does any more.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> message) : message_(message) {}

  bool is_good() const { return is_good_; }
  uint32_t Number(size_t bytes) {
    uint32_t number = 0;
    if (!Has(bytes)) return 0;
    for (size_t i = 0; i < bytes; ++i) number = number << 8 | message_[at_ + i];
    at_ += bytes;
    return number;
  }
  void Skip(size_t bytes) {
    if (Has(bytes)) at_ += bytes;
  }
  // Passes a name, compressed or not; c-ares knows those that lead in a circle.
  void SkipName() {
    char* name = nullptr;
    long bytes = 0;
    if (!Has(1) ||
        ares_expand_name(message_.data() + at_, message_.data(), static_cast<int>(message_.size()),
                         &name, &bytes) != ARES_SUCCESS) {
      is_good_ = false;
      return;
    }
    ares_free_string(name);
    Skip(static_cast<size_t>(bytes));
  }

 private:
  bool Has(size_t bytes) {
    is_good_ = is_good_ && message_.size() - at_ >= bytes;
    return is_good_;
  }

  const std::span<const uint8_t> message_;
  size_t at_ = 0;
  bool is_good_ = true;
};

// How long it may be kept that there is nothing (RFC 2308): not at all, if that is not said.
std::chrono::seconds KeepNothing(std::span<const uint8_t> message) {
  Reader reader(message);
  reader.Skip(4);
  const uint32_t questions = reader.Number(2);
  const uint32_t records = reader.Number(2) + reader.Number(2);  // Answers and authorities.
  reader.Skip(2);
  for (uint32_t i = 0; i < questions && reader.is_good(); ++i) {
    reader.SkipName();
    reader.Skip(4);
  }
  for (uint32_t i = 0; i < records && reader.is_good(); ++i) {
    reader.SkipName();
    const uint32_t type = reader.Number(2);
    reader.Skip(2);
    const uint32_t keep = reader.Number(4);
    const uint32_t bytes = reader.Number(2);
    if (type != kTypeSoa) {
      reader.Skip(bytes);
      continue;
    }
    reader.SkipName();
    reader.SkipName();
    reader.Skip(16);
    const uint32_t minimum = reader.Number(4);
    if (reader.is_good()) return std::chrono::seconds(std::min(keep, minimum));
  }
  return std::chrono::seconds(0);
}

DnsOutcome OutcomeOfCode(uint8_t code) {
  switch (code) {
    case 0:
      return DnsOutcome::kAddresses;
    case 2:
      return DnsOutcome::kFailure;
    case 3:
      return DnsOutcome::kNoName;
    case 4:
      return DnsOutcome::kNotImplemented;
    case 5:
      return DnsOutcome::kRefusal;
    default:
      return DnsOutcome::kNonsense;
  }
}

template <typename Sockaddr>
void Add(const Sockaddr& address, int seconds, DnsAnswer& answer) {
  const auto parsed =
      SocketAddress::FromSockaddr(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (!parsed.ok()) return;
  const std::chrono::seconds keep(std::max(seconds, 0));
  answer.keep = answer.addresses.empty() ? keep : std::min(answer.keep, keep);
  answer.addresses.push_back(*parsed);
}

// The addresses, along the aliases; c-ares' word for how it went.
int TakeAddresses(int family, std::span<const uint8_t> message, DnsAnswer& answer) {
  int count = static_cast<int>(kAddressesMax);
  const int bytes = static_cast<int>(message.size());
  if (family == AF_INET) {
    std::array<ares_addrttl, kAddressesMax> records;
    const int status = ares_parse_a_reply(message.data(), bytes, nullptr, records.data(), &count);
    for (int i = 0; status == ARES_SUCCESS && i < count; ++i) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr = records[static_cast<size_t>(i)].ipaddr;
      Add(address, records[static_cast<size_t>(i)].ttl, answer);
    }
    return status;
  }
  std::array<ares_addr6ttl, kAddressesMax> records;
  const int status = ares_parse_aaaa_reply(message.data(), bytes, nullptr, records.data(), &count);
  for (int i = 0; status == ARES_SUCCESS && i < count; ++i) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    std::memcpy(&address.sin6_addr, &records[static_cast<size_t>(i)].ip6addr,
                sizeof(address.sin6_addr));
    Add(address, records[static_cast<size_t>(i)].ttl, answer);
  }
  return status;
}

}  // namespace

DnsAnswer DnsAnswer::Parse(int family, std::span<const uint8_t> message) {
  DnsAnswer answer;
  if (message.size() < kHeaderBytes) {
    answer.outcome = DnsOutcome::kNonsense;
    return answer;
  }
  answer.outcome = OutcomeOfCode(message[3] & 15);
  if (answer.outcome == DnsOutcome::kAddresses) {
    const int status = TakeAddresses(family, message, answer);
    if (status == ARES_ENODATA || (status == ARES_SUCCESS && answer.addresses.empty())) {
      answer.outcome = DnsOutcome::kNoAddress;
    } else if (status != ARES_SUCCESS) {
      answer.outcome = DnsOutcome::kNonsense;
    }
  }
  if (answer.outcome == DnsOutcome::kNoAddress || answer.outcome == DnsOutcome::kNoName) {
    answer.keep = KeepNothing(message);
  }
  return answer;
}

}  // namespace bobbin::io::internal
