// SPDX-License-Identifier: Apache-2.0

#include <arpa/nameser.h>
#include <netinet/in.h>
#include <resolv.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/io/resolver.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/dns_server.h"
#include "tests/io/io_test.h"
#include "tests/io/temporary_directory.h"

namespace bobbin::test {
namespace {

using namespace std::chrono_literals;
using io::Families;
using io::SearchList;
using std::chrono::microseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Delivery = DnsReply::Delivery;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kDataLoss = absl::StatusCode::kDataLoss;

// What a server says about each name; of others, that there is no such name.
using Zone = std::map<std::string, DnsReply>;

DnsServer::Handler Serving(Zone zone) {
  return [zone = std::move(zone)](const DnsAsked& asked) -> DnsReply {
    const auto reply = zone.find(asked.name);
    return reply != zone.end() ? reply->second : DnsReply{.code = DnsReply::kNoName};
  };
}

// One that waits as long as it takes: whether the machine is slow changes nothing.
io::ResolverOptions PatientOptions(std::vector<io::SocketAddress> servers) {
  return {.resolv_conf = "/no/such/file",
          .hosts = "/no/such/file",
          .servers = std::move(servers),
          .attempt = 60s,
          .attempts = 1,
          .other_family_wait = 60s};
}
io::ResolverOptions PatientOptions(const DnsServer& server) {
  return PatientOptions({server.address()});
}

std::vector<std::string> HostsOf(const absl::StatusOr<std::vector<io::SocketAddress>>& addresses) {
  std::vector<std::string> hosts;
  EXPECT_OK(addresses);
  if (!addresses.ok()) return hosts;
  for (const io::SocketAddress& address : *addresses) hosts.push_back(address.HostToString());
  return hosts;
}

BOBBIN_IO_TEST(ResolverTest, ReturnsTheAddressesOfBothFamilies) {
  const DnsServer server(
      Serving({{"a.test", {.addresses = {"192.0.2.1", "192.0.2.2", "2001:db8::1"}}}}));
  io::Resolver resolver(PatientOptions(server));
  EXPECT_THAT(HostsOf(resolver.Resolve("a.test")),
              UnorderedElementsAre("192.0.2.1", "192.0.2.2", "2001:db8::1"));
  EXPECT_THAT(HostsOf(resolver.Resolve({.families = Families::kIpv4}, "a.test")),
              UnorderedElementsAre("192.0.2.1", "192.0.2.2"));
  EXPECT_THAT(HostsOf(resolver.Resolve({.families = Families::kIpv6}, "A.Test.")),
              ElementsAre("2001:db8::1"));
  const auto with_port = resolver.Resolve({.families = Families::kIpv6, .port = 443}, "a.test");
  ASSERT_OK(with_port);
  EXPECT_EQ(with_port->front().ToString(), "[2001:db8::1]:443");
  EXPECT_EQ(resolver.Statistics().asked, 4u);
  EXPECT_EQ(resolver.Statistics().in_flight, 0u);
}

BOBBIN_IO_TEST(ResolverTest, AnAliasIsFollowed) {
  const DnsServer server(Serving({{"www.test", {.addresses = {"192.0.2.1"}, .alias = "b.test"}}}));
  io::Resolver resolver(PatientOptions(server));
  EXPECT_THAT(HostsOf(resolver.Resolve("www.test")), ElementsAre("192.0.2.1"));
}

BOBBIN_IO_TEST(ResolverTest, EachFailureHasItsCodeAndTheName) {
  const DnsServer server(Serving(
      {{"empty.test", {}},
       {"v4.test", {.addresses = {"192.0.2.1"}}},
       {"failing.test", {.code = DnsReply::kFailure}},
       {"refused.test", {.code = DnsReply::kRefusal}},
       {"unknown.test", {.code = DnsReply::kNotImplemented}},
       {"odd.test", {.code = 9}},
       {"looping.test", {.delivery = Delivery::kLooping}},
       {"cut.test", {.addresses = {"192.0.2.1", "2001:db8::1"}, .delivery = Delivery::kCut}}}));
  io::Resolver resolver(PatientOptions(server));
  const struct {
    std::string name;
    absl::StatusCode code;
    std::string why;
  } rows[] = {
      {"missing.test", kNotFound, "no such name"},
      {"empty.test", kFailedPrecondition, "the name has no address"},
      {"failing.test", kUnavailable, "the name servers fail (SERVFAIL)"},
      {"refused.test", kPermissionDenied, "the name servers refuse (REFUSED)"},
      {"unknown.test", kUnimplemented, "the name servers do not know how (NOTIMP)"},
      {"odd.test", kDataLoss, "the name servers answer nonsense"},
      {"looping.test", kDataLoss, "the name servers answer nonsense"},
      {"cut.test", kDataLoss, "the name servers answer nonsense"},
  };
  for (const auto& row : rows) {
    const absl::Status status = resolver.Resolve(row.name).status();
    EXPECT_THAT(status, StatusIs(row.code));
    EXPECT_EQ(MessageOf(status), "resolve " + row.name + ": " + row.why);
  }
  const absl::Status other = resolver.Resolve({.families = Families::kIpv6}, "v4.test").status();
  EXPECT_THAT(other, StatusIs(kFailedPrecondition));
  EXPECT_EQ(MessageOf(other), "resolve v4.test: the name has no IPv6 address");
}

BOBBIN_IO_TEST(ResolverTest, ATruncatedAnswerIsAskedForOverTcp) {
  DnsReply long_reply{.delivery = Delivery::kTruncated};
  std::vector<std::string> addresses;
  for (int i = 1; i <= 100; ++i) addresses.push_back("192.0.2." + std::to_string(i));
  long_reply.addresses = addresses;
  const DnsServer server(
      Serving({{"long.test", long_reply}, {"broken.test", {.delivery = Delivery::kHungUp}}}));
  io::Resolver resolver(PatientOptions(server));
  EXPECT_THAT(HostsOf(resolver.Resolve({.families = Families::kIpv4}, "long.test")),
              testing::UnorderedElementsAreArray(addresses));
  EXPECT_THAT(server.asked(), ElementsAre(DnsAsked{.name = "long.test"},
                                          DnsAsked{.name = "long.test", .is_over_tcp = true}));
  // One that hangs up there has not answered.
  EXPECT_THAT(resolver.Resolve({.families = Families::kIpv4}, "broken.test"),
              StatusIs(kUnavailable));
}

BOBBIN_IO_TEST(ResolverTest, WrongAnswersAreNotTakenForTheRightOne) {
  const std::vector<DnsNonsense> all = {DnsNonsense::kWrongNumber, DnsNonsense::kWrongQuestion,
                                        DnsNonsense::kGarbage, DnsNonsense::kShort};
  const DnsServer server(
      Serving({{"a.test", {.addresses = {"192.0.2.1", "2001:db8::1"}, .before = all}},
               {"forged.test", {.delivery = Delivery::kDropped, .before = all}}}));
  {
    io::Resolver resolver(PatientOptions(server));
    for (int round = 0; round < Rounds(20); ++round) {
      EXPECT_THAT(HostsOf(resolver.Resolve("a.test")),
                  UnorderedElementsAre("192.0.2.1", "2001:db8::1"));
    }
  }
  io::ResolverOptions impatient = PatientOptions(server);
  impatient.attempt = 30ms;
  io::Resolver resolver(impatient);
  const absl::Status status = resolver.Resolve("forged.test").status();
  EXPECT_THAT(status, StatusIs(kUnavailable));
  EXPECT_EQ(MessageOf(status), "resolve forged.test: no name server answers");
}

BOBBIN_IO_TEST(ResolverTest, AServerThatDoesNotAnswerIsAskedAgainAndThenGivenUp) {
  const DnsServer server(Serving({{"dropped.test", {.delivery = Delivery::kDropped}},
                                  {"a.test", {.addresses = {"192.0.2.1"}}}}));
  io::ResolverOptions options = PatientOptions(server);
  options.attempt = 20ms;
  options.attempts = 3;
  io::Resolver resolver(options);
  EXPECT_THAT(resolver.Resolve({.families = Families::kIpv4}, "dropped.test"),
              StatusIs(kUnavailable));
  AwaitTrue([&] { return server.CountOf("dropped.test") == 3; });
  // What comes after it is not held up by it.
  io::Resolver patient(PatientOptions(server));
  EXPECT_THAT(HostsOf(patient.Resolve("a.test")), ElementsAre("192.0.2.1"));
}

BOBBIN_IO_TEST(ResolverTest, AServerThatFailsRefusesOrHasGoneIsFollowedByTheNext) {
  const DnsServer failing([](const DnsAsked&) { return DnsReply{.code = DnsReply::kFailure}; });
  const DnsServer refusing([](const DnsAsked&) { return DnsReply{.code = DnsReply::kRefusal}; });
  const DnsServer good(Serving({{"a.test", {.addresses = {"192.0.2.1"}}}}));
  io::SocketAddress gone;
  {
    const DnsServer server(Serving({}));
    gone = server.address();
  }
  io::Resolver resolver(
      PatientOptions({failing.address(), refusing.address(), gone, good.address()}));
  EXPECT_THAT(HostsOf(resolver.Resolve("a.test")), ElementsAre("192.0.2.1"));
  EXPECT_EQ(failing.CountOf("a.test"), 2u);
  EXPECT_EQ(refusing.CountOf("a.test"), 2u);
  // That there is no such name is an answer: nobody else is asked.
  EXPECT_THAT(io::Resolver(PatientOptions({good.address(), failing.address()})).Resolve("b.test"),
              StatusIs(kNotFound));
  EXPECT_EQ(failing.CountOf("b.test"), 0u);
}

// One family's answer is an answer, whatever the server says about the other one.
BOBBIN_IO_TEST(ResolverTest, OneFamilyWillDo) {
  const std::vector<DnsReply> bad = {{.code = DnsReply::kFailure},
                                     {.code = DnsReply::kNoName},
                                     {.code = DnsReply::kNotImplemented},
                                     {.code = DnsReply::kRefusal},
                                     {},
                                     {.delivery = Delivery::kLooping}};
  for (const bool is_ipv6_good : {false, true}) {
    std::atomic<size_t> which{0};
    const DnsServer server([&](const DnsAsked& asked) -> DnsReply {
      if (asked.is_ipv6 == is_ipv6_good) return {.addresses = {"192.0.2.1", "2001:db8::1"}};
      return bad[which];
    });
    io::Resolver resolver(PatientOptions(server));
    for (; which < bad.size(); ++which) {
      EXPECT_THAT(HostsOf(resolver.Resolve("a.test")),
                  ElementsAre(is_ipv6_good ? "2001:db8::1" : "192.0.2.1"));
    }
  }
}

BOBBIN_IO_TEST(ResolverTest, AFamilyThatIsSilentIsNotWaitedForForLong) {
  for (const bool is_ipv6_good : {false, true}) {
    const DnsServer server([=](const DnsAsked& asked) -> DnsReply {
      if (asked.is_ipv6 != is_ipv6_good) return {.delivery = Delivery::kDropped};
      return {.addresses = {"192.0.2.1", "2001:db8::1"}};
    });
    io::ResolverOptions options = PatientOptions(server);
    options.attempt = 3600s;  // The watchdog would come first.
    options.other_family_wait = 5ms;
    options.cached_max = 10;
    io::Resolver resolver(options);
    const auto* const good = is_ipv6_good ? "2001:db8::1" : "192.0.2.1";
    EXPECT_THAT(HostsOf(resolver.Resolve("a.test")), ElementsAre(good));
    // What is known in part only is not kept.
    EXPECT_THAT(HostsOf(resolver.Resolve("a.test")), ElementsAre(good));
    EXPECT_EQ(resolver.Statistics().cached, 0u);
  }
}

BOBBIN_IO_TEST(ResolverTest, WhatIsNoNameIsRefusedUnasked) {
  const DnsServer server(Serving({}));
  io::Resolver resolver(PatientOptions(server));
  const struct {
    std::string name;
    std::string why;
  } rows[] = {
      {"", "it is empty"},
      {"1.2.3.300", "it looks like an IPv4 address, but is none"},
      {"1.2.3", "it looks like an IPv4 address, but is none"},
      {"127.1", "it looks like an IPv4 address, but is none"},
      {"2130706433", "it looks like an IPv4 address, but is none"},
      {"0x7f.1", "it looks like an IPv4 address, but is none"},
      {"host.0x7f", "it looks like an IPv4 address, but is none"},
      {"1.2.3.4.", "it looks like an IPv4 address, but is none"},
      {"01.02.03.04", "it looks like an IPv4 address, but is none"},
      {":::1", "it looks like an IPv6 address, but is none"},
      {"fe80::1%no-such-interface", "it looks like an IPv6 address, but is none"},
      {"[::1]", "it looks like an IPv6 address, but is none"},
      {"a..test", "there is nothing between two dots"},
      {".test", "there is nothing between two dots"},
      {".", "there is nothing between two dots"},
      {std::string(64, 'a') + ".test", "more than 63 bytes"},
      {"a b.test", "letters, digits, hyphens"},
      {"b\xc3\xbc"
       "cher.test",
       "xn--"},
      {std::string("a\0.test", 7), "letters, digits, hyphens"},
  };
  for (const auto& row : rows) {
    const absl::Status status = resolver.Resolve(row.name).status();
    EXPECT_THAT(status, StatusIs(kInvalidArgument)) << row.name;
    EXPECT_THAT(std::string(MessageOf(status)), HasSubstr(row.why)) << row.name;
  }
  std::string endless;
  while (endless.size() <= 253) endless += "abcdefghi.";
  EXPECT_THAT(resolver.Resolve(endless + "test"), StatusIs(kInvalidArgument));
  EXPECT_TRUE(server.asked().empty());
  EXPECT_EQ(resolver.Statistics().asked, 0u);
}

BOBBIN_IO_TEST(ResolverTest, AnAddressIsItself) {
  const DnsServer server(Serving({}));
  io::Resolver resolver(PatientOptions(server));
  EXPECT_THAT(HostsOf(resolver.Resolve("192.0.2.1")), ElementsAre("192.0.2.1"));
  EXPECT_THAT(HostsOf(resolver.Resolve("::1")), ElementsAre("::1"));
  EXPECT_EQ(resolver.Resolve({.port = 80}, "fe80::1%1")->front(),
            *io::SocketAddress::Parse("fe80::1%1", 80));
  EXPECT_THAT(resolver.Resolve({.families = Families::kIpv6}, "192.0.2.1"),
              StatusIs(kFailedPrecondition));
  EXPECT_TRUE(server.asked().empty());
}

// Writes what the files of a resolver say.
void Write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

std::string ConfFor(const DnsServer& server, std::string_view rest = "") {
  return "nameserver " + server.address().ToString() + "\n" + std::string(rest);
}

// A resolver with files of its own.
struct WithFiles {
  explicit WithFiles(const DnsServer& server, std::string_view conf = "",
                     std::string_view its_hosts = "", size_t cached_max = 0)
      : resolv_conf(directory / "resolv.conf"), hosts(directory / "hosts") {
    Write(resolv_conf, ConfFor(server, conf));
    Write(hosts, its_hosts);
    io::ResolverOptions options = PatientOptions({});
    options.resolv_conf = resolv_conf;
    options.hosts = hosts;
    options.cached_max = cached_max;
    resolver.emplace(options);
  }

  const TemporaryDirectory directory;
  const std::string resolv_conf;
  const std::string hosts;
  std::optional<io::Resolver> resolver;
};

BOBBIN_IO_TEST(ResolverTest, TheHostsFileAndLocalhostGoBeforeTheServers) {
  const DnsServer server(Serving({{"a.test", {.addresses = {"192.0.2.99"}}}}));
  WithFiles files(server, "",
                  "# a comment\n"
                  "192.0.2.1\ta.test  Alias.Test # another\n"
                  "2001:db8::1 a.test\n"
                  "not-an-address b.test\n"
                  "192.0.2.7 localdomain.localhost\n");
  io::Resolver& resolver = *files.resolver;
  EXPECT_THAT(HostsOf(resolver.Resolve("a.test")),
              UnorderedElementsAre("192.0.2.1", "2001:db8::1"));
  EXPECT_THAT(HostsOf(resolver.Resolve("ALIAS.test.")), ElementsAre("192.0.2.1"));
  EXPECT_THAT(resolver.Resolve({.families = Families::kIpv6}, "alias.test"),
              StatusIs(kFailedPrecondition));
  EXPECT_THAT(HostsOf(resolver.Resolve("localhost")), UnorderedElementsAre("::1", "127.0.0.1"));
  EXPECT_THAT(HostsOf(resolver.Resolve({.families = Families::kIpv4}, "any.localhost.")),
              ElementsAre("127.0.0.1"));
  EXPECT_THAT(HostsOf(resolver.Resolve("localdomain.localhost")), ElementsAre("192.0.2.7"));
  EXPECT_TRUE(server.asked().empty());
  EXPECT_THAT(resolver.Resolve("b.test"), StatusIs(kNotFound));
}

BOBBIN_IO_TEST(ResolverTest, TheSearchListIsTriedInItsOrder) {
  const DnsServer server(Serving({{"host.two.test", {.addresses = {"192.0.2.1"}}},
                                  {"empty.one.test", {}},
                                  {"ill.one.test", {.code = DnsReply::kFailure}},
                                  {"ill.two.test", {.addresses = {"192.0.2.2"}}}}));
  WithFiles files(server, "domain ignored.test\nsearch one.test two.test\noptions ndots:2\n");
  io::Resolver& resolver = *files.resolver;
  const auto asks = [&](std::string_view name, SearchList search = SearchList::kUsed) {
    const size_t before = server.names().size();
    resolver.Resolve({.search = search}, name).IgnoreError();
    const std::vector<std::string> names = server.names();
    return std::vector<std::string>(names.begin() + static_cast<ptrdiff_t>(before), names.end());
  };
  EXPECT_THAT(HostsOf(resolver.Resolve("host")), ElementsAre("192.0.2.1"));
  EXPECT_THAT(server.names(), ElementsAre("host.one.test", "host.two.test"));
  // Fewer dots than ndots: the suffixes first. As many: the name first.
  EXPECT_THAT(asks("a.b"), ElementsAre("a.b.one.test", "a.b.two.test", "a.b"));
  EXPECT_THAT(asks("a.b.c"), ElementsAre("a.b.c", "a.b.c.one.test", "a.b.c.two.test"));
  // A dot at the end, or a caller who says so: the name only.
  EXPECT_THAT(asks("x.y."), ElementsAre("x.y"));
  EXPECT_THAT(asks("x", SearchList::kIgnored), ElementsAre("x"));
  // A name without an address ends the search, and so does a server that fails.
  EXPECT_THAT(asks("empty"), ElementsAre("empty.one.test"));
  EXPECT_THAT(resolver.Resolve("empty"), StatusIs(kFailedPrecondition));
  EXPECT_THAT(asks("ill"), ElementsAre("ill.one.test"));
  EXPECT_THAT(resolver.Resolve("ill"), StatusIs(kUnavailable));
}

// What the C library does with the same names, servers and search list.
TEST(ResolverTest, TheSearchEndsWhereTheCLibraryGoesOn) {
  const DnsServer server(Serving({{"empty.one.test", {}},
                                  {"empty.two.test", {.addresses = {"192.0.2.1"}}},
                                  {"ill.one.test", {.code = DnsReply::kFailure}},
                                  {"ill.two.test", {.addresses = {"192.0.2.2"}}}}));
  const auto c_library_asks = [&](const char* name) {
    const size_t before = server.names().size();
    struct __res_state state = {};
    EXPECT_EQ(::res_ninit(&state), 0);
    state.nscount = 1;
    std::memcpy(&state.nsaddr_list[0], server.address().data(), sizeof(state.nsaddr_list[0]));
    std::strcpy(state.defdname, "one.test");
    char two[] = "two.test";
    state.dnsrch[0] = state.defdname;
    state.dnsrch[1] = two;
    state.dnsrch[2] = nullptr;
    state.ndots = 1;
    state.retry = 1;
    std::array<unsigned char, 512> answer;
    EXPECT_GT(::res_nsearch(&state, name, ns_c_in, ns_t_a, answer.data(), answer.size()), 0);
    ::res_nclose(&state);
    const std::vector<std::string> names = server.names();
    return std::vector<std::string>(names.begin() + static_cast<ptrdiff_t>(before), names.end());
  };
  EXPECT_THAT(c_library_asks("empty"), ElementsAre("empty.one.test", "empty.two.test"));
  EXPECT_THAT(c_library_asks("ill"), ElementsAre("ill.one.test", "ill.two.test"));
}

BOBBIN_IO_TEST(ResolverTest,
               AServerThatDeniesNamesWithoutIpv6IsNotBelievedBeforeItHasAnsweredForIpv4) {
  // All names have an IPv4 address, which takes a while.
  DnsServer server([](const DnsAsked& asked) -> DnsReply {
    if (asked.is_ipv6) return {.code = DnsReply::kNoName};
    return {.addresses = {"192.0.2.1"}, .delivery = Delivery::kHeld};
  });
  const WithFiles files(server, "search one.test two.test\n");
  io::ResolverOptions searching = PatientOptions({});
  searching.resolv_conf = files.resolv_conf;
  searching.other_family_wait = 1ms;
  VirtualThread late = Spawn([&] {
    AwaitTrue([&] { return server.CountOf("host.one.test") == 2; });
    EXPECT_OK(SleepFor(30ms));  // Long after the 1 ms.
    server.Release();
  });
  EXPECT_THAT(HostsOf(io::Resolver(searching).Resolve("host")), ElementsAre("192.0.2.1"));
  EXPECT_THAT(server.names(), ElementsAre("host.one.test"));
  EXPECT_OK(late.Join());

  // Said of IPv4, it is said of both; and where IPv4 fails, nothing is known.
  std::atomic<uint8_t> ipv4{DnsReply::kNoName};
  const DnsServer other([&](const DnsAsked& asked) -> DnsReply {
    if (asked.is_ipv6 && ipv4 == DnsReply::kNoName) return {.delivery = Delivery::kDropped};
    return {.code = asked.is_ipv6 ? DnsReply::kNoName : ipv4.load()};
  });
  io::ResolverOptions options = PatientOptions(other);
  options.attempt = 3600s;  // The watchdog would come first.
  options.other_family_wait = 1ms;
  io::Resolver resolver(options);
  EXPECT_THAT(resolver.Resolve("a.test"), StatusIs(kNotFound));
  ipv4 = DnsReply::kFailure;
  EXPECT_THAT(resolver.Resolve("a.test"), StatusIs(kUnavailable));
  EXPECT_THAT(resolver.Resolve({.families = Families::kIpv6}, "a.test"), StatusIs(kNotFound));
}

BOBBIN_IO_TEST(ResolverTest, ChangesOfTheFilesAreNoticed) {
  const DnsServer first(Serving({{"a.test", {.addresses = {"192.0.2.1"}, .keep = 3600}}}));
  const DnsServer second(Serving({{"a.test", {.addresses = {"192.0.2.2"}, .keep = 3600}},
                                  {"b.test", {.addresses = {"192.0.2.3"}}}}));
  WithFiles files(first, "", "", 10);
  io::Resolver& resolver = *files.resolver;
  const auto resolve = [&](std::string_view name) {
    return HostsOf(resolver.Resolve({.families = Families::kIpv4}, name));
  };
  EXPECT_THAT(resolve("a.test"), ElementsAre("192.0.2.1"));
  for (int round = 0; round < Rounds(20); ++round) {
    Write(files.resolv_conf, ConfFor(second));
    // Another question notices; then nothing is left in the cache.
    EXPECT_THAT(resolve("b.test"), ElementsAre("192.0.2.3"));
    EXPECT_THAT(resolve("a.test"), ElementsAre("192.0.2.2"));
    Write(files.hosts, "192.0.2.4 b.test\n");
    EXPECT_THAT(resolver.Resolve("c.test"), StatusIs(kNotFound));
    EXPECT_THAT(resolve("b.test"), ElementsAre("192.0.2.4"));
    std::remove(files.hosts.c_str());
    Write(files.resolv_conf, ConfFor(first));
    EXPECT_THAT(resolver.Resolve("c.test"), StatusIs(kNotFound));
    EXPECT_THAT(resolve("a.test"), ElementsAre("192.0.2.1"));
  }
}

BOBBIN_IO_TEST(ResolverTest, AnAnswerIsKeptAsLongAsItsServerAllows) {
  const DnsServer server(
      Serving({{"long.test", {.addresses = {"192.0.2.1", "2001:db8::1"}, .keep = 3600}},
               {"never.test", {.addresses = {"192.0.2.2"}, .keep = 0, .keep_nothing = 0}},
               {"empty.test", {.keep_nothing = 3600}},
               {"missing.test", {.code = DnsReply::kNoName, .keep_nothing = 3600}},
               {"unsaid.test", {.code = DnsReply::kNoName}},
               {"failing.test", {.code = DnsReply::kFailure}}}));
  io::ResolverOptions options = PatientOptions(server);
  options.cached_max = 100;
  io::Resolver resolver(options);
  const auto times = [&](const std::string& name, absl::StatusCode code) {
    for (int i = 0; i < 3; ++i) EXPECT_THAT(resolver.Resolve(name), StatusIs(code)) << name;
    return server.CountOf(name);
  };
  EXPECT_EQ(times("long.test", kOk), 2u);  // Once for each family.
  EXPECT_EQ(times("LONG.test", kOk), 0u);
  EXPECT_EQ(server.CountOf("long.test"), 2u);
  EXPECT_EQ(times("never.test", kOk), 6u);
  EXPECT_EQ(times("empty.test", kFailedPrecondition), 2u);
  EXPECT_EQ(times("missing.test", kNotFound), 2u);
  EXPECT_EQ(times("unsaid.test", kNotFound), 6u);
  EXPECT_EQ(times("failing.test", kUnavailable), 6u);
  // Families are questions of their own.
  EXPECT_OK(resolver.Resolve({.families = Families::kIpv4}, "long.test"));
  EXPECT_EQ(server.CountOf("long.test"), 3u);
}

BOBBIN_IO_TEST(ResolverTest, WhatWasKeptForLongEnoughIsAskedForAgain) {
  const DnsServer server(
      Serving({{"short.test", {.addresses = {"192.0.2.3", "2001:db8::3"}, .keep = 1}}}));
  io::ResolverOptions options = PatientOptions(server);
  options.cached_max = 100;
  // A second is a long time for a test: the server's is seen once.
  if (carriers() != 1 || backend() == Backend::kRing) options.cached_for_max = 1ms;
  io::Resolver resolver(options);
  AwaitTrue([&] {
    EXPECT_OK(resolver.Resolve("short.test"));
    return server.CountOf("short.test") >= 4;
  });
}

BOBBIN_IO_TEST(ResolverTest, TheCacheHasALimitAndIsOffUnlessAskedFor) {
  const DnsServer server([](const DnsAsked&) -> DnsReply {
    return {.addresses = {"192.0.2.1", "2001:db8::1"}, .keep = 3600};
  });
  io::ResolverOptions options = PatientOptions(server);
  {
    io::Resolver resolver(options);
    for (int i = 0; i < 2; ++i) EXPECT_OK(resolver.Resolve("off.test"));
    EXPECT_EQ(server.CountOf("off.test"), 4u);
  }
  options.cached_max = 2;
  {
    io::Resolver resolver(options);
    for (const char* const name : {"a.test", "b.test", "c.test"}) {
      EXPECT_OK(resolver.Resolve(name));
    }
    EXPECT_OK(resolver.Resolve("c.test"));
    EXPECT_OK(resolver.Resolve("b.test"));
    EXPECT_EQ(server.CountOf("b.test") + server.CountOf("c.test"), 4u);
    EXPECT_OK(resolver.Resolve("a.test"));  // The oldest had made room.
    EXPECT_EQ(server.CountOf("a.test"), 4u);
  }
  options.cached_for_max = 1ns;
  io::Resolver resolver(options);
  for (int i = 0; i < 2; ++i) EXPECT_OK(resolver.Resolve("brief.test"));
  EXPECT_EQ(server.CountOf("brief.test"), 4u);
}

BOBBIN_IO_TEST(ResolverTest, EqualQuestionsAreAskedOnce) {
  DnsServer server([](const DnsAsked&) -> DnsReply {
    return {.addresses = {"192.0.2.1", "2001:db8::1"}, .delivery = Delivery::kHeld};
  });
  io::Resolver resolver(PatientOptions(server));
  constexpr int kCallers = 20;
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < kCallers; ++i) {
    group.Spawn([&]() -> absl::Status {
      EXPECT_THAT(HostsOf(resolver.Resolve("a.test")),
                  UnorderedElementsAre("192.0.2.1", "2001:db8::1"));
      return absl::OkStatus();
    });
  }
  AwaitTrue([&] { return resolver.Statistics().shared == kCallers - 1; });
  server.Release();
  EXPECT_OK(group.Wait());
  EXPECT_EQ(resolver.Statistics().asked, 1u);
  EXPECT_EQ(server.CountOf("a.test"), 2u);
}

BOBBIN_IO_TEST(ResolverTest, WhoGivesUpLeavesTheOthersAlone) {
  for (int round = 0; round < Rounds(20); ++round) {
    DnsServer server([](const DnsAsked&) -> DnsReply {
      return {.addresses = {"192.0.2.1", "2001:db8::1"}, .delivery = Delivery::kHeld};
    });
    io::Resolver resolver(PatientOptions(server));
    std::array<WaitProbe, 4> probes;
    std::vector<VirtualThread> threads;
    std::array<absl::Status, 4> ends;
    for (size_t i = 0; i < probes.size(); ++i) {
      threads.push_back(Spawn({.placement = Placement::kSpread}, [&, i] {
        probes[i].Attach();
        std::optional<DeadlineScope> scope;
        if (i == 1) scope.emplace(1ms);
        // The last one asks for another name.
        ends[i] = resolver.Resolve(i == 3 ? "b.test" : "a.test").status();
      }));
    }
    for (const size_t i : {size_t{0}, size_t{2}, size_t{3}}) probes[i].AwaitParked();
    // The first one may have begun the question, or not.
    threads[0].Cancel();
    EXPECT_OK(threads[0].Join());
    EXPECT_OK(threads[1].Join());
    EXPECT_THAT(ends[0], StatusIs(kCancelled));
    EXPECT_THAT(ends[1], StatusIs(kDeadlineExceeded));
    server.Release();
    EXPECT_OK(threads[2].Join());
    EXPECT_OK(threads[3].Join());
    EXPECT_OK(ends[2]);
    EXPECT_OK(ends[3]);
  }
}

BOBBIN_IO_TEST(ResolverTest, WhenNobodyIsLeftNobodyAsks) {
  DnsServer server([](const DnsAsked&) -> DnsReply { return {.delivery = Delivery::kDropped}; });
  io::ResolverOptions options = PatientOptions(server);
  options.attempt = 3600s;  // The watchdog would come first.
  io::Resolver resolver(options);
  for (int round = 0; round < Rounds(50); ++round) {
    {
      const DeadlineScope scope(microseconds(random().Between(0, 3000)));
      EXPECT_THAT(resolver.Resolve("a.test"), StatusIs(kDeadlineExceeded));
    }
    AwaitTrue([&] { return resolver.Statistics().in_flight == 0; });
  }
}

// Answers and requests to stop meet at random.
BOBBIN_IO_TEST(ResolverTest, ManyQuestionsAtOnceWithSomeWhoGiveUp) {
  const DnsServer server([](const DnsAsked& asked) -> DnsReply {
    if (asked.name.starts_with("drop")) return {.delivery = Delivery::kDropped};
    return {.addresses = {"192.0.2.1", "2001:db8::1"}, .keep = 0};
  });
  io::ResolverOptions options = PatientOptions(server);
  options.attempt = 3600s;
  options.cached_max = 4;
  io::Resolver resolver(options);
  TaskGroup group({.placement = Placement::kSpread});
  std::atomic<int> answered{0};
  for (int i = 0; i < 16; ++i) {
    group.Spawn([&, seed = random().Next()] {
      Random own(seed);
      for (int round = 0; round < Rounds(40); ++round) {
        const std::string number = std::to_string(own.Below(6));
        const std::string name = (own.OneIn(4) ? "drop" : "good") + number + ".test";
        const DeadlineScope scope(microseconds(own.Between(0, 4000)));
        const auto addresses = resolver.Resolve(name);
        if (addresses.ok()) {
          ++answered;
          EXPECT_TRUE(name.starts_with("good"));
          EXPECT_EQ(addresses->size(), 2u);
        } else {
          EXPECT_THAT(addresses, StatusIs(kDeadlineExceeded));
        }
      }
    });
  }
  EXPECT_OK(group.Wait());
  AwaitTrue([&] { return resolver.Statistics().in_flight == 0; });
  // And all of it still works.
  EXPECT_OK(resolver.Resolve("good.test"));
}

BOBBIN_IO_TEST(ResolverTest, AStoppedThreadGetsWhatIsKnown) {
  DnsServer server([](const DnsAsked&) -> DnsReply {
    return {.addresses = {"192.0.2.1", "2001:db8::1"}, .keep = 3600};
  });
  io::ResolverOptions options = PatientOptions(server);
  options.cached_max = 10;
  io::Resolver resolver(options);
  EXPECT_OK(resolver.Resolve("known.test"));
  const DeadlineScope over(0ns);
  EXPECT_OK(resolver.Resolve("known.test"));
  EXPECT_OK(resolver.Resolve("192.0.2.1"));
  EXPECT_THAT(resolver.Resolve("other.test"), StatusIs(kDeadlineExceeded));
  EXPECT_EQ(server.CountOf("other.test"), 0u);
}

BOBBIN_IO_FOREIGN_TEST(ResolverTest, ForeignThreadsAskToo) {
  DnsServer server(Serving({{"a.test", {.addresses = {"192.0.2.1", "2001:db8::1"}}},
                            {"dropped.test", {.delivery = Delivery::kDropped}}}));
  io::Resolver resolver(PatientOptions(server));
  EXPECT_THAT(HostsOf(resolver.Resolve("a.test")),
              UnorderedElementsAre("192.0.2.1", "2001:db8::1"));
  EXPECT_THAT(resolver.Resolve("b.test"), StatusIs(kNotFound));
  const DeadlineScope scope(20ms);
  EXPECT_THAT(resolver.Resolve("dropped.test"), StatusIs(kDeadlineExceeded));
}

// The thread that asks belongs to the runtime of the first caller.
BOBBIN_IO_FOREIGN_TEST(ResolverTest, ARuntimeThatEndsDoesNotEndTheQuestionOfAnother) {
  DnsServer server([](const DnsAsked&) -> DnsReply {
    return {.addresses = {"192.0.2.1", "2001:db8::1"}, .delivery = Delivery::kHeld};
  });
  io::Resolver resolver(PatientOptions(server));
  absl::Status first;
  {
    Runtime other({.carriers = 1, .poller = MakePollers(backend())});
    VirtualThread asker = other.Spawn([&] { first = resolver.Resolve("a.test").status(); });
    AwaitTrue([&] { return server.CountOf("a.test") == 2; });
    VirtualThread second = runtime().Spawn([&] { return resolver.Resolve("a.test").status(); });
    AwaitTrue([&] { return resolver.Statistics().shared == 1; });
    EXPECT_OK(other.Shutdown());
    EXPECT_OK(asker.Join());
    EXPECT_THAT(first, StatusIs(kCancelled));
    server.Release();
    EXPECT_OK(second.Join());
  }
}

BOBBIN_IO_FOREIGN_TEST(ResolverTest, AShutdownEndsWhoIsAsking) {
  const DnsServer server(
      [](const DnsAsked&) -> DnsReply { return {.delivery = Delivery::kDropped}; });
  io::Resolver resolver(PatientOptions(server));
  constexpr size_t kCallers = 300;
  std::atomic<size_t> cancelled{0};
  {
    Runtime other({.carriers = carriers(), .poller = MakePollers(backend())});
    for (size_t i = 0; i < kCallers; ++i) {
      other
          .Spawn({.placement = Placement::kSpread},
                 [&, i] {
                   const std::string name = std::to_string(i / 3) + ".a.test";
                   if (absl::IsCancelled(resolver.Resolve(name).status())) ++cancelled;
                 })
          .Detach();
    }
    AwaitTrue([&] {
      const io::ResolverStatistics now = resolver.Statistics();
      return now.asked + now.shared >= kCallers;
    });
    EXPECT_OK(other.Shutdown());
  }
  EXPECT_EQ(cancelled, kCallers);
  EXPECT_EQ(resolver.Statistics().in_flight, 0u);
}

BOBBIN_IO_TEST(ResolverTest, DescriptorsBeyondAThousandAreNoDifferent) {
  std::vector<int> fillers;
  for (int i = 0; i < 1500; ++i) fillers.push_back(::dup(2));
  {
    const DnsServer server(
        Serving({{"a.test", {.addresses = {"192.0.2.1"}, .delivery = Delivery::kTruncated}}}));
    io::Resolver resolver(PatientOptions(server));
    EXPECT_THAT(HostsOf(resolver.Resolve("a.test")), ElementsAre("192.0.2.1"));
  }
  for (const int fd : fillers) ::close(fd);
}

BOBBIN_IO_TEST(ResolverTest, TheDefaultKnowsThisHost) {
  const auto addresses = io::Resolver::Default().Resolve({.port = 80}, "localhost");
  ASSERT_OK(addresses);
  for (const io::SocketAddress& address : *addresses) {
    EXPECT_TRUE(address.is_loopback()) << address.ToString();
    EXPECT_EQ(address.port(), 80);
  }
}

}  // namespace
}  // namespace bobbin::test
