// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
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

io::UdpSocket NewSocket(const io::UdpOptions& options = {}) {
  auto socket = io::UdpSocket::Bind("127.0.0.1:0", options);
  EXPECT_OK(socket);
  return *std::move(socket);
}

// A server and a client that is connected to it.
struct UdpPair {
  io::UdpSocket server;
  io::UdpSocket client;
};

UdpPair MakeUdpPair(const io::UdpOptions& options = {}) {
  io::UdpSocket server = NewSocket(options);
  auto client = io::UdpSocket::Connect(*server.local_address());
  EXPECT_OK(client);
  return {std::move(server), *std::move(client)};
}

std::string Text(std::span<const std::byte> buffer, const io::Datagram& datagram) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), datagram.bytes);
}

// A port at which nobody is.
io::SocketAddress Nobody() { return *NewSocket().local_address(); }

BOBBIN_IO_TEST(UdpSocketTest, DatagramsArriveAsTheyWereSentAndSayFromWhom) {
  UdpPair pair = MakeUdpPair();
  std::array<std::byte, 64> buffer;
  ASSERT_OK(pair.client.Send(Bytes("question")));
  ASSERT_OK(pair.client.Send({}));
  auto question = pair.server.Receive(buffer);
  ASSERT_OK(question);
  EXPECT_EQ(Text(buffer, *question), "question");
  EXPECT_FALSE(question->is_truncated);
  EXPECT_EQ(question->peer, *pair.client.local_address());
  auto empty = pair.server.Receive(buffer);
  ASSERT_OK(empty);
  EXPECT_EQ(empty->bytes, 0u);
  EXPECT_EQ(empty->peer, question->peer);
  ASSERT_OK(pair.server.SendTo(Bytes("answer"), question->peer));
  auto answer = pair.client.Receive(buffer);
  ASSERT_OK(answer);
  EXPECT_EQ(Text(buffer, *answer), "answer");
  EXPECT_EQ(answer->peer, *pair.server.local_address());
}

BOBBIN_IO_TEST(UdpSocketTest, AReceiverWaitsUntilSomethingComes) {
  UdpPair pair = MakeUdpPair();
  for (const bool is_batch : {false, true}) {
    WaitProbe probe;
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      io::Datagram datagram;
      if (is_batch) {
        std::array<io::DatagramSlot, 1> slots = {{{.buffer = buffer, .datagram = {}}}};
        EXPECT_THAT(pair.server.ReceiveBatch(slots), IsOkAndHolds(1u));
        datagram = slots[0].datagram;
      } else {
        datagram = *pair.server.Receive(buffer);
      }
      EXPECT_EQ(Text(buffer, datagram), "hi");
    });
    probe.AwaitParked();
    ASSERT_OK(pair.client.Send(Bytes("hi")));
    EXPECT_OK(receiver.Join());
  }
}

BOBBIN_IO_TEST(UdpSocketTest, WhatTheBufferHasNoRoomForIsGoneAndTold) {
  UdpPair pair = MakeUdpPair();
  std::array<std::byte, 4> buffer;
  ASSERT_OK(pair.client.Send(Bytes("longer")));
  ASSERT_OK(pair.client.Send(Bytes("four")));
  auto cut = pair.server.Receive(buffer);
  ASSERT_OK(cut);
  EXPECT_EQ(Text(buffer, *cut), "long");
  EXPECT_TRUE(cut->is_truncated);
  auto whole = pair.server.Receive(buffer);
  ASSERT_OK(whole);
  EXPECT_EQ(Text(buffer, *whole), "four");
  EXPECT_FALSE(whole->is_truncated);
  ASSERT_OK(pair.client.Send(Bytes("longer")));
  std::array<io::DatagramSlot, 2> slots = {{{.buffer = buffer, .datagram = {}}, {}}};
  EXPECT_THAT(pair.server.ReceiveBatch(slots), IsOkAndHolds(1u));
  EXPECT_TRUE(slots[0].datagram.is_truncated);
}

BOBBIN_IO_TEST(UdpSocketTest, WhatIsTooLongForADatagramIsAnError) {
  UdpPair pair = MakeUdpPair();
  EXPECT_THAT(pair.client.Send(std::vector<std::byte>(70'000)), StatusIs(kInvalidArgument));
  std::vector<std::byte> longest(65'507, std::byte{7});
  ASSERT_OK(pair.client.Send(longest));
  std::vector<std::byte> buffer(70'000);
  const auto received = pair.server.Receive(buffer);
  ASSERT_OK(received);
  EXPECT_EQ(received->bytes, longest.size());
}

BOBBIN_IO_TEST(UdpSocketTest, SocketsOverIpv6AndByText) {
  auto server = io::UdpSocket::Bind("[::1]:0");
  ASSERT_OK(server);
  auto client = io::UdpSocket::Connect(server->local_address()->ToString());
  ASSERT_OK(client);
  ASSERT_OK(client->Send(Bytes("six")));
  std::array<std::byte, 8> buffer;
  const auto received = server->Receive(buffer);
  ASSERT_OK(received);
  EXPECT_TRUE(received->peer.is_ipv6());
  EXPECT_THAT(io::UdpSocket::Bind("nowhere:1"), StatusIs(kInvalidArgument));
  // An address that is taken, unless both say that it may be.
  EXPECT_THAT(io::UdpSocket::Bind(*server->local_address()), StatusIs(kFailedPrecondition));
  io::UdpSocket first = NewSocket({.reuse_port = true});
  EXPECT_OK(io::UdpSocket::Bind(*first.local_address(), {.reuse_port = true}));
}

// The peer's machine says that nobody is there: in the next call, or in the one that waits.
BOBBIN_IO_TEST(UdpSocketTest, AConnectedSocketIsToldThatNobodyIsThereAndGoesOn) {
  for (int round = 0; round < Rounds(20); ++round) {
    auto client = io::UdpSocket::Connect(Nobody());
    ASSERT_OK(client);
    WaitProbe probe;
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      if (round % 2 == 0) {
        EXPECT_THAT(client->Receive(buffer), StatusIs(kUnavailable));
      } else {
        std::array<io::DatagramSlot, 1> slots = {{{.buffer = buffer, .datagram = {}}}};
        EXPECT_THAT(client->ReceiveBatch(slots), StatusIs(kUnavailable));
      }
    });
    probe.AwaitParked();
    ASSERT_OK(client->Send(Bytes("anybody?")));
    EXPECT_OK(receiver.Join());
    // Told once. The next one goes out, and is answered likewise.
    ASSERT_OK(client->Send(Bytes("anybody?")));
    std::array<std::byte, 8> buffer;
    EXPECT_THAT(client->Receive(buffer), StatusIs(kUnavailable));
  }
}

// Of one that is not connected it is not said which datagram was meant: nobody is told.
BOBBIN_IO_TEST(UdpSocketTest, ASocketThatIsNotConnectedIsNotDisturbedByAPeerThatIsGone) {
  UdpPair pair = MakeUdpPair();
  const io::SocketAddress nobody = Nobody();
  for (int i = 0; i < 10; ++i) ASSERT_OK(pair.server.SendTo(Bytes("anybody?"), nobody));
  ASSERT_OK(pair.client.Send(Bytes("me")));
  std::array<std::byte, 8> buffer;
  const auto received = pair.server.Receive(buffer);
  ASSERT_OK(received);
  EXPECT_EQ(Text(buffer, *received), "me");
}

BOBBIN_IO_TEST(UdpSocketTest, ABatchTakesWhatIsThere) {
  UdpPair pair = MakeUdpPair();
  for (int i = 0; i < 20; ++i) ASSERT_OK(pair.client.Send(Bytes(std::string(1, char('a' + i)))));
  std::array<std::array<std::byte, 4>, 32> buffers;
  std::array<io::DatagramSlot, 32> slots;
  for (size_t i = 0; i < slots.size(); ++i) slots[i].buffer = buffers[i];
  EXPECT_THAT(pair.server.ReceiveBatch(slots), IsOkAndHolds(io::UdpSocket::kBatchMax));
  for (size_t i = 0; i < io::UdpSocket::kBatchMax; ++i) {
    EXPECT_EQ(Text(buffers[i], slots[i].datagram), std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(slots[i].datagram.peer, *pair.client.local_address());
  }
  EXPECT_THAT(pair.server.ReceiveBatch(std::span(slots).first(3)), IsOkAndHolds(3u));
  EXPECT_THAT(pair.server.ReceiveBatch(slots), IsOkAndHolds(1u));
  EXPECT_EQ(Text(buffers[0], slots[0].datagram), "t");
}

// Many send over one socket at the same time, to one that receives in batches and one by one.
BOBBIN_IO_TEST(UdpSocketTest, ManySendersDoNotMixTheirDatagrams) {
  UdpPair pair = MakeUdpPair({.receive_buffer_bytes = 4 << 20});
  const int senders = 20;
  const int each = Rounds(20);
  std::atomic<int> in_flight{0};
  TaskGroup group({.placement = Placement::kSpread});
  for (int sender = 0; sender < senders; ++sender) {
    group.Spawn([&, sender]() -> absl::Status {
      for (int i = 0; i < each; ++i) {
        // The system throws away what it has no room for: not too many at a time.
        while (in_flight > 100) Yield();
        ++in_flight;
        const std::array<int, 2> message = {sender, i};
        BOBBIN_RETURN_IF_ERROR(pair.client.Send(std::as_bytes(std::span(message))));
        if (i % 8 == 0) Yield();
      }
      return absl::OkStatus();
    });
  }
  std::set<std::pair<int, int>> seen;
  std::array<std::array<int, 2>, 8> messages;
  std::array<io::DatagramSlot, 8> slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].buffer = std::as_writable_bytes(std::span(messages[i]));
  }
  while (seen.size() < static_cast<size_t>(senders * each)) {
    size_t count = 1;
    if (random().OneIn(2)) {
      const auto batch = pair.server.ReceiveBatch(slots);
      ASSERT_OK(batch);
      count = *batch;
    } else {
      const auto one = pair.server.Receive(slots[0].buffer);
      ASSERT_OK(one);
      slots[0].datagram = *one;
    }
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(slots[i].datagram.bytes, sizeof(messages[i]));
      EXPECT_TRUE(seen.insert({messages[i][0], messages[i][1]}).second);
    }
    in_flight -= static_cast<int>(count);
  }
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(UdpSocketTest, DeadlinesLoseNoDatagram) {
  UdpPair pair = MakeUdpPair({.receive_buffer_bytes = 4 << 20});
  const int total = 2 + Rounds(1000);
  std::atomic<int> in_flight{0};
  std::atomic<int> expired{0};
  VirtualThread sender =
      Spawn({.placement = Placement::kSpread}, [&, jitter = random().Fork()]() mutable {
        for (int i = 0; i < total; ++i) {
          while (in_flight > 100) Yield();
          ++in_flight;
          EXPECT_OK(pair.client.Send(std::as_bytes(std::span(&i, 1))));
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
    DeadlineScope scope(microseconds(random().Between(0, 300)));
    int number = -1;
    const auto buffer = std::as_writable_bytes(std::span(&number, 1));
    std::array<io::DatagramSlot, 1> slots = {{{.buffer = buffer, .datagram = {}}}};
    const absl::Status status = random().OneIn(2) ? pair.server.Receive(buffer).status()
                                                  : pair.server.ReceiveBatch(slots).status();
    if (absl::IsDeadlineExceeded(status)) {
      ++expired;
      continue;
    }
    ASSERT_OK(status);
    ASSERT_EQ(number, next);
    ++next;
    --in_flight;
  }
  EXPECT_OK(sender.Join());
  EXPECT_GT(expired, 0);
}

BOBBIN_IO_TEST(UdpSocketTest, OneReceiverAtATimeAndCancelEndsIt) {
  io::UdpSocket socket = NewSocket();
  WaitProbe probe;
  VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
    probe.Attach();
    std::array<std::byte, 8> buffer;
    EXPECT_THAT(socket.Receive(buffer), StatusIs(kCancelled));
  });
  probe.AwaitParked();
  std::array<std::byte, 8> buffer;
  const auto second = socket.Receive(buffer);
  EXPECT_THAT(second, StatusIs(kFailedPrecondition));
  EXPECT_EQ(MessageOf(second.status()), "receive: another thread is in a read of this socket");
  std::array<io::DatagramSlot, 1> slots;
  EXPECT_THAT(socket.ReceiveBatch(slots), StatusIs(kFailedPrecondition));
  receiver.Cancel();
  EXPECT_OK(receiver.Join());
}

// Connected or not, by one call or the other.
BOBBIN_IO_TEST(UdpSocketTest, CloseEndsReceiversAndLaterCalls) {
  const size_t descriptors = OpenDescriptors();
  for (int round = 0; round < Rounds(50); ++round) {
    UdpPair pair = MakeUdpPair();
    io::UdpSocket& socket = round % 2 == 0 ? pair.server : pair.client;
    WaitProbe probe;
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      std::array<io::DatagramSlot, 2> slots = {{{.buffer = buffer, .datagram = {}}, {}}};
      if (round % 4 < 2) {
        EXPECT_THAT(socket.Receive(buffer), StatusIs(kAborted));
      } else {
        EXPECT_THAT(socket.ReceiveBatch(slots), StatusIs(kAborted));
      }
    });
    if (random().OneIn(2)) probe.AwaitParked();
    socket.Close();
    EXPECT_OK(receiver.Join());
    EXPECT_THAT(socket.Send(Bytes("x")), StatusIs(kAborted));
    EXPECT_THAT(socket.SendTo(Bytes("x"), Nobody()), StatusIs(kAborted));
    EXPECT_THAT(socket.local_address(), StatusIs(kAborted));
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

// Nobody is about to begin a call, but somebody is in one.
BOBBIN_IO_TEST(UdpSocketTest, AHandleThatGoesEndsItsReceiver) {
  for (int round = 0; round < Rounds(10); ++round) {
    io::UdpSocket socket = NewSocket();
    WaitProbe probe;
    VirtualThread receiver = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 8> buffer;
      std::array<io::DatagramSlot, 2> slots = {{{.buffer = buffer, .datagram = {}}, {}}};
      const absl::Status status =
          round % 2 == 0 ? socket.Receive(buffer).status() : socket.ReceiveBatch(slots).status();
      EXPECT_THAT(status, StatusIs(kAborted));
    });
    probe.AwaitParked();
    socket = io::UdpSocket();
    EXPECT_OK(receiver.Join());
  }
}

BOBBIN_IO_FOREIGN_TEST(UdpSocketTest, ForeignThreadsSendAndReceive) {
  UdpPair pair = MakeUdpPair();
  std::array<std::byte, 8> buffer;
  std::array<io::DatagramSlot, 2> slots = {{{.buffer = buffer, .datagram = {}}, {}}};
  {
    DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(pair.server.Receive(buffer), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(pair.server.ReceiveBatch(slots), StatusIs(kDeadlineExceeded));
  }
  ASSERT_OK(pair.client.Send(Bytes("one")));
  EXPECT_OK(pair.server.Receive(buffer));
  ASSERT_OK(pair.client.Send(Bytes("two")));
  EXPECT_THAT(pair.server.ReceiveBatch(slots), IsOkAndHolds(1u));
  EXPECT_EQ(Text(buffer, slots[0].datagram), "two");
  for (const bool is_batch : {false, true}) {
    io::UdpSocket socket = NewSocket();
    std::atomic<bool> is_about_to_receive{false};
    OsThreads threads;
    threads.Start([&] {
      std::array<std::byte, 8> its_buffer;
      std::array<io::DatagramSlot, 1> its_slots = {{{.buffer = its_buffer, .datagram = {}}}};
      is_about_to_receive = true;
      if (is_batch) {
        EXPECT_THAT(socket.ReceiveBatch(its_slots), StatusIs(kAborted));
      } else {
        EXPECT_THAT(socket.Receive(its_buffer), StatusIs(kAborted));
      }
    });
    AwaitTrue([&] { return is_about_to_receive.load(); });
    EXPECT_OK(runtime().Spawn([&] { socket.Close(); }).Join());
  }
}

TEST(UdpSocketDeathTest, AnEmptyOneAborts) {
  io::UdpSocket socket;
  EXPECT_DEATH(socket.Close(), "this UdpSocket holds no socket");
}

}  // namespace
}  // namespace bobbin::test
