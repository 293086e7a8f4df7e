// SPDX-License-Identifier: Apache-2.0
//
// Datagrams that a ring receives ahead of whoever asks; with epoll the same, one call after the
// other.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/pooled_bytes.h>
#include <bobbin/io/udp.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/support/leak_check.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// More than is received ahead, and more than a carrier's pool has.
constexpr int kMany = 300;
constexpr int kMoreThanAllBuffers = 1200;

// A server that receives ahead, and a client that is connected to it.
struct AheadPair {
  AheadPair() {
    auto bound = io::UdpSocket::Bind(
        "127.0.0.1:0", {.receiving = io::Receiving::kAhead, .receive_buffer_bytes = 4 << 20});
    EXPECT_OK(bound);
    server = *std::move(bound);
    auto connected =
        io::UdpSocket::Connect(*server.local_address(), {.receiving = io::Receiving::kAhead});
    EXPECT_OK(connected);
    client = *std::move(connected);
  }

  io::UdpSocket server;
  io::UdpSocket client;
};

std::string Text(std::span<const std::byte> buffer, const io::Datagram& datagram) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), datagram.bytes);
}

std::span<const std::byte> NumberBytes(const int& number) {
  return std::as_bytes(std::span(&number, 1));
}

// The number that the next datagram holds.
int ReceiveNumber(io::UdpSocket& socket) {
  int number = -1;
  EXPECT_OK(socket.Receive(std::as_writable_bytes(std::span(&number, 1))));
  return number;
}

// Bytes that the system holds for whoever is bound to that port of 127.0.0.1, with what it keeps
// about them.
size_t HeldBySystem(uint16_t port) {
  std::ifstream sockets("/proc/net/udp");
  for (std::string line; std::getline(sockets, line);) {
    unsigned host = 0;
    unsigned its_port = 0;
    size_t held = 0;
    const int found =
        std::sscanf(line.c_str(), " %*u: %8x:%4x %*8x:%*4x %*x %*8x:%8zx", &host, &its_port, &held);
    if (found == 3 && host == htonl(INADDR_LOOPBACK) && its_port == port) return held;
  }
  ADD_FAILURE() << "no socket is bound to " << port;
  return 0;
}

BOBBIN_IO_TEST(ReceiveAheadTest, DatagramsArriveAsTheyWereSentAndSayFromWhom) {
  AheadPair pair;
  std::array<std::byte, 64> buffer;
  for (int round = 0; round < 3; ++round) {
    // An empty one ends what the kernel was asked for; it is asked anew.
    for (const std::string text : {"question", "", "another"}) {
      ASSERT_OK(pair.client.Send(Bytes(text)));
    }
    for (const std::string text : {"question", "", "another"}) {
      const auto question = pair.server.Receive(buffer);
      ASSERT_OK(question);
      EXPECT_EQ(Text(buffer, *question), text);
      EXPECT_FALSE(question->is_truncated);
      EXPECT_EQ(question->peer, *pair.client.local_address());
      ASSERT_OK(pair.server.SendTo(Bytes("answer"), question->peer));
      const auto answer = pair.client.Receive(buffer);
      ASSERT_OK(answer);
      EXPECT_EQ(Text(buffer, *answer), "answer");
      EXPECT_EQ(answer->peer, *pair.server.local_address());
    }
  }
}

BOBBIN_IO_TEST(ReceiveAheadTest, SaysFromWhomOverIpv6) {
  auto server = io::UdpSocket::Bind("[::1]:0", {.receiving = io::Receiving::kAhead});
  ASSERT_OK(server);
  auto client = io::UdpSocket::Connect(*server->local_address());
  ASSERT_OK(client);
  std::array<std::byte, 8> buffer;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(client->Send(Bytes("six")));
    const auto received = server->Receive(buffer);
    ASSERT_OK(received);
    EXPECT_EQ(received->peer, *client->local_address());
  }
}

// For want of room in the caller's buffer, and in the carrier's. With epoll there is none of those.
BOBBIN_IO_TEST(ReceiveAheadTest, WhatThereIsNoRoomForIsGoneAndTold) {
  AheadPair pair;
  std::array<std::byte, 4> small;
  std::vector<std::byte> large(10'000);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(pair.client.Send(Bytes("longer")));
    ASSERT_OK(pair.client.Send(Bytes("four")));
    auto cut = pair.server.Receive(small);
    ASSERT_OK(cut);
    EXPECT_EQ(Text(small, *cut), "long");
    EXPECT_TRUE(cut->is_truncated);
    auto whole = pair.server.Receive(small);
    ASSERT_OK(whole);
    EXPECT_EQ(Text(small, *whole), "four");
    EXPECT_FALSE(whole->is_truncated);

    for (const size_t bytes : {io::UdpSocket::kAheadBytesMax, io::UdpSocket::kAheadBytesMax + 1}) {
      std::vector<std::byte> sent(bytes);
      for (size_t i = 0; i < bytes; ++i) sent[i] = PatternAt(i);
      ASSERT_OK(pair.client.Send(sent));
      const auto received = pair.server.Receive(large);
      ASSERT_OK(received);
      EXPECT_EQ(received->is_truncated, received->bytes < bytes);
      EXPECT_GE(received->bytes, io::UdpSocket::kAheadBytesMax);
      EXPECT_TRUE(std::equal(large.begin(), large.begin() + static_cast<ptrdiff_t>(received->bytes),
                             sent.begin()));
    }
  }
}

BOBBIN_IO_TEST(ReceiveAheadTest, AReceiverWaitsUntilSomethingComes) {
  AheadPair pair;
  for (int round = 0; round < 4; ++round) {
    WaitProbe probe;
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      std::array<io::DatagramSlot, 4> slots;
      for (io::DatagramSlot& slot : slots) slot.buffer = buffer;
      EXPECT_THAT(pair.server.ReceiveBatch(slots), IsOkAndHolds(1u));
      EXPECT_EQ(Text(buffer, slots[0].datagram), "hi");
    });
    probe.AwaitParked();
    ASSERT_OK(pair.client.Send(Bytes("hi")));
    EXPECT_OK(receiver.Join());
  }
}

// What nobody asks for stays with the system when enough has been received ahead, and comes later,
// in order.
BOBBIN_IO_TEST(ReceiveAheadTest, NothingIsLostWhileNobodyAsks) {
  AheadPair pair;
  int next = 0;
  for (int round = 0; round < Rounds(5); ++round) {
    for (int i = 0; i < kMany; ++i) ASSERT_OK(pair.client.Send(NumberBytes(round * kMany + i)));
    SleepFor(microseconds(random().Below(500))).IgnoreError();
    EXPECT_GT(HeldBySystem(pair.server.local_address()->port()), 0u);
    while (next < (round + 1) * kMany) {
      std::array<int, io::UdpSocket::kBatchMax + 4> numbers;
      std::array<io::DatagramSlot, numbers.size()> slots;
      for (size_t i = 0; i < slots.size(); ++i) {
        slots[i].buffer = std::as_writable_bytes(std::span(&numbers[i], 1));
      }
      const auto count =
          pair.server.ReceiveBatch(std::span(slots).first(1 + random().Below(slots.size())));
      ASSERT_OK(count);
      ASSERT_LE(*count, io::UdpSocket::kBatchMax);
      for (size_t i = 0; i < *count; ++i) ASSERT_EQ(numbers[i], next++);
      if (random().OneIn(4)) Yield();
    }
  }
}

// Whoever keeps all of the carrier's buffers keeps nobody from receiving.
BOBBIN_IO_TEST(ReceiveAheadTest, DatagramsGoOnComingWhenAllBuffersAreKept) {
  Pair keeper = MakeLocalPair();
  std::vector<io::PooledBytes> kept;
  AheadPair pair;
  int sent = 0;
  int next = 0;
  for (int i = 0; i < kMoreThanAllBuffers; ++i) {
    ASSERT_OK(keeper.left.WriteAll(Bytes("k")));
    auto read = keeper.right.ReadPooled();
    ASSERT_OK(read);
    kept.push_back(*std::move(read));
    if (i % 4 != 0) continue;
    ASSERT_OK(pair.client.Send(NumberBytes(sent)));
    ++sent;
    if (i % 16 != 0) continue;
    ASSERT_EQ(ReceiveNumber(pair.server), next);
    ++next;
  }
  while (next < sent) ASSERT_EQ(ReceiveNumber(pair.server), next++);
  // Also when somebody waits, and when the buffers come back.
  for (int round = 0; round < 3; ++round) {
    WaitProbe probe;
    VirtualThread receiver = Spawn([&] {
      probe.Attach();
      EXPECT_EQ(ReceiveNumber(pair.server), sent);
    });
    probe.AwaitParked();
    if (round == 1) kept.clear();
    ASSERT_OK(pair.client.Send(NumberBytes(sent)));
    EXPECT_OK(receiver.Join());
    ++sent;
  }
}

// The sender and those who receive, one after the other, are on any carriers.
BOBBIN_IO_TEST(ReceiveAheadTest, DeadlinesLoseNoDatagram) {
  AheadPair pair;
  const int total = 2 + Rounds(1000);
  std::atomic<int> in_flight{0};
  std::atomic<int> expired{0};
  VirtualThread sender =
      Spawn({.placement = Placement::kSpread}, [&, jitter = random().Fork()]() mutable {
        for (int i = 0; i < total; ++i) {
          while (in_flight > 100) Yield();
          ++in_flight;
          EXPECT_OK(pair.client.Send(NumberBytes(i)));
          if (jitter.OneIn(2)) SleepFor(microseconds(jitter.Below(300))).IgnoreError();
          // Now and then, and once in any case, until a deadline has come in vain; after the last
          // one nobody waits.
          if (i + 1 == total || (i != total / 2 && !jitter.OneIn(16))) continue;
          for (const int before = expired; before == expired;) {
            SleepFor(microseconds(50)).IgnoreError();
          }
        }
      });
  for (int next = 0; next < total;) {
    // A few by this thread, a few by another one.
    const int until = std::min(total, next + 1 + static_cast<int>(random().Below(20)));
    VirtualThread receiver =
        Spawn({.placement = Placement::kSpread}, [&, jitter = random().Fork()]() mutable {
          while (next < until) {
            DeadlineScope scope(microseconds(jitter.Between(0, 300)));
            int number = -1;
            const absl::Status status =
                pair.server.Receive(std::as_writable_bytes(std::span(&number, 1))).status();
            if (absl::IsDeadlineExceeded(status)) {
              ++expired;
              continue;
            }
            EXPECT_OK(status);
            EXPECT_EQ(number, next);
            ++next;
            --in_flight;
          }
        });
    ASSERT_OK(receiver.Join());
  }
  EXPECT_OK(sender.Join());
  EXPECT_GT(expired, 0);
}

BOBBIN_IO_TEST(ReceiveAheadTest, OneReceiverAtATimeAndCancelEndsIt) {
  AheadPair pair;
  for (int round = 0; round < 3; ++round) {
    WaitProbe probe;
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      EXPECT_THAT(pair.server.Receive(buffer), StatusIs(kCancelled));
    });
    probe.AwaitParked();
    std::array<std::byte, 8> buffer;
    EXPECT_THAT(pair.server.Receive(buffer), StatusIs(kFailedPrecondition));
    receiver.Cancel();
    EXPECT_OK(receiver.Join());
    ASSERT_OK(pair.client.Send(NumberBytes(round)));
    EXPECT_EQ(ReceiveNumber(pair.server), round);
  }
}

// The peer's machine says that nobody is there: once for each datagram.
BOBBIN_IO_TEST(ReceiveAheadTest, AConnectedSocketIsToldThatNobodyIsThereAndGoesOn) {
  const io::SocketAddress nobody = *io::UdpSocket::Bind("127.0.0.1:0")->local_address();
  auto client = io::UdpSocket::Connect(nobody, {.receiving = io::Receiving::kAhead});
  ASSERT_OK(client);
  for (int round = 0; round < Rounds(20); ++round) {
    WaitProbe probe;
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      EXPECT_THAT(client->Receive(buffer), StatusIs(kUnavailable));
    });
    probe.AwaitParked();
    ASSERT_OK(client->Send(Bytes("anybody?")));
    EXPECT_OK(receiver.Join());
  }
}

// While somebody waits, while nobody does, and while datagrams come.
BOBBIN_IO_TEST(ReceiveAheadTest, CloseEndsReceiversAndLaterCalls) {
  const size_t descriptors = OpenDescriptors();
  for (int round = 0; round < Rounds(60); ++round) {
    AheadPair pair;
    WaitProbe probe;
    // Then its handle goes while somebody is inside, and nobody is about to begin a call.
    const bool is_abandoned = round % 4 == 0;
    if (random().OneIn(2)) {
      ASSERT_OK(pair.client.Send(NumberBytes(0)));
      EXPECT_EQ(ReceiveNumber(pair.server), 0);
    }
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      absl::Status status;
      while (status.ok()) status = pair.server.Receive(buffer).status();
      EXPECT_THAT(status, StatusIs(kAborted));
    });
    if (is_abandoned || random().OneIn(2)) probe.AwaitParked();
    const bool has_traffic = !is_abandoned && random().OneIn(2);
    VirtualThread sender = Spawn({.placement = Placement::kSpread}, [&] {
      for (int i = 0; has_traffic && i < 20; ++i) {
        // Once the server has closed, the client is told that nobody is there.
        pair.client.Send(NumberBytes(i)).IgnoreError();
        Yield();
      }
    });
    if (random().OneIn(2)) Yield();
    if (is_abandoned) {
      pair.server = io::UdpSocket();
    } else {
      pair.server.Close();
      std::array<std::byte, 8> buffer;
      EXPECT_THAT(pair.server.Receive(buffer), StatusIs(kAborted));
    }
    EXPECT_OK(receiver.Join());
    EXPECT_OK(sender.Join());
  }
  AwaitTrue([&] { return OpenDescriptors() == descriptors; });
}

// An OS thread finds what a carrier has received ahead, and receives itself where none does.
BOBBIN_IO_FOREIGN_TEST(ReceiveAheadTest, ForeignThreadsReceive) {
  AheadPair pair;
  int sent = 0;
  for (int round = 0; round < 3; ++round) {
    {
      DeadlineScope scope(milliseconds(2));
      std::array<std::byte, 8> buffer;
      EXPECT_THAT(pair.server.Receive(buffer), StatusIs(kDeadlineExceeded));
    }
    ASSERT_OK(pair.client.Send(NumberBytes(sent)));
    ASSERT_EQ(ReceiveNumber(pair.server), sent++);
    // From here on a carrier receives ahead.
    ASSERT_OK(pair.client.Send(NumberBytes(sent)));
    EXPECT_OK(runtime().Spawn([&] { EXPECT_EQ(ReceiveNumber(pair.server), sent++); }).Join());
    for (int i = 0; i < kMany; ++i) ASSERT_OK(pair.client.Send(NumberBytes(sent + i)));
    for (int i = 0; i < kMany; ++i) ASSERT_EQ(ReceiveNumber(pair.server), sent++);
  }
  OsThreads threads;
  std::atomic<bool> is_about_to_receive{false};
  threads.Start([&] {
    is_about_to_receive = true;
    std::array<std::byte, 8> buffer;
    EXPECT_THAT(pair.server.Receive(buffer), StatusIs(kAborted));
  });
  AwaitTrue([&] { return is_about_to_receive.load(); });
  EXPECT_OK(runtime().Spawn([&] { pair.server.Close(); }).Join());
}

// A runtime that ends takes its operation back; another one goes on where it was.
TEST(ReceiveAheadLifeTest, SocketsOutliveARuntime) {
  for (const Backend backend : Backends()) {
    std::optional<AheadPair> pair;
    for (int round = 0; round < 3; ++round) {
      Runtime runtime({.carriers = 2, .poller = MakePollers(backend)});
      EXPECT_OK(runtime
                    .Spawn([&] {
                      if (!pair.has_value()) pair.emplace();
                      for (int i = 0; i < 3; ++i) {
                        EXPECT_OK(pair->client.Send(NumberBytes(i)));
                        EXPECT_EQ(ReceiveNumber(pair->server), i);
                      }
                    })
                    .Join());
    }
  }
}

}  // namespace
}  // namespace bobbin::test
