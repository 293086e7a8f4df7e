// SPDX-License-Identifier: Apache-2.0

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/support/cross_over.h"
#include "tests/support/leak_check.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// --- What it is for

BOBBIN_IO_TEST(TcpStreamTest, ReadReturnsWhatWasWritten) {
  Pair pair = MakePair();
  ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
  EXPECT_EQ(ReadText(pair.right, 4), "ping");
  ASSERT_OK(pair.right.WriteAll(Bytes("pong!")));
  EXPECT_EQ(ReadText(pair.left, 5), "pong!");
}

BOBBIN_IO_TEST(TcpStreamTest, ReadWaitsUntilSomethingComes) {
  Pair pair = MakePair();
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    EXPECT_EQ(ReadText(pair.right, 2), "hi");
  });
  probe.AwaitParked();
  ASSERT_OK(pair.left.WriteAll(Bytes("hi")));
  EXPECT_OK(reader.Join());
}

BOBBIN_IO_TEST(TcpStreamTest, EndsKnowEachOther) {
  Pair pair = MakePair();
  const auto left = pair.left.local_address();
  const auto seen = pair.right.peer_address();
  ASSERT_OK(left);
  ASSERT_OK(seen);
  EXPECT_EQ(*left, *seen);
}

BOBBIN_IO_TEST(TcpStreamTest, ConnectsOverIpv6AndByText) {
  auto listener = io::TcpListener::Bind("[::1]:0");
  ASSERT_OK(listener);
  EXPECT_OK(io::TcpStream::Connect(listener->local_address().ToString()));
  EXPECT_OK(io::TcpStream::Connect("::1", listener->local_address().port()));
  EXPECT_THAT(io::TcpStream::Connect("127.0.0.1"), StatusIs(kInvalidArgument));
  EXPECT_THAT(io::TcpStream::Connect("1.2.3:1"), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(TcpStreamTest, ConnectToNobodyIsUnavailableAndSaysWhere) {
  io::SocketAddress nobody;
  {
    auto listener = io::TcpListener::Bind("127.0.0.1:0");
    ASSERT_OK(listener);
    nobody = listener->local_address();
  }
  const auto stream = io::TcpStream::Connect(nobody);
  ASSERT_THAT(stream, StatusIs(kUnavailable));
  EXPECT_EQ(MessageOf(stream.status()), "connect " + nobody.ToString() + ": connection refused");
}

// Each operation goes to the ring of the carrier that the thread is on by then, and its error comes
// from there.
BOBBIN_IO_TEST(TcpStreamTest, AMigratingThreadUsesTheRingOfItsCarrier) {
  if (carriers() == 1) return;
  io::SocketAddress nobody;
  {
    auto listener = io::TcpListener::Bind("127.0.0.1:0");
    ASSERT_OK(listener);
    nobody = listener->local_address();
  }
  Pair pair = MakePair();
  VirtualThread moving = Spawn({.migrates = true}, [&] {
    for (int round = 0; round < Rounds(100); ++round) {
      ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
      CrossOver();
      ASSERT_EQ(ReadText(pair.right, 4), "ping");
      ASSERT_THAT(io::TcpStream::Connect(nobody), StatusIs(kUnavailable));
    }
  });
  EXPECT_OK(moving.Join());
}

BOBBIN_IO_TEST(TcpStreamTest, EmptyTransfersReturnAtOnce) {
  Pair pair = MakePair();
  EXPECT_THAT(pair.left.Read(std::span<std::byte>()), IsOkAndHolds(0u));
  EXPECT_THAT(pair.left.Write(std::span<const std::byte>()), IsOkAndHolds(0u));
  EXPECT_OK(pair.left.WriteAll(std::span<const std::byte>()));
  EXPECT_OK(pair.left.ReadExact({}));
}

BOBBIN_IO_TEST(TcpStreamTest, ReadExactFillsTheBufferOrTellsWhereTheStreamEnded) {
  Pair pair = MakePair();
  std::array<std::byte, 6> buffer;
  VirtualThread writer = Spawn([&] {
    for (const char* const part : {"a", "bc", "def", "gh"}) {
      EXPECT_OK(pair.left.WriteAll(Bytes(part)));
      Yield();
    }
    EXPECT_OK(pair.left.ShutdownWrite());
  });
  ASSERT_OK(pair.right.ReadExact(buffer));
  EXPECT_EQ(std::memcmp(buffer.data(), "abcdef", 6), 0);
  const absl::Status end = pair.right.ReadExact(buffer);
  EXPECT_THAT(end, StatusIs(kOutOfRange));
  EXPECT_EQ(MessageOf(end), "read: the peer ended after 2 of 6 bytes");
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(TcpStreamTest, ReaderAndWriterWorkAtTheSameTime) {
  Pair pair = MakePair();
  const std::string text(size_t{4} << 20, 'x');
  TaskGroup group({.placement = Placement::kSpread});
  for (io::TcpStream* const end : {&pair.left, &pair.right}) {
    group.Spawn([&text, end] { return end->WriteAll(Bytes(text)); });
    group.Spawn([&text, end] { EXPECT_EQ(ReadText(*end, text.size()).size(), text.size()); });
  }
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(TcpStreamTest, SecondReaderAndSecondWriterAreRefused) {
  Pair pair = MakePair();
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    EXPECT_EQ(ReadText(pair.right, 1), "x");
  });
  probe.AwaitParked();
  std::array<std::byte, 1> buffer;
  const auto second = pair.right.Read(buffer);
  EXPECT_THAT(second, StatusIs(kFailedPrecondition));
  EXPECT_EQ(MessageOf(second.status()), "read: another thread is in a read of this socket");

  WaitProbe writing;
  VirtualThread writer = Spawn([&] {
    writing.Attach();
    EXPECT_THAT(pair.right.WriteAll(Bytes(std::string(size_t{64} << 20, 'y'))), StatusIs(kAborted));
  });
  writing.AwaitParked();
  EXPECT_THAT(pair.right.Write(Bytes("z")), StatusIs(kFailedPrecondition));
  ASSERT_OK(pair.left.WriteAll(Bytes("x")));
  EXPECT_OK(reader.Join());
  pair.right.Close();
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(TcpStreamTest, AfterAShutdownOfReadingWhatHasComeIsReadAndThenTheEnd) {
  Pair pair = MakePair();
  ASSERT_OK(pair.left.WriteAll(Bytes("late")));
  EXPECT_EQ(ReadText(pair.right, 1), "l");
  ASSERT_OK(pair.right.ShutdownRead());
  EXPECT_EQ(ReadText(pair.right, 9), "ate");
  ASSERT_OK(pair.right.WriteAll(Bytes("still")));
  EXPECT_EQ(ReadText(pair.left, 5), "still");
}

BOBBIN_IO_TEST(TcpStreamTest, AShutdownOfReadingEndsAReadThatWaits) {
  Pair pair = MakePair();
  WaitProbe probe;
  VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
    probe.Attach();
    EXPECT_EQ(ReadText(pair.right, 1), "");
  });
  probe.AwaitParked();
  ASSERT_OK(pair.right.ShutdownRead());
  EXPECT_OK(reader.Join());
}

BOBBIN_IO_TEST(TcpStreamTest, ItIsQuietUntilSomethingComesOrAnEnd) {
  Pair pair = MakePair();
  EXPECT_TRUE(pair.right.IsQuiet());
  ASSERT_OK(pair.left.WriteAll(Bytes("x")));
  AwaitTrue([&] { return !pair.right.IsQuiet(); });
  EXPECT_EQ(ReadText(pair.right, 1), "x");
  EXPECT_TRUE(pair.right.IsQuiet());
  ASSERT_OK(pair.left.ShutdownWrite());
  AwaitTrue([&] { return !pair.right.IsQuiet(); });
  pair.left.Close();
  EXPECT_FALSE(pair.left.IsQuiet());
}

// --- Short transfers

BOBBIN_IO_TEST(TcpStreamTest, WaitReadableTakesNothing) {
  for (const bool is_local : {false, true}) {
    Pair pair = is_local ? MakeLocalPair() : MakePair();
    WaitProbe first, second;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      first.Attach();
      EXPECT_OK(pair.left.WaitReadable());
      EXPECT_OK(pair.left.WaitReadable());
      EXPECT_EQ(ReadText(pair.left, 4), "ping");
    });
    first.AwaitParked();
    EXPECT_THAT(pair.left.WaitReadable(), StatusIs(kFailedPrecondition));
    ASSERT_OK(pair.right.WriteAll(Bytes("ping")));
    EXPECT_OK(reader.Join());
    // An end counts, and stays; a close of this side ends the wait.
    pair.right.Close();
    EXPECT_OK(pair.left.WaitReadable());
    EXPECT_EQ(ReadText(pair.left, 1), "");
    Pair other = is_local ? MakeLocalPair() : MakePair();
    reader = Spawn({.placement = Placement::kSpread}, [&] {
      second.Attach();
      EXPECT_THAT(other.left.WaitReadable(), StatusIs(kAborted));
    });
    second.AwaitParked();
    other.left.Close();
    EXPECT_OK(reader.Join());
    EXPECT_THAT(other.left.WaitReadable(), StatusIs(kAborted));
  }
}

BOBBIN_IO_TEST(TcpStreamTest, WriteAllToASlowReaderLosesNothing) {
  Pair pair = MakeLocalPair(4096);
  const size_t total = static_cast<size_t>(Rounds(16)) << 20;
  std::vector<std::byte> sent(total);
  for (size_t i = 0; i < total; ++i) sent[i] = PatternAt(i);
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(pair.left.WriteAll(sent));
    return pair.left.ShutdownWrite();
  });

  Random sizes = random().Fork();
  std::vector<std::byte> buffer(100'000);
  size_t have = 0;
  while (true) {
    auto received = pair.right.Read(std::span(buffer).first(1 + sizes.Below(buffer.size())));
    ASSERT_OK(received);
    if (*received == 0) break;
    ASSERT_LE(have + *received, total);
    ASSERT_EQ(std::memcmp(buffer.data(), sent.data() + have, *received), 0);
    have += *received;
    if (sizes.OneIn(64)) Yield();
  }
  EXPECT_EQ(have, total);
  EXPECT_OK(writer.Join());
}

// Reads from a foreign thread, so fast that a writer never has to wait for it.
void Drain(io::TcpStream& stream) {
  std::vector<std::byte> buffer(size_t{1} << 20);
  while (true) {
    const auto received = stream.Read(buffer);
    if (!received.ok() || *received == 0) return;
  }
}

BOBBIN_IO_FOREIGN_TEST(TcpStreamTest, AWriterThatNeverWaitsLetsOthersRunAndObeysItsDeadline) {
  Pair pair = MakeLocalPair();
  OsThreads threads;
  threads.Start([&] { Drain(pair.right); });
  std::atomic<bool> is_over{false};
  std::atomic<int> turns{0};
  std::vector<VirtualThread> others;
  for (int i = 0; i < carriers(); ++i) {
    others.push_back(runtime().Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
      while (!is_over) {
        BOBBIN_RETURN_IF_ERROR(SleepFor(milliseconds(1)));
        ++turns;
      }
      return absl::OkStatus();
    }));
  }
  EXPECT_OK(runtime()
                .Spawn([&] {
                  absl::Status status;
                  while (status.ok() && turns < 10) status = pair.left.WriteAll(Bytes("x"));
                  DeadlineScope scope(milliseconds(10));
                  while (status.ok()) status = pair.left.WriteAll(Bytes("x"));
                  EXPECT_THAT(status, StatusIs(kDeadlineExceeded));
                })
                .Join());
  is_over = true;
  for (VirtualThread& other : others) EXPECT_OK(other.Join());
  pair.left.Close();
}

BOBBIN_IO_FOREIGN_TEST(TcpStreamTest, AReaderThatNeverWaitsLetsOthersRunAndObeysItsDeadline) {
  Pair pair = MakeLocalPair();
  OsThreads threads;
  threads.Start([&] {
    const std::vector<std::byte> bytes(size_t{1} << 16);
    while (pair.right.WriteAll(bytes).ok()) {
    }
  });
  std::atomic<bool> is_over{false};
  std::atomic<int> turns{0};
  std::vector<VirtualThread> others;
  for (int i = 0; i < carriers(); ++i) {
    others.push_back(runtime().Spawn({.placement = Placement::kSpread}, [&] {
      while (!is_over) {
        Yield();
        ++turns;
      }
    }));
  }
  EXPECT_OK(runtime()
                .Spawn([&] {
                  std::array<std::byte, 16> buffer;
                  absl::Status status;
                  while (status.ok() && turns < 10) status = pair.left.Read(buffer).status();
                  DeadlineScope scope(milliseconds(10));
                  int in_a_row = 0;
                  for (int seen = 0; status.ok(); ++in_a_row) {
                    // Where there is one carrier, the other thread is on it.
                    EXPECT_TRUE(carriers() > 1 || in_a_row < 64) << in_a_row;
                    if (turns != seen) in_a_row = 0;
                    seen = turns;
                    status = pair.left.Read(buffer).status();
                  }
                  EXPECT_THAT(status, StatusIs(kDeadlineExceeded));
                })
                .Join());
  is_over = true;
  for (VirtualThread& other : others) EXPECT_OK(other.Join());
  pair.left.Close();
}

BOBBIN_IO_TEST(TcpStreamTest, CancelEndsAWriterThatNeverWaits) {
  Pair pair = MakeLocalPair();
  OsThreads threads;
  threads.Start([&] { Drain(pair.right); });
  std::atomic<int> written{0};
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    absl::Status status;
    while (status.ok()) {
      status = pair.left.WriteAll(Bytes("x"));
      ++written;
    }
    EXPECT_THAT(status, StatusIs(kCancelled));
  });
  AwaitTrue([&] { return written > 100; });
  writer.Cancel();
  EXPECT_OK(writer.Join());
  pair.left.Close();
}

// --- Half-close, reset, broken pipe

BOBBIN_IO_TEST(TcpStreamTest, AnswerArrivesAfterTheAskerHasFinished) {
  Pair pair = MakePair();
  VirtualThread server = Spawn([&]() -> absl::Status {
    EXPECT_EQ(ReadText(pair.right, 100), "request");
    BOBBIN_RETURN_IF_ERROR(pair.right.WriteAll(Bytes(std::string(size_t{1} << 20, 'a'))));
    pair.right.Close();
    return absl::OkStatus();
  });
  ASSERT_OK(pair.left.WriteAll(Bytes("request")));
  ASSERT_OK(pair.left.ShutdownWrite());
  EXPECT_EQ(ReadText(pair.left, size_t{2} << 20).size(), size_t{1} << 20);
  EXPECT_OK(server.Join());
}

// That the peer has finished must not be taken for a reason to try again at once, or to give up.
BOBBIN_IO_TEST(TcpStreamTest, PeersThatHaveFinishedAndDoNotReadHoldNobodyUp) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 6; ++i) pairs.push_back(i < 2 ? MakePair() : MakeLocalPair(4096));
  const std::string text(size_t{16} << 20, 'a');
  std::vector<WaitProbe> probes(pairs.size());
  const auto finish = [](Pair& pair) { EXPECT_OK(pair.right.ShutdownWrite()); };
  TaskGroup writers({.placement = Placement::kSpread});
  for (size_t i = 0; i < pairs.size(); ++i) {
    // Some finish before the writer waits, some while it does.
    if (i % 2 == 0) finish(pairs[i]);
    writers.Spawn([&, i] {
      probes[i].Attach();
      return pairs[i].left.WriteAll(Bytes(text));
    });
    probes[i].AwaitParked();
    if (i % 2 == 1) finish(pairs[i]);
  }
  const uint64_t turns = runtime().Statistics().turns;
  ASSERT_OK(SleepFor(milliseconds(30)));
  EXPECT_LT(runtime().Statistics().turns - turns, 40u);
  ExpectNoKernelThreads();
  // The last first: each is independent of those that were there before.
  for (size_t i = pairs.size(); i-- > 0;) {
    std::vector<std::byte> buffer(text.size());
    EXPECT_OK(pairs[i].right.ReadExact(buffer));
  }
  EXPECT_OK(writers.Wait());
}

BOBBIN_IO_TEST(TcpStreamTest, DeadlineEndsAWriteToAPeerThatHasFinishedAndDoesNotRead) {
  for (int round = 0; round < Rounds(20); ++round) {
    Pair pair = MakeLocalPair(4096);
    ASSERT_OK(pair.right.ShutdownWrite());
    {
      DeadlineScope scope(microseconds(random().Between(500, 3000)));
      absl::Status status;
      while (status.ok()) status = pair.left.WriteAll(Bytes("some bytes that nobody reads"));
      EXPECT_THAT(status, StatusIs(kDeadlineExceeded));
    }
    pair.left.Close();
    std::array<std::byte, 4096> buffer;
    while (*pair.right.Read(buffer) > 0) {
    }
  }
}

// What comes last and the end may arrive together, or one behind the other at any instant.
BOBBIN_IO_TEST(TcpStreamTest, TheEndIsSeenBehindTheLastBytes) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&, random = random().Fork()]() mutable -> absl::Status {
      for (int round = 0; round < Rounds(100); ++round) {
        BOBBIN_ASSIGN_OR_RETURN(auto writer, io::TcpStream::Connect(listener->local_address()));
        BOBBIN_ASSIGN_OR_RETURN(auto reader, listener->Accept());
        VirtualThread other = Spawn({.placement = Placement::kSpread}, [&reader]() -> absl::Status {
          BOBBIN_RETURN_IF_ERROR(reader.WriteAll(Bytes("a")));
          EXPECT_EQ(ReadText(reader, 100).size() % 3, 0u);
          return absl::OkStatus();
        });
        EXPECT_EQ(ReadText(writer, 1), "a");
        for (uint64_t part = random.Below(4); part > 0; --part) {
          BOBBIN_RETURN_IF_ERROR(writer.WriteAll(Bytes("end")));
          for (uint64_t spins = random.Below(3); spins > 0; --spins) Yield();
        }
        BOBBIN_RETURN_IF_ERROR(writer.ShutdownWrite());
        BOBBIN_RETURN_IF_ERROR(other.Join());
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
}

// A read ends at the mark of urgent data, although there is more behind it.
BOBBIN_IO_TEST(TcpStreamTest, WhatIsBehindUrgentDataIsRead) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  for (int round = 0; round < Rounds(50); ++round) {
    const int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(peer, listener->local_address().data(), listener->local_address().bytes()),
              0);
    auto stream = listener->Accept();
    ASSERT_OK(stream);
    WaitProbe probe;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      EXPECT_EQ(ReadText(*stream, 6), "abcdef");
    });
    if (random().OneIn(2)) probe.AwaitParked();
    for (const auto& [text, flags] : {std::pair("ab", 0), {"!", MSG_OOB}, {"cd", 0}, {"ef", 0}}) {
      EXPECT_GT(::send(peer, text, std::strlen(text), flags), 0);
      if (random().OneIn(2)) Yield();
    }
    EXPECT_OK(reader.Join());
    ::close(peer);
  }
}

// Within the kernel a read ends behind a message that carries descriptors.
BOBBIN_IO_TEST(TcpStreamTest, WhatIsBehindDescriptorsIsRead) {
  for (int round = 0; round < Rounds(50); ++round) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    io::TcpStream stream = io::TcpStream::Adopt(ends[0]);
    WaitProbe probe;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      EXPECT_EQ(ReadText(stream, 6), "abcdef");
    });
    if (random().OneIn(2)) probe.AwaitParked();
    for (const char* const text : {"ab", "cd", "ef"}) {
      iovec part{.iov_base = const_cast<char*>(text), .iov_len = 2};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &ends[1], sizeof(int));
      EXPECT_EQ(::sendmsg(ends[1], &message, 0), 2);
    }
    EXPECT_OK(reader.Join());
    stream.Close();
    ::close(ends[1]);
  }
}

// A client that resets the connection when it is closed.
int ConnectWithReset(const io::SocketAddress& address) {
  const int fd = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(fd, address.data(), address.bytes()), 0);
  const linger reset{.l_onoff = 1, .l_linger = 0};
  EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
  return fd;
}

BOBBIN_IO_TEST(TcpStreamTest, ResetEndsReaderAndWriter) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  for (int round = 0; round < Rounds(20); ++round) {
    const int client = ConnectWithReset(listener->local_address());
    auto stream = listener->Accept();
    ASSERT_OK(stream);
    WaitProbe reading, writing;
    TaskGroup group({.placement = Placement::kSpread});
    group.Spawn([&] {
      reading.Attach();
      std::array<std::byte, 16> buffer;
      EXPECT_THAT(stream->Read(buffer), StatusIs(kUnavailable));
    });
    group.Spawn([&] {
      writing.Attach();
      EXPECT_THAT(stream->WriteAll(Bytes(std::string(size_t{32} << 20, 'w'))),
                  StatusIs(kUnavailable));
    });
    reading.AwaitParked();
    writing.AwaitParked();
    ::close(client);
    EXPECT_OK(group.Wait());
  }
}

BOBBIN_IO_TEST(TcpStreamTest, WritingToAPeerThatIsGoneIsAnErrorAndNoSignal) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  for (int round = 0; round < 50; ++round) {
    Pair pair = round % 2 == 0 ? MakePair() : MakeLocalPair();
    pair.right.Close();
    absl::Status status;
    while (status.ok()) status = pair.left.WriteAll(Bytes("anybody there?"));
    EXPECT_THAT(status, StatusIs(kUnavailable));
  }
}

// --- Closing

BOBBIN_IO_TEST(TcpStreamTest, CloseEndsAParkedReaderAndThePeerSeesTheEnd) {
  for (int round = 0; round < Rounds(50); ++round) {
    Pair pair = MakePair();
    WaitProbe probe;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 16> buffer;
      const auto received = pair.right.Read(buffer);
      EXPECT_THAT(received, StatusIs(kAborted));
      EXPECT_EQ(MessageOf(received.status()), "read: this side has closed it");
    });
    probe.AwaitParked();
    pair.right.Close();
    EXPECT_EQ(ReadText(pair.left, 1), "");
    EXPECT_OK(reader.Join());
  }
}

BOBBIN_IO_TEST(TcpStreamTest, CloseEndsAParkedWriter) {
  for (int round = 0; round < Rounds(20); ++round) {
    Pair pair = MakePair();
    WaitProbe probe;
    VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
      const std::string text(size_t{32} << 20, 'w');
      probe.Attach();
      EXPECT_THAT(pair.right.WriteAll(Bytes(text)), StatusIs(kAborted));
    });
    probe.AwaitParked();
    pair.right.Close();
    EXPECT_OK(writer.Join());
  }
}

BOBBIN_IO_TEST(TcpStreamTest, SmallWritesAreGatheredOnlyWhereThatIsAskedFor) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int same = ::dup(fd);
  const auto is_no_delay = [same] {
    int value = -1;
    socklen_t bytes = sizeof(value);
    EXPECT_EQ(::getsockopt(same, IPPROTO_TCP, TCP_NODELAY, &value, &bytes), 0);
    return value != 0;
  };
  io::TcpStream stream = io::TcpStream::Adopt(fd);
  EXPECT_OK(stream.SetOptions({.small_writes = io::SmallWrites::kGathered}));
  EXPECT_FALSE(is_no_delay());
  EXPECT_OK(stream.SetOptions({.small_writes = io::SmallWrites::kAtOnce}));
  EXPECT_TRUE(is_no_delay());
  ::close(same);
}

BOBBIN_IO_TEST(TcpStreamTest, CallsAfterCloseAreAborted) {
  Pair pair = MakePair();
  pair.left.Close();
  pair.left.Close();
  std::array<std::byte, 16> buffer;
  EXPECT_THAT(pair.left.Read(buffer), StatusIs(kAborted));
  EXPECT_THAT(pair.left.ReadExact(buffer), StatusIs(kAborted));
  EXPECT_THAT(pair.left.Write(buffer), StatusIs(kAborted));
  EXPECT_THAT(pair.left.WriteAll(buffer), StatusIs(kAborted));
  EXPECT_THAT(pair.left.ShutdownWrite(), StatusIs(kAborted));
  const std::array<std::span<std::byte>, 1> parts = {buffer};
  EXPECT_THAT(pair.left.Read(parts), StatusIs(kAborted));
  EXPECT_THAT(pair.left.WriteCounted(buffer).status, StatusIs(kAborted));
  EXPECT_THAT(pair.left.SetOptions({}), StatusIs(kAborted));
  EXPECT_THAT(pair.left.options(), StatusIs(kAborted));
  EXPECT_THAT(pair.left.local_address(), StatusIs(kAborted));
  EXPECT_THAT(pair.left.peer_address(), StatusIs(kAborted));
}

BOBBIN_IO_TEST(TcpStreamTest, CloseRacesWithReadersAndWritersOnAllCarriers) {
  for (int round = 0; round < Rounds(500); ++round) {
    Pair pair = MakeLocalPair();
    TaskGroup group({.placement = Placement::kSpread});
    group.Spawn([&] {
      std::array<std::byte, 64> buffer;
      while (pair.left.Read(buffer).ok()) {
      }
    });
    group.Spawn([&] {
      while (pair.left.WriteAll(Bytes("tick")).ok()) Yield();
    });
    group.Spawn([&] {
      while (pair.left.local_address().ok()) Yield();
    });
    group.Spawn([&, spins = random().Below(20)] {
      for (uint64_t i = 0; i < spins; ++i) Yield();
      pair.left.Close();
    });
    EXPECT_OK(group.Wait());
  }
}

BOBBIN_IO_TEST(TcpStreamTest, AHandleMayGoWhileItsReaderIsOnTheWayOut) {
  for (int round = 0; round < Rounds(200); ++round) {
    Pair pair = MakeLocalPair();
    WaitProbe probe;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&probe, stream = &pair.left] {
      probe.Attach();
      std::array<std::byte, 16> buffer;
      EXPECT_THAT(stream->Read(buffer), StatusIs(kAborted));
    });
    probe.AwaitParked();
    pair.left = io::TcpStream();
    EXPECT_OK(reader.Join());
  }
}

// The descriptor's number is used again at once: nobody may get bytes that were meant for another.
BOBBIN_IO_TEST(TcpStreamTest, AReusedDescriptorNeverServesAnOldReader) {
  for (int round = 0; round < Rounds(2000); ++round) {
    Pair old_pair = MakeLocalPair();
    WaitProbe probe;
    VirtualThread old_reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      std::array<std::byte, 1> buffer{};
      EXPECT_THAT(old_pair.left.Read(buffer), StatusIs(kAborted));
      EXPECT_EQ(buffer[0], std::byte{0});
    });
    if (random().OneIn(2)) probe.AwaitParked();
    old_pair.left.Close();
    Pair new_pair = MakeLocalPair();
    ASSERT_OK(new_pair.right.WriteAll(Bytes("n")));
    EXPECT_EQ(ReadText(new_pair.left, 1), "n");
    EXPECT_OK(old_reader.Join());
  }
}

// The same where what was closed lives on, as it does in a process that was forked: the kernel may
// still tell of it.
BOBBIN_IO_TEST(TcpStreamTest, AReusedDescriptorIsNotTakenForOneThatLivesOnElsewhere) {
  for (int round = 0; round < Rounds(500); ++round) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    io::TcpStream old_stream = io::TcpStream::Adopt(ends[0]);
    const int kept = ::dup(ends[0]);
    std::array<std::byte, 1> buffer;
    {
      DeadlineScope scope(microseconds(20));
      EXPECT_THAT(old_stream.Read(buffer), StatusIs(kDeadlineExceeded));
    }
    old_stream.Close();
    if (round % 4 == 0) ::close(kept);
    Pair pair = MakeLocalPair();
    WaitProbe probe;
    VirtualThread reader = Spawn([&] {
      probe.Attach();
      EXPECT_EQ(ReadText(pair.left, 1), "n");
    });
    probe.AwaitParked();
    // If the old one is still open, it has news.
    ::close(ends[1]);
    if (random().OneIn(2)) SleepFor(microseconds(50)).IgnoreError();
    ASSERT_OK(pair.right.WriteAll(Bytes("n")));
    EXPECT_OK(reader.Join());
    if (round % 4 != 0) ::close(kept);
  }
}

BOBBIN_IO_TEST(TcpStreamTest, ReadersOnAllCarriersTakeTurns) {
  Pair pair = MakePair();
  const int rounds = Rounds(500);
  for (int round = 0; round < rounds; ++round) {
    WaitProbe probe;
    const std::string text(1 + random().Below(8), 't');
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      EXPECT_EQ(ReadText(pair.left, text.size()), text);
    });
    if (random().OneIn(2)) probe.AwaitParked();
    ASSERT_OK(pair.right.WriteAll(Bytes(text)));
    EXPECT_OK(reader.Join());
  }
}

// --- Deadlines and cancellation

BOBBIN_IO_TEST(TcpStreamTest, DeadlineEndsAReadAndTheScopeStaysOver) {
  Pair pair = MakePair();
  std::array<std::byte, 16> buffer;
  {
    DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(pair.left.Read(buffer), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(pair.left.Read(buffer), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(pair.left.WriteAll(buffer), StatusIs(kDeadlineExceeded));
  }
  ASSERT_OK(pair.right.WriteAll(Bytes("later")));
  EXPECT_EQ(ReadText(pair.left, 5), "later");
}

BOBBIN_IO_TEST(TcpStreamTest, ADeadlineThatHasPassedEndsAReadAtOnce) {
  Pair pair = MakePair();
  std::array<std::byte, 16> buffer;
  for (int round = 0; round < 100; ++round) {
    DeadlineScope scope(milliseconds(0));
    EXPECT_THAT(pair.left.Read(buffer), StatusIs(kDeadlineExceeded));
  }
}

BOBBIN_IO_TEST(TcpStreamTest, DeadlineEndsAWriteToAPeerThatDoesNotRead) {
  Pair pair = MakePair();
  DeadlineScope scope(milliseconds(20));
  EXPECT_THAT(pair.left.WriteAll(Bytes(std::string(size_t{64} << 20, 'w'))),
              StatusIs(kDeadlineExceeded));
}

BOBBIN_IO_TEST(TcpStreamTest, CancelEndsAReadButNotInsideAShield) {
  Pair pair = MakePair();
  WaitProbe probe;
  std::atomic<bool> is_shielded{false};
  VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
    std::array<std::byte, 16> buffer;
    {
      CancelShield shield;
      is_shielded = true;
      probe.Attach();
      EXPECT_THAT(pair.left.Read(buffer), IsOkAndHolds(1u));
    }
    EXPECT_THAT(pair.left.Read(buffer), StatusIs(kCancelled));
    EXPECT_THAT(pair.left.Write(buffer), StatusIs(kCancelled));
  });
  AwaitTrue([&] { return is_shielded.load() && probe.IsParked(); });
  reader.Cancel();
  ASSERT_OK(pair.right.WriteAll(Bytes("x")));
  EXPECT_OK(reader.Join());
}

BOBBIN_IO_TEST(TcpStreamTest, CancelEndsManyParkedReaders) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 200; ++i) pairs.push_back(MakeLocalPair());
  std::atomic<int> cancelled{0};
  TaskGroup group({.on_failure = OnFailure::kLog, .placement = Placement::kSpread});
  std::vector<WaitProbe> probes(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    group.Spawn([&, i] {
      probes[i].Attach();
      std::array<std::byte, 16> buffer;
      if (absl::IsCancelled(pairs[i].left.Read(buffer).status())) ++cancelled;
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  group.Cancel();
  EXPECT_OK(group.Wait());
  EXPECT_EQ(cancelled, 200);
}

// A peer that writes one byte after the other, sometimes right when the reader's deadline comes.
absl::Status WriteWithJitter(io::TcpStream& stream, size_t total, Random random) {
  for (size_t sent = 0; sent < total;) {
    std::array<std::byte, 7> chunk;
    const size_t bytes = std::min(total - sent, 1 + random.Below(chunk.size()));
    for (size_t i = 0; i < bytes; ++i) chunk[i] = PatternAt(sent + i);
    BOBBIN_RETURN_IF_ERROR(stream.WriteAll(std::span(chunk).first(bytes)));
    sent += bytes;
    BOBBIN_RETURN_IF_ERROR(SleepFor(microseconds(random.Between(0, 2200))));
  }
  return stream.ShutdownWrite();
}

BOBBIN_IO_TEST(TcpStreamTest, DeadlinesLoseNoByte) {
  const int streams = 40;
  const size_t total = static_cast<size_t>(Rounds(4000));
  std::atomic<int> expired{0};
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < streams; ++i) {
    group.Spawn([&, random = random().Fork()]() mutable -> absl::Status {
      Pair pair = MakeLocalPair();
      VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&, other = random.Fork()] {
        return WriteWithJitter(pair.right, total, other);
      });
      size_t have = 0;
      while (true) {
        DeadlineScope scope(microseconds(random.Between(0, 2000)));
        std::array<std::byte, 16> buffer;
        const auto received = pair.left.Read(buffer);
        if (absl::IsDeadlineExceeded(received.status())) {
          ++expired;
          continue;
        }
        BOBBIN_RETURN_IF_ERROR(received.status());
        if (*received == 0) break;
        for (size_t k = 0; k < *received; ++k) EXPECT_EQ(buffer[k], PatternAt(have + k));
        have += *received;
      }
      EXPECT_EQ(have, total);
      return writer.Join();
    });
  }
  EXPECT_OK(group.Wait());
  EXPECT_GT(expired, 0);
}

BOBBIN_IO_TEST(TcpStreamTest, NothingIsWrittenToABufferAfterTheReadHasReturned) {
  constexpr std::byte kCanary{0xC5};
  const int readers = 40;
  const int rounds = Rounds(300);
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < readers; ++i) {
    group.Spawn([&, random = random().Fork()]() mutable -> absl::Status {
      Pair pair = MakeLocalPair();
      VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&, other = random.Fork()] {
        return WriteWithJitter(pair.right, static_cast<size_t>(rounds) * 3, other);
      });
      for (int round = 0; round < rounds; ++round) {
        struct {
          std::array<std::byte, 64> below;
          std::array<std::byte, 64> buffer;
          std::array<std::byte, 64> above;
        } frame;
        frame.below.fill(kCanary);
        frame.above.fill(kCanary);
        DeadlineScope scope(microseconds(random.Between(0, 2000)));
        const auto received = pair.left.Read(frame.buffer);
        EXPECT_TRUE(received.ok() || absl::IsDeadlineExceeded(received.status()));
        // From here on the bytes are the reader's again.
        frame.buffer.fill(kCanary);
        for (int k = 0; k < 3; ++k) Yield();
        for (const auto& part : {frame.below, frame.buffer, frame.above}) {
          EXPECT_TRUE(std::all_of(part.begin(), part.end(),
                                  [&](std::byte byte) { return byte == kCanary; }));
        }
        if (received.ok() && *received == 0) break;
      }
      writer.Cancel();
      writer.Join().IgnoreError();
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
}

// A listener that takes nobody any more: the kernel lets further connects wait.
BOBBIN_IO_TEST(TcpStreamTest, ConnectHonoursItsDeadlineAndLeavesNoDescriptor) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0", {.backlog = 0});
  ASSERT_OK(listener);
  std::vector<io::TcpStream> queued;
  const auto connect = [&](milliseconds limit) {
    DeadlineScope scope(limit);
    return io::TcpStream::Connect(listener->local_address());
  };
  while (true) {
    auto stream = connect(milliseconds(100));
    if (!stream.ok()) break;
    queued.push_back(*std::move(stream));
    ASSERT_LT(queued.size(), 16u);
  }
  const size_t descriptors = OpenDescriptors();
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 100; ++i) {
    group.Spawn([&] { EXPECT_THAT(connect(milliseconds(50)), StatusIs(kDeadlineExceeded)); });
  }
  EXPECT_OK(group.Wait());
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

// --- OS threads

BOBBIN_IO_FOREIGN_TEST(TcpStreamTest, ForeignAndVirtualThreadsTalk) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  VirtualThread server = runtime().Spawn([&]() -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener->Accept());
    std::array<std::byte, 64> buffer;
    while (true) {
      BOBBIN_ASSIGN_OR_RETURN(const size_t received, peer.Read(buffer));
      if (received == 0) return absl::OkStatus();
      BOBBIN_RETURN_IF_ERROR(peer.WriteAll(std::span(buffer).first(received)));
    }
  });
  auto stream = io::TcpStream::Connect(listener->local_address());
  ASSERT_OK(stream);
  for (int i = 0; i < Rounds(1000); ++i) {
    ASSERT_OK(stream->WriteAll(Bytes("echo")));
    ASSERT_EQ(ReadText(*stream, 4), "echo");
  }
  stream->Close();
  EXPECT_OK(server.Join());
}

BOBBIN_IO_FOREIGN_TEST(TcpStreamTest, ForeignThreadsObeyDeadlines) {
  Pair pair = MakePair();
  std::array<std::byte, 16> buffer;
  {
    DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(pair.left.Read(buffer), StatusIs(kDeadlineExceeded));
    EXPECT_THAT(pair.left.Read(buffer), StatusIs(kDeadlineExceeded));
  }
  {
    DeadlineScope scope(milliseconds(20));
    EXPECT_THAT(pair.left.WriteAll(Bytes(std::string(size_t{64} << 20, 'w'))),
                StatusIs(kDeadlineExceeded));
  }
  auto listener = io::TcpListener::Bind("127.0.0.1:0", {.backlog = 0});
  ASSERT_OK(listener);
  std::vector<io::TcpStream> queued;
  absl::Status status;
  while (status.ok()) {
    DeadlineScope scope(milliseconds(100));
    auto stream = io::TcpStream::Connect(listener->local_address());
    status = stream.status();
    if (stream.ok()) queued.push_back(*std::move(stream));
    ASSERT_LT(queued.size(), 16u);
  }
  EXPECT_THAT(status, StatusIs(kDeadlineExceeded));
}

BOBBIN_IO_FOREIGN_TEST(TcpStreamTest, CloseEndsAForeignThreadsRead) {
  for (int round = 0; round < 20; ++round) {
    Pair pair = MakePair();
    std::atomic<bool> is_about_to_read{false};
    OsThreads threads;
    threads.Start([&] {
      std::array<std::byte, 16> buffer;
      is_about_to_read = true;
      EXPECT_THAT(pair.left.Read(buffer), StatusIs(kAborted));
    });
    AwaitTrue([&] { return is_about_to_read.load(); });
    EXPECT_OK(runtime().Spawn([&] { pair.left.Close(); }).Join());
  }
}

// --- Misuse

TEST(TcpStreamDeathTest, AnEmptyStreamAborts) {
  io::TcpStream empty;
  EXPECT_FALSE(empty);
  EXPECT_DEATH(empty.Close(), "this stream holds no connection");
}

TEST(TcpStreamDeathTest, ARuntimeWithoutAnIoPollerAbortsAndSaysWhatToPass) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        runtime.Spawn([] { io::TcpStream::Connect("127.0.0.1:1").IgnoreError(); })
            .Join()
            .IgnoreError();
      },
      "RuntimeOptions.*poller = bobbin::io::AutoPoller");
}

}  // namespace
}  // namespace bobbin::test
