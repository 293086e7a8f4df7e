// SPDX-License-Identifier: Apache-2.0

#include <net/if.h>

#include <cstring>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/io/address.h>

#include "tests/support/status_matchers.h"

namespace bobbin::io {
namespace {

using test::StatusIs;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(SocketAddressTest, ParsesWhatItPrints) {
  for (const char* const text : {"127.0.0.1:7000", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80",
                                 "[::]:0", "[2001:db8::7]:443", "[::ffff:1.2.3.4]:1"}) {
    const auto address = SocketAddress::Parse(text);
    ASSERT_OK(address) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(SocketAddressTest, KnowsFamilyAndPort) {
  const auto v4 = SocketAddress::Parse("127.0.0.1:7000");
  ASSERT_OK(v4);
  EXPECT_FALSE(v4->is_ipv6());
  EXPECT_EQ(v4->family(), AF_INET);
  EXPECT_EQ(v4->port(), 7000);
  const auto v6 = SocketAddress::Parse("::1", 80);
  ASSERT_OK(v6);
  EXPECT_TRUE(v6->is_ipv6());
  EXPECT_EQ(v6->family(), AF_INET6);
  EXPECT_EQ(v6->port(), 80);
  EXPECT_EQ(v6->ToString(), "[::1]:80");
}

TEST(SocketAddressTest, RefusesWhatIsNoNumericAddress) {
  for (const char* const text : {"",
                                 ":",
                                 "127.0.0.1",
                                 "127.0.0.1:",
                                 ":80",
                                 "127.0.0.1:65536",
                                 "127.0.0.1:-1",
                                 "127.0.0.1:+1",
                                 "127.0.0.1: 80",
                                 "127.0.0.1:80 ",
                                 "127.0.0.1:0x50",
                                 "1.2.3:80",
                                 "01.2.3.4.5:80",
                                 "localhost:80",
                                 "::1",
                                 "::1:80",
                                 "[::1]",
                                 "[::1]80",
                                 "[]:80",
                                 "[127.0.0.1]:80",
                                 "[::1:80",
                                 "::1]:80",
                                 "[::g]:80",
                                 "[::1%]:80",
                                 "127.0.0.1%lo:80",
                                 "[::1%no-such-interface]:80"}) {
    EXPECT_THAT(SocketAddress::Parse(text), StatusIs(kInvalid)) << text;
  }
}

TEST(SocketAddressTest, AnErrorSaysWhatIsWrong) {
  EXPECT_EQ(MessageOf(SocketAddress::Parse("127.0.0.1").status()),
            "address 127.0.0.1: no port; write host:port");
  EXPECT_EQ(MessageOf(SocketAddress::Parse("::1:80").status()),
            "address ::1:80: an IPv6 host stands in brackets: [::1]:80");
  EXPECT_EQ(MessageOf(SocketAddress::Parse("1.2.3.4:99999").status()),
            "address 1.2.3.4:99999: the port is not a number from 0 to 65535");
}

TEST(SocketAddressTest, ComparesAllOfIt) {
  const auto at = [](const char* text) { return *SocketAddress::Parse(text); };
  EXPECT_EQ(at("127.0.0.1:1"), at("127.0.0.1:1"));
  EXPECT_NE(at("127.0.0.1:1"), at("127.0.0.1:2"));
  EXPECT_NE(at("127.0.0.1:1"), at("127.0.0.2:1"));
  EXPECT_NE(at("127.0.0.1:1"), at("[::1]:1"));
  EXPECT_EQ(at("[::1]:1"), at("[0:0:0:0:0:0:0:1]:1"));
  EXPECT_NE(at("[::1]:1"), at("[::2]:1"));
  EXPECT_EQ(SocketAddress(), at("0.0.0.0:0"));
}

TEST(SocketAddressTest, KeepsTheInterfaceOfALinkLocalAddress) {
  char name[IF_NAMESIZE] = {};
  ASSERT_NE(if_indextoname(1, name), nullptr);
  const std::string text = std::string("[fe80::1%") + name + "]:80";
  const auto address = SocketAddress::Parse(text);
  ASSERT_OK(address);
  EXPECT_EQ(address->ToString(), text);
  EXPECT_EQ(*address, *SocketAddress::Parse("[fe80::1%1]:80"));
}

TEST(SocketAddressTest, AnInterfaceIsKnownByNumberToo) {
  const auto unknown = SocketAddress::Parse("[fe80::1%4294967295]:80");
  ASSERT_OK(unknown);
  EXPECT_EQ(unknown->ToString(), "[fe80::1%4294967295]:80");
  EXPECT_NE(*unknown, *SocketAddress::Parse("[fe80::1]:80"));
  EXPECT_EQ(MessageOf(SocketAddress::Parse("fe80::1%0", 80).status()),
            "address fe80::1%0: no such interface");
}

TEST(SocketAddressTest, PrintsTheShortestForm) {
  const auto printed = [](const char* text) { return SocketAddress::Parse(text)->ToString(); };
  EXPECT_EQ(printed("[2001:0DB8:0:0:1:0:0:1]:80"), "[2001:db8::1:0:0:1]:80");
  EXPECT_EQ(printed("[0:0:0:0:0:0:0:0]:00080"), "[::]:80");
  EXPECT_EQ(printed("[2001:db8:0:1:1:1:1:1]:1"), "[2001:db8:0:1:1:1:1:1]:1");
}

TEST(SocketAddressTest, APartOfATextIsNotTakenForTheWhole) {
  using std::string_view_literals::operator""sv;
  for (const auto text : {"127.0.0.1\0:80"sv, "[::1\0]:80"sv, "[fe80::1%lo\0x]:80"sv}) {
    EXPECT_THAT(SocketAddress::Parse(text), StatusIs(kInvalid));
  }
}

TEST(SocketAddressTest, HasAHostAndAPort) {
  const auto v6 = SocketAddress::Parse("[::1]:80");
  ASSERT_OK(v6);
  EXPECT_EQ(v6->HostToString(), "::1");
  EXPECT_EQ(v6->WithPort(443).ToString(), "[::1]:443");
  const auto v4 = SocketAddress::Parse("1.2.3.4:80");
  ASSERT_OK(v4);
  EXPECT_EQ(v4->HostToString(), "1.2.3.4");
  EXPECT_EQ(v4->WithPort(443).ToString(), "1.2.3.4:443");
}

TEST(SocketAddressTest, KnowsLoopback) {
  for (const char* const host : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(SocketAddress::Parse(host, 0)->is_loopback()) << host;
  }
  for (const char* const host :
       {"128.0.0.1", "0.0.0.0", "::", "::2", "::ffff:1.2.3.4", "fe80::1"}) {
    EXPECT_FALSE(SocketAddress::Parse(host, 0)->is_loopback()) << host;
  }
}

TEST(SocketAddressTest, HashesAsItCompares) {
  const auto at = [](const char* text) { return *SocketAddress::Parse(text); };
  const absl::flat_hash_set<SocketAddress> set = {at("1.2.3.4:1"), at("[::1]:1"),
                                                  at("[fe80::1%1]:1")};
  EXPECT_TRUE(set.contains(at("1.2.3.4:1")));
  EXPECT_TRUE(set.contains(at("[0::1]:1")));
  EXPECT_FALSE(set.contains(at("1.2.3.4:2")));
  EXPECT_FALSE(set.contains(at("[fe80::1]:1")));
}

TEST(SocketAddressTest, ComesAndGoesAsTheSystemsAddress) {
  for (const char* const text : {"127.0.0.1:7000", "[::1]:80"}) {
    const auto address = SocketAddress::Parse(text);
    ASSERT_OK(address);
    const auto copy = SocketAddress::FromSockaddr(address->data(), address->bytes());
    ASSERT_OK(copy);
    EXPECT_EQ(*copy, *address);
    EXPECT_THAT(SocketAddress::FromSockaddr(address->data(), address->bytes() - 1),
                StatusIs(kInvalid));
  }
  const sockaddr other{.sa_family = AF_UNIX, .sa_data = {}};
  EXPECT_THAT(SocketAddress::FromSockaddr(&other, sizeof(other)), StatusIs(kInvalid));
}

}  // namespace
}  // namespace bobbin::io
