// SPDX-License-Identifier: Apache-2.0

#include "io/src/address_order.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <tuple>

#include "io/src/file_descriptor.h"

namespace bobbin::io::internal {

namespace {

using Bytes16 = std::array<uint8_t, 16>;

// IPv4 as ::ffff:1.2.3.4.
Bytes16 BytesOf(const SocketAddress& address) {
  Bytes16 bytes{};
  if (address.is_ipv6()) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.data());
    std::memcpy(bytes.data(), &v6->sin6_addr, bytes.size());
  } else {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.data());
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(bytes.data() + 12, &v4->sin_addr, 4);
  }
  return bytes;
}

struct Policy {
  Bytes16 prefix;
  int bits;
  int precedence;
  int label;
};

// RFC 6724, 2.1, the longest prefixes first.
constexpr Policy kPolicies[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50, 0},  // ::1
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 35, 4},         // ::ffff:0:0, IPv4
    {{}, 96, 1, 3},                                                  // ::
    {{0x20, 0x01, 0, 0}, 32, 5, 5},                                  // 2001::, Teredo
    {{0x20, 0x02}, 16, 30, 2},                                       // 2002::, 6to4
    {{0x3f, 0xfe}, 16, 1, 12},                                       // 3ffe::
    {{0xfe, 0xc0}, 10, 1, 11},                                       // fec0::
    {{0xfc}, 7, 3, 13},                                              // fc00::
    {{}, 0, 40, 1},                                                  // All others.
};

bool HasPrefix(const Bytes16& bytes, const Policy& policy) {
  for (int bit = 0; bit < policy.bits; ++bit) {
    const auto at = static_cast<size_t>(bit / 8);
    const int mask = 0x80 >> bit % 8;
    if (((bytes[at] ^ policy.prefix[at]) & mask) != 0) return false;
  }
  return true;
}

const Policy& PolicyOf(const SocketAddress& address) {
  const Bytes16 bytes = BytesOf(address);
  return *std::find_if(std::begin(kPolicies), std::end(kPolicies),
                       [&](const Policy& policy) { return HasPrefix(bytes, policy); });
}

// How far it reaches, as the scopes of multicast count it.
int ScopeOf(const SocketAddress& address) {
  constexpr int kLink = 2, kSite = 5, kGlobal = 14;
  const Bytes16 bytes = BytesOf(address);
  if (address.is_loopback()) return kLink;
  if (!address.is_ipv6()) return bytes[12] == 169 && bytes[13] == 254 ? kLink : kGlobal;
  if (bytes[0] == 0xff) return bytes[1] & 15;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return kLink;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0xc0) return kSite;
  return kGlobal;
}

// Smaller goes first.
using Rank = std::tuple<bool, bool, bool, int, int>;

Rank RankOf(const SocketAddress& address, const std::optional<SocketAddress>& sender) {
  const Policy& policy = PolicyOf(address);
  const int scope = ScopeOf(address);
  return {!sender, !sender || ScopeOf(*sender) != scope,
          !sender || PolicyOf(*sender).label != policy.label, -policy.precedence, scope};
}

// From where the kernel would send.
std::optional<SocketAddress> SenderTo(const SocketAddress& address) {
  constexpr uint16_t kAnyPort = 9;
  const FileDescriptor fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress target = address.port() == 0 ? address.WithPort(kAnyPort) : address;
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  auto* const sender = reinterpret_cast<sockaddr*>(&storage);
  if (!fd.is_open() || ::connect(fd.get(), target.data(), target.bytes()) != 0 ||
      ::getsockname(fd.get(), sender, &bytes) != 0) {
    return std::nullopt;
  }
  const auto parsed = SocketAddress::FromSockaddr(sender, bytes);
  return parsed.ok() ? std::optional(*parsed) : std::nullopt;
}

}  // namespace

std::vector<SocketAddress> OrderedBySender(
    const std::vector<SocketAddress>& addresses,
    const std::vector<std::optional<SocketAddress>>& senders) {
  std::vector<size_t> order(addresses.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return RankOf(addresses[a], senders[a]) < RankOf(addresses[b], senders[b]);
  });
  std::vector<SocketAddress> ordered;
  for (const size_t i : order) ordered.push_back(addresses[i]);
  return ordered;
}

void OrderAddresses(std::vector<SocketAddress>& addresses) {
  if (addresses.size() < 2) return;
  std::vector<std::optional<SocketAddress>> senders;
  for (const SocketAddress& address : addresses) senders.push_back(SenderTo(address));
  addresses = OrderedBySender(addresses, senders);
}

}  // namespace bobbin::io::internal
