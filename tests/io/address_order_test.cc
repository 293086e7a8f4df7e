// SPDX-License-Identifier: Apache-2.0

#include "io/src/address_order.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/io/address.h>

namespace bobbin::test {
namespace {

using io::SocketAddress;
using testing::ElementsAre;

struct Row {
  std::string_view address;
  std::string_view sender;  // Empty: there is no route.
};

std::vector<std::string> Ordered(const std::vector<Row>& rows) {
  std::vector<SocketAddress> addresses;
  std::vector<std::optional<SocketAddress>> senders;
  for (const Row& row : rows) {
    addresses.push_back(*SocketAddress::Parse(row.address, 0));
    senders.push_back(row.sender.empty() ? std::nullopt
                                         : std::optional(*SocketAddress::Parse(row.sender, 0)));
  }
  std::vector<std::string> ordered;
  for (const SocketAddress& address : io::internal::OrderedBySender(addresses, senders)) {
    ordered.push_back(address.HostToString());
  }
  return ordered;
}

// The examples of RFC 6724, 10.2, as far as they do not ask for the longest common prefix.
TEST(AddressOrderTest, IsThatOfTheRfc) {
  EXPECT_THAT(Ordered({{"198.51.100.121", "169.254.13.78"}, {"2001:db8:1::1", "2001:db8:1::2"}}),
              ElementsAre("2001:db8:1::1", "198.51.100.121"));
  EXPECT_THAT(Ordered({{"2001:db8:1::1", "fe80::1"}, {"198.51.100.121", "198.51.100.117"}}),
              ElementsAre("198.51.100.121", "2001:db8:1::1"));
  EXPECT_THAT(Ordered({{"10.1.2.3", "10.1.2.4"}, {"2001:db8:1::1", "2001:db8:1::2"}}),
              ElementsAre("2001:db8:1::1", "10.1.2.3"));
  EXPECT_THAT(Ordered({{"2001:db8:1::1", "2001:db8:1::2"}, {"fe80::1", "fe80::2"}}),
              ElementsAre("fe80::1", "2001:db8:1::1"));
  EXPECT_THAT(
      Ordered({{"2001:db8:1::1", "2002:c633:6401::2"}, {"2002:c633:6401::1", "2002:c633:6401::2"}}),
      ElementsAre("2002:c633:6401::1", "2001:db8:1::1"));
}

TEST(AddressOrderTest, WhatNoRouteLeadsToIsLast) {
  EXPECT_THAT(Ordered({{"2001:db8::1", ""}, {"192.0.2.1", "192.0.2.9"}}),
              ElementsAre("192.0.2.1", "2001:db8::1"));
}

TEST(AddressOrderTest, WhatIsEqualStaysAsItWas) {
  EXPECT_THAT(Ordered({{"192.0.2.3", "10.0.0.1"}, {"192.0.2.1", "10.0.0.1"}, {"192.0.2.2", ""}}),
              ElementsAre("192.0.2.3", "192.0.2.1", "192.0.2.2"));
}

TEST(AddressOrderTest, AsksTheKernel) {
  std::vector<SocketAddress> addresses = {*SocketAddress::Parse("127.0.0.1:80"),
                                          *SocketAddress::Parse("127.0.0.2:80")};
  const std::vector<SocketAddress> before = addresses;
  io::internal::OrderAddresses(addresses);
  EXPECT_EQ(addresses, before);
}

}  // namespace
}  // namespace bobbin::test
