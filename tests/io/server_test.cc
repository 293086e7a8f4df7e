// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/io/server.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/support/leak_check.h"

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

io::TcpListener Listen() {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  EXPECT_OK(listener);
  return *std::move(listener);
}

io::TcpStream Connect(const io::Server& server) {
  auto stream = io::TcpStream::Connect(server.local_address());
  EXPECT_OK(stream);
  return *std::move(stream);
}

// Sends each byte back; idle between two.
absl::Status EchoBytes(io::ServerConnection& connection) {
  std::array<std::byte, 1> byte;
  while (true) {
    connection.MarkIdle();
    BOBBIN_ASSIGN_OR_RETURN(const size_t received, connection.stream().Read(byte));
    if (received == 0) return absl::OkStatus();
    connection.MarkBusy();
    BOBBIN_RETURN_IF_ERROR(connection.stream().WriteAll(byte));
  }
}

bool Echoes(io::TcpStream& stream) {
  return stream.WriteAll(Bytes("x")).ok() && ReadText(stream, 1) == "x";
}

// --- What it is for

BOBBIN_IO_TEST(ServerTest, ItServesManyConnectionsAtOnceAndNamesTheirThreads) {
  std::atomic<int> named{0};
  io::Server server({.name = "echo"}, Listen(), [&](io::ServerConnection& connection) {
    if (this_vthread::Name() == "echo " + std::to_string(connection.number())) ++named;
    return EchoBytes(connection);
  });
  std::vector<io::TcpStream> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(Connect(server));
  for (io::TcpStream& client : clients) EXPECT_TRUE(Echoes(client));
  EXPECT_EQ(named, 50);
  EXPECT_EQ(server.Statistics().connections, 50U);
  EXPECT_EQ(server.Statistics().accepted, 50U);
  clients.clear();
  AwaitTrue([&] { return server.Statistics().connections == 0; });
  EXPECT_EQ(server.Statistics().failed, 0U);
}

// More than a stack of the runtime's own size has.
BOBBIN_IO_TEST(ServerTest, HandlersHaveTheStackThatTheServerWasTold) {
  io::Server server({.stack_bytes = size_t{1} << 20}, Listen(),
                    [](io::ServerConnection& connection) {
                      std::array<volatile char, 600'000> large;
                      large.front() = 'x';
                      large.back() = large.front();
                      EXPECT_EQ(large.back(), 'x');
                      return EchoBytes(connection);
                    });
  io::TcpStream client = Connect(server);
  EXPECT_TRUE(Echoes(client));
}

BOBBIN_IO_TEST(ServerTest, AHandlerThatFailsOrThrowsEndsItsConnectionOnly) {
  io::Server server({.name = "moody"}, Listen(),
                    [](io::ServerConnection& connection) -> absl::Status {
                      std::array<std::byte, 1> mood;
                      BOBBIN_RETURN_IF_ERROR(connection.stream().ReadExact(mood));
                      if (mood[0] == std::byte{'t'}) throw std::runtime_error("thrown");
                      if (mood[0] == std::byte{'f'}) return absl::InternalError("failed");
                      return connection.stream().WriteAll(mood);
                    });
  testing::internal::CaptureStderr();
  for (const char* const mood : {"t", "f"}) {
    io::TcpStream client = Connect(server);
    ASSERT_OK(client.WriteAll(Bytes(mood)));
    EXPECT_EQ(ReadText(client, 1), "");
  }
  AwaitTrue([&] { return server.Statistics().connections == 0; });
  EXPECT_EQ(server.Statistics().failed, 2U);
  io::TcpStream client = Connect(server);
  EXPECT_TRUE(Echoes(client));
  server.Drain({.grace = hours(1)});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("thrown"));
  EXPECT_THAT(said, HasSubstr("failed"));
  EXPECT_THAT(said, HasSubstr("moody"));
}

// --- Limits

BOBBIN_IO_TEST(ServerTest, AtItsLimitItAcceptsNobodyAndTurnsNobodyAway) {
  constexpr int kConnectionsMax = 3;
  std::atomic<int> live{0};
  std::atomic<int> most{0};
  io::Server server({.connections_max = kConnectionsMax}, Listen(),
                    [&](io::ServerConnection& connection) {
                      const int now = ++live;
                      int before = most;
                      while (now > before && !most.compare_exchange_weak(before, now)) continue;
                      absl::Status end = EchoBytes(connection);
                      --live;
                      return end;
                    });
  TaskGroup clients({.placement = Placement::kSpread});
  for (int i = 0; i < Rounds(300); ++i) {
    clients.Spawn([&] {
      io::TcpStream client = Connect(server);
      EXPECT_TRUE(Echoes(client));
    });
  }
  EXPECT_OK(clients.Wait());
  EXPECT_LE(most, kConnectionsMax);
  EXPECT_GT(server.Statistics().limited, 0U);
  EXPECT_EQ(server.Statistics().accepted, static_cast<uint64_t>(Rounds(300)));
}

// Those that are free now.
std::vector<int> TakeDescriptors() {
  std::vector<int> taken;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
  return taken;
}

BOBBIN_IO_TEST(ServerTest, WithoutDescriptorsItWaitsForSomeTellsItOnceAndGoesOn) {
  // Before the server begins: an accept in flight keeps the limit that it found.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = OpenDescriptors() + 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  testing::internal::CaptureStderr();
  io::Server server({}, Listen(), EchoBytes);
  for (int round = 0; round < 2; ++round) {
    const uint64_t pauses = server.Statistics().accept_pauses;
    std::vector<int> taken;
    std::vector<io::TcpStream> clients;
    // An accept that looks in vain holds a descriptor for that moment: it may have kept one from
    // being taken, and then keeps it.
    while (server.Statistics().accept_pauses == pauses) {
      for (const int fd : TakeDescriptors()) taken.push_back(fd);
      ASSERT_FALSE(taken.empty());
      ::close(taken.back());
      taken.pop_back();
      absl::StatusOr<io::TcpStream> client = io::TcpStream::Connect(server.local_address());
      if (!client.ok()) {
        EXPECT_EQ(client.status().code(), kResourceExhausted) << client.status();
        continue;
      }
      clients.push_back(*std::move(client));
      AwaitTrue([&] {
        return server.Statistics().accept_pauses > pauses ||
               server.Statistics().connections == clients.size();
      });
    }
    for (const int fd : taken) ::close(fd);
    ASSERT_FALSE(clients.empty());
    for (io::TcpStream& client : clients) EXPECT_TRUE(Echoes(client));
    clients.clear();
    AwaitTrue([&] { return server.Statistics().connections == 0; });
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("accept " + server.local_address().ToString()));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// --- The end

BOBBIN_IO_TEST(ServerTest, ADrainEndsIdleConnectionsAtOnceAndLetsBusyOnesFinish) {
  Event go_on;
  std::atomic<int> busy{0};
  io::Server server({}, Listen(), [&](io::ServerConnection& connection) -> absl::Status {
    std::array<std::byte, 1> byte;
    while (true) {
      connection.MarkIdle();
      BOBBIN_ASSIGN_OR_RETURN(const size_t received, connection.stream().Read(byte));
      if (received == 0) return absl::OkStatus();
      connection.MarkBusy();
      if (byte[0] == std::byte{'b'}) {
        ++busy;
        BOBBIN_RETURN_IF_ERROR(go_on.Wait());
      }
      BOBBIN_RETURN_IF_ERROR(connection.stream().WriteAll(byte));
    }
  });
  std::vector<io::TcpStream> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(Connect(server));
    EXPECT_TRUE(Echoes(idle.back()));
  }
  std::vector<io::TcpStream> working;
  for (int i = 0; i < 5; ++i) {
    working.push_back(Connect(server));
    ASSERT_OK(working.back().WriteAll(Bytes("b")));
  }
  AwaitTrue([&] { return busy == 5 && server.Statistics().idle == 20; });

  io::DrainResult result;
  VirtualThread drain = Spawn([&] { result = server.Drain({.grace = hours(1)}); });
  for (io::TcpStream& client : idle) EXPECT_EQ(ReadText(client, 1), "");
  EXPECT_FALSE(drain.IsDone());
  EXPECT_THAT(io::TcpStream::Connect(server.local_address()), StatusIs(kUnavailable));
  go_on.Set();
  for (io::TcpStream& client : working) {
    EXPECT_EQ(ReadText(client, 1), "b");
    EXPECT_EQ(ReadText(client, 1), "");
  }
  EXPECT_OK(drain.Join());
  EXPECT_EQ(result.idle, 20U);
  EXPECT_EQ(result.finished, 5U);
  EXPECT_EQ(result.cancelled, 0U);
  EXPECT_THAT(result.stragglers, IsEmpty());
  EXPECT_OK(server.Wait());
}

BOBBIN_IO_TEST(ServerTest, ADrainCancelsWhoDoesNotFinishInTime) {
  Event never;
  std::atomic<int> waiting{0};
  std::atomic<int> cancelled{0};
  io::Server server({}, Listen(), [&](io::ServerConnection&) {
    ++waiting;
    absl::Status end = never.Wait();
    if (absl::IsCancelled(end)) ++cancelled;
    return end;
  });
  std::vector<io::TcpStream> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(Connect(server));
  AwaitTrue([&] { return waiting == 5; });
  const io::DrainResult result = server.Drain({.grace = nanoseconds(0), .cancel_grace = hours(1)});
  EXPECT_EQ(cancelled, 5);
  EXPECT_EQ(result.cancelled, 5U);
  EXPECT_THAT(result.stragglers, IsEmpty());
  for (io::TcpStream& client : clients) EXPECT_EQ(ReadText(client, 1), "");
}

BOBBIN_IO_TEST(ServerTest, ADrainNamesWhoDoesNotEndAndTheirPeers) {
  Event go_on;
  Event is_waiting;
  io::Server server({.name = "deaf"}, Listen(), [&](io::ServerConnection&) {
    const CancelShield shield;
    is_waiting.Set();
    return go_on.Wait();
  });
  io::TcpStream client = Connect(server);
  ASSERT_OK(is_waiting.Wait());
  io::DrainResult result = server.Drain({.grace = nanoseconds(0), .cancel_grace = milliseconds(1)});
  EXPECT_THAT(result.stragglers, ElementsAre("deaf 1, of " + client.local_address()->ToString()));
  EXPECT_OK(server.Wait());
  go_on.Set();
  result = server.Drain({.grace = hours(1)});
  EXPECT_EQ(result.finished, 1U);
  EXPECT_THAT(result.stragglers, IsEmpty());
}

BOBBIN_IO_TEST(ServerTest, ADrainThatIsCancelledGivesNoMoreTime) {
  Event never;
  Event is_waiting;
  io::Server server({}, Listen(), [&](io::ServerConnection&) {
    is_waiting.Set();
    return never.Wait();
  });
  io::TcpStream client = Connect(server);
  ASSERT_OK(is_waiting.Wait());
  WaitProbe probe;
  io::DrainResult result;
  VirtualThread drain = Spawn([&] {
    probe.Attach();
    result = server.Drain({.grace = hours(1), .cancel_grace = hours(1)});
  });
  probe.AwaitParked();
  drain.Cancel();
  EXPECT_OK(drain.Join());
  EXPECT_EQ(result.cancelled, 1U);
}

// What a client had sent before the drain is answered, and the rest is not begun: no byte is taken
// and not answered.
BOBBIN_IO_TEST(ServerTest, ADrainRacesWithClientsAndLosesNothingThatWasTaken) {
  for (int round = 0; round < Rounds(40); ++round) {
    std::atomic<int> taken{0};
    std::atomic<int> answered{0};
    io::Server server({}, Listen(), [&](io::ServerConnection& connection) -> absl::Status {
      std::array<std::byte, 1> byte;
      while (true) {
        connection.MarkIdle();
        BOBBIN_ASSIGN_OR_RETURN(const size_t received, connection.stream().Read(byte));
        if (received == 0) return absl::OkStatus();
        connection.MarkBusy();
        ++taken;
        BOBBIN_RETURN_IF_ERROR(connection.stream().WriteAll(byte));
        ++answered;
      }
    });
    TaskGroup clients({.placement = Placement::kSpread});
    for (int i = 0; i < 4; ++i) {
      clients.Spawn([&] {
        auto client = io::TcpStream::Connect(server.local_address());
        std::array<std::byte, 1> byte{};
        while (client.ok() && client->WriteAll(byte).ok() && client->ReadExact(byte).ok()) continue;
      });
    }
    AwaitTrue([&] { return answered > 10; });
    const auto spin = random().Below(2000);
    Spin(spin);
    const io::DrainResult result = server.Drain({.grace = hours(1)});
    EXPECT_OK(clients.Wait());
    EXPECT_EQ(taken, answered);
    EXPECT_EQ(result.cancelled, 0U);
    EXPECT_THAT(result.stragglers, IsEmpty());
    EXPECT_EQ(server.Statistics().failed, 0U);
  }
}

BOBBIN_IO_TEST(ServerTest, ItsDestructorCancelsAndWaits) {
  Event never;
  std::atomic<int> inside{0};
  io::TcpStream client;
  {
    io::Server server({}, Listen(), [&](io::ServerConnection&) {
      ++inside;
      absl::Status end = never.Wait();
      --inside;
      return end;
    });
    client = Connect(server);
    AwaitTrue([&] { return inside == 1; });
  }
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(ReadText(client, 1), "");
}

}  // namespace
}  // namespace bobbin::test
