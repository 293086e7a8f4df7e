// SPDX-License-Identifier: Apache-2.0
//
// TcpStream::Connect by name: which address wins, and what becomes of the others.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/resolver.h>
#include <bobbin/io/tcp.h>
#include <bobbin/sched/spawn.h>

#include "io/src/connect_race.h"
#include "tests/io/dns_server.h"
#include "tests/io/io_test.h"
#include "tests/support/leak_check.h"

namespace bobbin::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using testing::ElementsAre;
using testing::HasSubstr;

// An address of this host that no other test and no other process uses.
std::string HostAt(int host) {
  return "127." + std::to_string(::getpid() / 250 % 250 + 1) + "." +
         std::to_string(::getpid() % 250 + 1) + "." + std::to_string(host);
}

// A listening socket of the kernel's, at HostAt(host).
class Port {
 public:
  enum class Queue {
    kRoomy,
    kFull,  // Who connects is not answered.
  };

  // Port 0 takes a free one.
  Port(int host, uint16_t port, Queue queue) {
    address_ = *io::SocketAddress::Parse(HostAt(host), port);
    EXPECT_EQ(::bind(fd_, address_.data(), address_.bytes()), 0);
    EXPECT_EQ(::listen(fd_, queue == Queue::kFull ? 0 : 64), 0);
    sockaddr_in bound{};
    socklen_t bytes = sizeof(bound);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &bytes), 0);
    address_ = address_.WithPort(ntohs(bound.sin_port));
    if (queue == Queue::kRoomy) return;
    first_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(first_, address_.data(), address_.bytes()), 0);
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port() {
    if (first_ >= 0) ::close(first_);
    if (accepted_ >= 0) ::close(accepted_);
    ::close(fd_);
  }

  uint16_t port() const { return address_.port(); }
  std::string host() const { return address_.HostToString(); }
  std::string text() const { return address_.ToString(); }
  // Makes room in a full queue.
  void MakeRoom() { accepted_ = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int first_ = -1;
  int accepted_ = -1;
  io::SocketAddress address_;
};

// Knows one name, `a.test`, by these addresses.
struct Names {
  explicit Names(std::vector<std::string> addresses)
      : server([addresses = std::move(addresses)](const DnsAsked& asked) -> DnsReply {
          if (asked.name == "a.test") return {.addresses = addresses};
          return {.code = DnsReply::kNoName};
        }),
        resolver({.hosts = "/no/such/file",
                  .servers = {server.address()},
                  .attempt = 60s,
                  .other_family_wait = 60s}) {}

  io::ConnectOptions Options(std::chrono::nanoseconds attempt_delay) {
    return {
        .resolver = &resolver, .search = io::SearchList::kIgnored, .attempt_delay = attempt_delay};
  }

  DnsServer server;
  io::Resolver resolver;
};

std::string PeerOf(const absl::StatusOr<io::TcpStream>& stream) {
  EXPECT_OK(stream);
  return stream.ok() ? stream->peer_address()->ToString() : "";
}

std::vector<std::string> Turns(const std::vector<std::string>& hosts) {
  std::vector<io::SocketAddress> addresses;
  for (const std::string& host : hosts) addresses.push_back(*io::SocketAddress::Parse(host, 0));
  std::vector<std::string> turns;
  for (const io::SocketAddress& address : io::internal::TakingTurns(addresses)) {
    turns.push_back(address.HostToString());
  }
  return turns;
}

TEST(ConnectRaceTest, TheFamiliesTakeTurns) {
  EXPECT_THAT(Turns({"1.1.1.1"}), ElementsAre("1.1.1.1"));
  EXPECT_THAT(Turns({"::1", "::2", "::3", "1.1.1.1", "1.1.1.2"}),
              ElementsAre("::1", "1.1.1.1", "::2", "1.1.1.2", "::3"));
  EXPECT_THAT(Turns({"1.1.1.1", "::1", "::2"}), ElementsAre("1.1.1.1", "::1", "::2"));
}

BOBBIN_IO_TEST(ConnectByNameTest, NamesAndNumbersAreConnectedTo) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  const uint16_t port = listener->local_address().port();
  const std::string text = listener->local_address().ToString();
  Names names({"127.0.0.1"});
  EXPECT_EQ(PeerOf(io::TcpStream::Connect(names.Options(1h), "a.test", port)), text);
  EXPECT_EQ(PeerOf(io::TcpStream::Connect(names.Options(1h), "127.0.0.1", port)), text);
  EXPECT_EQ(PeerOf(io::TcpStream::Connect("localhost:" + std::to_string(port))), text);
  EXPECT_THAT(io::TcpStream::Connect(names.Options(1h), "b.test", port),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(io::TcpStream::Connect("a..test:80"), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(ConnectByNameTest, AStreamThatHasWonIsLikeAnyOther) {
  auto listener = io::TcpListener::Bind(HostAt(2) + ":0");
  ASSERT_OK(listener);
  Names names({HostAt(9), HostAt(2)});
  auto left = io::TcpStream::Connect(names.Options(1h), "a.test", listener->local_address().port());
  ASSERT_OK(left);
  auto right = listener->Accept();
  ASSERT_OK(right);
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    EXPECT_EQ(ReadText(*left, 4), "ping");
    EXPECT_OK(left->WriteAll(Bytes("pong")));
  });
  probe.AwaitParked();
  EXPECT_OK(right->WriteAll(Bytes("ping")));
  EXPECT_EQ(ReadText(*right, 4), "pong");
  EXPECT_OK(reader.Join());
}

// Nobody waits for a delay of an hour.
BOBBIN_IO_TEST(ConnectByNameTest, AnAddressThatRefusesIsFollowedByTheNextAtOnce) {
  const Port port(7, 0, Port::Queue::kRoomy);
  Names names({HostAt(2), HostAt(3), HostAt(4), HostAt(7)});
  for (int round = 0; round < Rounds(20); ++round) {
    EXPECT_EQ(PeerOf(io::TcpStream::Connect(names.Options(1h), "a.test", port.port())),
              port.text());
  }
}

BOBBIN_IO_TEST(ConnectByNameTest, AnAddressThatIsSilentIsOvertaken) {
  const Port good(3, 0, Port::Queue::kRoomy);
  const Port silent(1, good.port(), Port::Queue::kFull);
  const Port other(2, good.port(), Port::Queue::kFull);
  Names names({silent.host(), other.host(), good.host()});
  EXPECT_OK(names.resolver.Resolve("a.test"));
  const size_t before = OpenDescriptors();
  for (int round = 0; round < Rounds(10); ++round) {
    EXPECT_EQ(PeerOf(io::TcpStream::Connect(names.Options(1ms), "a.test", good.port())),
              good.text());
  }
  // Nothing is left of those that were overtaken.
  AwaitTrue([&] { return OpenDescriptors() <= before; });
}

BOBBIN_IO_TEST(ConnectByNameTest, AnAttemptThatWasOvertakenMayStillWin) {
  if (carriers() != 1) return;  // The kernel takes a second to ask again.
  Port slow(1, 0, Port::Queue::kFull);
  const Port silent(2, slow.port(), Port::Queue::kFull);
  Names names({slow.host(), silent.host()});
  VirtualThread connecting = Spawn([&] {
    EXPECT_EQ(PeerOf(io::TcpStream::Connect(names.Options(1ms), "a.test", slow.port())),
              slow.text());
  });
  EXPECT_FALSE(connecting.IsDone());
  slow.MakeRoom();
  EXPECT_OK(connecting.Join());
}

BOBBIN_IO_TEST(ConnectByNameTest, WhenAllFailAllAreTold) {
  uint16_t port;
  {
    const Port nobody(1, 0, Port::Queue::kRoomy);
    port = nobody.port();
  }
  Names names({HostAt(1), HostAt(2)});
  const absl::Status status = io::TcpStream::Connect(names.Options(1h), "a.test", port).status();
  EXPECT_THAT(status, StatusIs(kUnavailable));
  const std::string end = ":" + std::to_string(port) + ": connection refused";
  EXPECT_EQ(MessageOf(status), "connect a.test: " + HostAt(1) + end + "; " + HostAt(2) + end);
}

BOBBIN_IO_TEST(ConnectByNameTest, DeadlineAndCancelEndAllAttempts) {
  const Port first(1, 0, Port::Queue::kFull);
  const Port second(2, first.port(), Port::Queue::kFull);
  Names names({first.host(), second.host()});
  EXPECT_OK(names.resolver.Resolve("a.test"));
  const size_t before = OpenDescriptors();
  for (int round = 0; round < Rounds(30); ++round) {
    {
      const DeadlineScope scope(microseconds(random().Between(0, 3000)));
      EXPECT_THAT(io::TcpStream::Connect(names.Options(500us), "a.test", first.port()),
                  StatusIs(kDeadlineExceeded));
    }
    WaitProbe probe;
    VirtualThread connecting = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      return io::TcpStream::Connect(names.Options(500us), "a.test", first.port()).status();
    });
    if (random().OneIn(2)) probe.AwaitParked();
    connecting.Cancel();
    EXPECT_THAT(connecting.Join(), StatusIs(kCancelled));
  }
  AwaitTrue([&] { return names.resolver.Statistics().in_flight == 0; });
  AwaitTrue([&] { return OpenDescriptors() <= before; });
}

BOBBIN_IO_FOREIGN_TEST(ConnectByNameTest, ForeignThreadsRaceToo) {
  const Port good(3, 0, Port::Queue::kRoomy);
  const Port silent(1, good.port(), Port::Queue::kFull);
  Names names({silent.host(), HostAt(2), good.host()});
  EXPECT_EQ(PeerOf(io::TcpStream::Connect(names.Options(1ms), "a.test", good.port())), good.text());
  const DeadlineScope scope(20ms);
  Names nobody({silent.host(), silent.host()});
  EXPECT_THAT(io::TcpStream::Connect(nobody.Options(1ms), "a.test", good.port()),
              StatusIs(kDeadlineExceeded));
}

}  // namespace
}  // namespace bobbin::test
