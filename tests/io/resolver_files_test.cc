// SPDX-License-Identifier: Apache-2.0

#include "io/src/resolver_files.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "io/src/host_name.h"
#include "tests/io/temporary_directory.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"

namespace bobbin::test {
namespace {

using io::internal::Hosts;
using io::internal::ParseHosts;
using io::internal::ResolvConf;
using io::internal::ResolverFiles;
using io::internal::SearchedNames;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Texts(const std::vector<io::SocketAddress>& addresses) {
  std::vector<std::string> texts;
  for (const io::SocketAddress& address : addresses) texts.push_back(address.ToString());
  return texts;
}

TEST(ResolvConfTest, TakesWhatItKnows) {
  const ResolvConf conf = ResolvConf::Parse(
      "# generated\n"
      "nameserver 192.0.2.1\n"
      "  nameserver\t2001:db8::1   ; the other one\n"
      "nameserver 127.0.0.1:5353\r\n"
      "nameserver 192.0.2.4\n"
      "domain old.test\n"
      "search One.Test. two.test\n"
      "sortlist 130.155.160.0\n"
      "options ndots:3 timeout:7 attempts:4 rotate use-vc edns0 ndots:x\n"
      "nonsense\n");
  EXPECT_THAT(Texts(conf.servers),
              ElementsAre("192.0.2.1:53", "[2001:db8::1]:53", "127.0.0.1:5353"));
  EXPECT_THAT(conf.search, ElementsAre("one.test", "two.test"));
  EXPECT_EQ(conf.dots_min, 3);
  EXPECT_EQ(conf.attempt, std::chrono::seconds(7));
  EXPECT_EQ(conf.attempts, 4);
  EXPECT_TRUE(conf.rotates);
  EXPECT_TRUE(conf.uses_tcp);
}

TEST(ResolvConfTest, WithoutServersThisHostIsAsked) {
  for (const char* const text : {"", "\n", "nameserver\n", "nameserver x\n", "# nameserver ::1"}) {
    const ResolvConf conf = ResolvConf::Parse(text);
    EXPECT_THAT(Texts(conf.servers), ElementsAre("127.0.0.1:53")) << text;
    EXPECT_THAT(conf.search, IsEmpty());
    EXPECT_EQ(conf.dots_min, 1);
    EXPECT_EQ(conf.attempt, std::chrono::seconds(5));
    EXPECT_EQ(conf.attempts, 2);
  }
}

TEST(ResolvConfTest, NumbersAreBounded) {
  const ResolvConf large = ResolvConf::Parse("options ndots:100 timeout:1000 attempts:1000\n");
  EXPECT_EQ(large.dots_min, 15);
  EXPECT_EQ(large.attempt, std::chrono::seconds(30));
  EXPECT_EQ(large.attempts, 5);
  const ResolvConf small = ResolvConf::Parse("options ndots:0 timeout:0 attempts:0\n");
  EXPECT_EQ(small.dots_min, 0);
  EXPECT_EQ(small.attempt, std::chrono::seconds(1));
  EXPECT_EQ(small.attempts, 1);
  EXPECT_EQ(ResolvConf::Parse("options ndots:-1 attempts:99999999999").attempts, 2);
}

TEST(HostsFileTest, HasAnyNumberOfNamesAndAddresses) {
  const Hosts hosts = ParseHosts(
      "127.0.0.1 localhost\n"
      "::1 localhost ip6-localhost # loopback\n"
      "192.0.2.1 A.test alias\n"
      "192.0.2.1 a.test\n"
      "192.0.2.256 b.test\n"
      "fe80::1%1 link");
  EXPECT_THAT(Texts(hosts.at("localhost")), ElementsAre("127.0.0.1:0", "[::1]:0"));
  EXPECT_THAT(Texts(hosts.at("a.test")), ElementsAre("192.0.2.1:0"));
  EXPECT_EQ(hosts.at("link").front(), *io::SocketAddress::Parse("fe80::1%1", 0));
  EXPECT_FALSE(hosts.contains("b.test"));
}

TEST(SearchedNamesTest, ATooLongOneIsLeftOut) {
  const std::vector<std::string> search = {std::string(60, 's'), "", "t"};
  const std::string name = std::string(60, 'a') + "." + std::string(60, 'b') + "." +
                           std::string(60, 'c') + "." + std::string(60, 'd');
  EXPECT_THAT(SearchedNames(name, search, 9), ElementsAre(name, name + ".t", name));
}

TEST(ResolverFilesTest, AreReadAgainWhenTheyHaveChanged) {
  const TemporaryDirectory directory;
  const std::string conf = directory / "resolv.conf";
  const std::string hosts = directory / "hosts";
  auto files = ResolverFiles::LoadIfChanged(conf, hosts, nullptr);
  EXPECT_THAT(Texts(files->resolv_conf.servers), ElementsAre("127.0.0.1:53"));
  EXPECT_EQ(ResolverFiles::LoadIfChanged(conf, hosts, files), files) << "nothing has changed";
  // As often and as quickly as one likes, with the same length, also by another file of that name.
  for (int round = 0; round < 200; ++round) {
    const std::string address = "192.0.2." + std::to_string(100 + round % 100);
    const std::string path = round % 3 == 0 ? directory / "new" : conf;
    std::ofstream(path) << "nameserver " << address << "\n";
    if (path != conf) {
      ASSERT_EQ(std::rename(path.c_str(), conf.c_str()), 0);
    }
    const auto next = ResolverFiles::LoadIfChanged(conf, hosts, files);
    EXPECT_THAT(Texts(next->resolv_conf.servers), ElementsAre(address + ":53"));
    EXPECT_FALSE(next->SaysTheSameAs(*files));
    files = next;
  }
}

TEST(ResolverFilesTest, AnyBytesCanBeRead) {
  Random random(Seed());
  constexpr std::string_view kPieces[] = {"nameserver ", "search ", "options ", "ndots:", "\n", " ",
                                          "127.0.0.1",   "::1",     "%",        "a.test", "#",  ";",
                                          "9",           "\t"};
  for (int round = 0; round < Rounds(5000); ++round) {
    std::string text;
    for (uint64_t pieces = random.Below(30); pieces > 0; --pieces) {
      if (random.OneIn(5)) {
        text += static_cast<char>(random.Below(256));
      } else {
        text += kPieces[random.Below(std::size(kPieces))];
      }
    }
    EXPECT_GE(ResolvConf::Parse(text).servers.size(), 1u);
    for (const auto& [name, addresses] : ParseHosts(text)) EXPECT_FALSE(addresses.empty());
  }
}

}  // namespace
}  // namespace bobbin::test
