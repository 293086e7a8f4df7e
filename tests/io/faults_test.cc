// SPDX-License-Identifier: Apache-2.0
//
// Sockets over a kernel that does now and then what kernels seldom do.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/file_descriptor.h>
#include <bobbin/io/pipe.h>
#include <bobbin/io/udp.h>
#include <bobbin/io/unix.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/faulty_kernel.h"
#include "tests/io/io_test.h"
#include "tests/io/traffic.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

absl::Status WritePattern(io::TcpStream& stream, size_t total, Random random) {
  std::vector<std::byte> chunk(20'000);
  for (size_t sent = 0; sent < total;) {
    const size_t bytes = std::min(total - sent, 1 + random.Below(chunk.size()));
    for (size_t i = 0; i < bytes; ++i) chunk[i] = PatternAt(sent + i);
    const std::span<const std::byte> next = std::span(chunk).first(bytes);
    const std::array<std::span<const std::byte>, 3> parts = {
        next.first(bytes / 3), next.subspan(bytes / 3, bytes / 3), next.subspan(bytes / 3 * 2)};
    if (random.OneIn(4)) {
      BOBBIN_RETURN_IF_ERROR(stream.WriteZeroCopy(next).status);
    } else {
      BOBBIN_RETURN_IF_ERROR(random.OneIn(2) ? stream.WriteAll(next) : stream.WriteAll(parts));
    }
    sent += bytes;
    if (random.OneIn(8)) Yield();
  }
  return stream.ShutdownWrite();
}

// Reads to the end, now and then under a deadline that may be too short.
absl::Status ReadPattern(io::TcpStream& stream, size_t total, Random random) {
  std::vector<std::byte> buffer(20'000);
  for (size_t have = 0;;) {
    DeadlineScope scope(random.OneIn(4) ? microseconds(random.Between(0, 300))
                                        : microseconds(60'000'000));
    const std::span<std::byte> part = std::span(buffer).first(1 + random.Below(buffer.size()));
    const std::array<std::span<std::byte>, 2> parts = {part.first(part.size() / 2),
                                                       part.subspan(part.size() / 2)};
    absl::StatusOr<size_t> received;
    io::PooledBytes pooled;
    if (random.OneIn(3)) {
      auto read = stream.ReadPooled();
      received = read.ok() ? absl::StatusOr<size_t>(read->size()) : read.status();
      if (read.ok()) pooled = *std::move(read);
    } else {
      received = random.OneIn(2) ? stream.Read(part) : stream.Read(parts);
    }
    const std::span<const std::byte> bytes = pooled.empty() ? buffer : pooled.bytes();
    if (absl::IsDeadlineExceeded(received.status())) continue;
    BOBBIN_RETURN_IF_ERROR(received.status());
    if (*received == 0) return have == total ? absl::OkStatus() : absl::DataLossError("too few");
    for (size_t i = 0; i < *received; ++i) {
      if (bytes[i] != PatternAt(have + i)) return absl::DataLossError("wrong byte");
    }
    have += *received;
  }
}

// Streams of both kinds, in both directions at once.
absl::Status ManyPatterns(int pairs, size_t total, Random& random) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < pairs; ++i) {
    group.Spawn([=, random = random.Fork()]() mutable -> absl::Status {
      Pair pair = i % 2 == 0 ? MakePair() : MakeLocalPair(8192);
      TaskGroup ends({.placement = Placement::kSpread});
      for (io::TcpStream* const end : {&pair.left, &pair.right}) {
        ends.Spawn([=, other = random.Fork()] { return WritePattern(*end, total, other); });
        ends.Spawn([=, other = random.Fork()] { return ReadPattern(*end, total, other); });
      }
      return ends.Wait();
    });
  }
  return group.Wait();
}

// Through a pipe, into which less fits than is written at a time.
absl::Status PipePattern(size_t total, Random random) {
  BOBBIN_ASSIGN_OR_RETURN(io::Pipe pipe, io::MakePipe());
  TaskGroup ends({.placement = Placement::kSpread});
  ends.Spawn([&, other = random.Fork()]() mutable -> absl::Status {
    std::vector<std::byte> chunk(100'000);
    for (size_t sent = 0; sent < total;) {
      const size_t bytes = std::min(total - sent, 1 + other.Below(chunk.size()));
      for (size_t i = 0; i < bytes; ++i) chunk[i] = PatternAt(sent + i);
      BOBBIN_RETURN_IF_ERROR(pipe.writer.WriteAll(std::span(chunk).first(bytes)));
      sent += bytes;
    }
    pipe.writer.Close();
    return absl::OkStatus();
  });
  ends.Spawn([&, other = random.Fork()]() mutable -> absl::Status {
    std::vector<std::byte> buffer(100'000);
    for (size_t have = 0;;) {
      DeadlineScope scope(other.OneIn(4) ? microseconds(other.Between(0, 300))
                                         : microseconds(60'000'000));
      const auto read = pipe.reader.Read(std::span(buffer).first(1 + other.Below(buffer.size())));
      if (absl::IsDeadlineExceeded(read.status())) continue;
      BOBBIN_RETURN_IF_ERROR(read.status());
      if (*read == 0) return have == total ? absl::OkStatus() : absl::DataLossError("too few");
      for (size_t i = 0; i < *read; ++i) {
        if (buffer[i] != PatternAt(have++)) return absl::DataLossError("wrong byte");
      }
    }
  });
  return ends.Wait();
}

absl::Status ManyPipes(int pipes, size_t total, Random& random) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < pipes; ++i) {
    group.Spawn([=, random = random.Fork()] { return PipePattern(total, random); });
  }
  return group.Wait();
}

// Datagrams go one by one, each when the one before has come back: none is lost for want of room.
absl::Status EchoDatagrams(int count, Random random) {
  const auto receiving = random.OneIn(2) ? io::Receiving::kAhead : io::Receiving::kOnCall;
  BOBBIN_ASSIGN_OR_RETURN(io::UdpSocket server,
                          io::UdpSocket::Bind("127.0.0.1:0", {.receiving = receiving}));
  BOBBIN_ASSIGN_OR_RETURN(const io::SocketAddress address, server.local_address());
  TaskGroup ends({.placement = Placement::kSpread});
  ends.Spawn([&, other = random.Fork()]() mutable -> absl::Status {
    std::array<std::array<std::byte, 2048>, 4> buffers;
    for (int served = 0; served < count;) {
      std::array<io::DatagramSlot, 4> slots;
      for (size_t i = 0; i < slots.size(); ++i) slots[i].buffer = buffers[i];
      BOBBIN_ASSIGN_OR_RETURN(const size_t come, server.ReceiveBatch(slots));
      for (const io::DatagramSlot& slot : std::span(slots).first(come)) {
        const std::span<const std::byte> bytes = slot.buffer.first(slot.datagram.bytes);
        BOBBIN_RETURN_IF_ERROR(server.SendTo(bytes, slot.datagram.peer));
        ++served;
      }
      if (other.OneIn(4)) Yield();
    }
    return absl::OkStatus();
  });
  ends.Spawn([&, other = random.Fork()]() mutable -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(io::UdpSocket client, io::UdpSocket::Connect(address));
    std::array<std::byte, 2048> sent, back;
    for (int i = 0; i < count; ++i) {
      const size_t bytes = 1 + other.Below(1400);
      for (size_t k = 0; k < bytes; ++k) sent[k] = PatternAt(static_cast<size_t>(i) + k);
      BOBBIN_RETURN_IF_ERROR(client.Send(std::span(sent).first(bytes)));
      BOBBIN_ASSIGN_OR_RETURN(const io::Datagram answer, client.Receive(back));
      if (answer.bytes != bytes || !std::equal(sent.begin(), sent.begin() + bytes, back.begin())) {
        return absl::DataLossError("another datagram");
      }
    }
    return absl::OkStatus();
  });
  return ends.Wait();
}

absl::Status ManyDatagrams(int sockets, int count, Random& random) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < sockets; ++i) {
    group.Spawn([=, random = random.Fork()] { return EchoDatagrams(count, random); });
  }
  return group.Wait();
}

// Bytes and descriptors: each message of a random length brings one pipe's end, of which the other
// one is known by a byte.
absl::Status PassDescriptors(int count, Random random) {
  BOBBIN_ASSIGN_OR_RETURN(auto pair, io::UnixStream::Pair());
  std::vector<io::PipeReader> readers;
  size_t total = 0;
  TaskGroup ends({.placement = Placement::kSpread});
  ends.Spawn([&, other = random.Fork()]() mutable -> absl::Status {
    std::vector<std::byte> chunk(20'000);
    for (int i = 0; i < count; ++i) {
      int fds[2];
      if (::pipe2(fds, O_CLOEXEC) != 0) return absl::InternalError("no pipe");
      const io::FileDescriptor writer(fds[1]);
      readers.push_back(io::PipeReader::Adopt(io::FileDescriptor(fds[0])));
      const size_t bytes = 1 + other.Below(chunk.size());
      for (size_t k = 0; k < bytes; ++k) chunk[k] = PatternAt(total + k);
      total += bytes;
      BOBBIN_RETURN_IF_ERROR(pair.first.WriteAllWithDescriptors(std::span(chunk).first(bytes),
                                                                std::array{writer.get()}));
    }
    return pair.first.ShutdownWrite();
  });
  size_t have = 0;
  int come = 0;
  std::vector<std::byte> buffer(5'000);
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(auto read, pair.second.ReadWithDescriptors(buffer));
    if (read.bytes == 0) break;
    for (size_t i = 0; i < read.bytes; ++i) {
      if (buffer[i] != PatternAt(have++)) return absl::DataLossError("wrong byte");
    }
    for (io::FileDescriptor& fd : read.descriptors) {
      const std::byte name = PatternAt(static_cast<size_t>(come++));
      BOBBIN_RETURN_IF_ERROR(io::PipeWriter::Adopt(std::move(fd)).WriteAll(std::array{name}));
    }
  }
  BOBBIN_RETURN_IF_ERROR(ends.Wait());
  if (have != total || come != count) return absl::DataLossError("too few");
  for (size_t i = 0; i < readers.size(); ++i) {
    std::array<std::byte, 1> name;
    BOBBIN_RETURN_IF_ERROR(readers[i].ReadExact(name));
    if (name[0] != PatternAt(i)) return absl::DataLossError("another descriptor");
  }
  return absl::OkStatus();
}

// A test goes on until so many calls have gone wrong.
constexpr uint64_t kFaultsMin = 20;

size_t PatternBytes() { return static_cast<size_t>(Rounds(16)) * 20'000; }

BOBBIN_IO_TEST(FaultsTest, ShortTransfersLoseNothing) {
  const FaultyKernel kernel({.has_short_transfers = true}, random().Next());
  do {
    ASSERT_OK(ManyPatterns(8, PatternBytes(), random()));
  } while (kernel.count() < kFaultsMin);
}

BOBBIN_IO_TEST(FaultsTest, PipesLoseNothing) {
  const FaultyKernel kernel({.has_short_transfers = true,
                             .has_interruptions = true,
                             .has_stale_events = true,
                             .has_shortages = true,
                             .has_late_submissions = true},
                            random().Next());
  do {
    ASSERT_OK(ManyPipes(6, PatternBytes() / 4, random()));
  } while (kernel.count() < kFaultsMin);
}

BOBBIN_IO_TEST(FaultsTest, DatagramsComeOnceAndWhole) {
  const FaultyKernel kernel({.has_short_transfers = true,
                             .has_interruptions = true,
                             .has_stale_events = true,
                             .has_shortages = true,
                             .has_late_submissions = true},
                            random().Next());
  do {
    ASSERT_OK(ManyDatagrams(6, Rounds(40), random()));
  } while (kernel.count() < kFaultsMin);
}

BOBBIN_IO_TEST(FaultsTest, DescriptorsComeOnceAndInOrder) {
  const FaultyKernel kernel({.has_short_transfers = true,
                             .has_interruptions = true,
                             .has_stale_events = true,
                             .has_shortages = true,
                             .has_late_submissions = true},
                            random().Next());
  do {
    ASSERT_OK(PassDescriptors(Rounds(40), random().Fork()));
  } while (kernel.count() < kFaultsMin);
}

BOBBIN_IO_TEST(FaultsTest, InterruptionsDisturbNothing) {
  const FaultyKernel kernel({.has_interruptions = true}, random().Next());
  do {
    ASSERT_OK(ManyPatterns(8, PatternBytes(), random()));
    ASSERT_OK(ManyPingPongs(20, Rounds(50)));
  } while (kernel.count() < kFaultsMin);
}

BOBBIN_IO_TEST(FaultsTest, EverythingAtOnceLosesNothing) {
  const FaultyKernel kernel({.one_in = 6,
                             .has_short_transfers = true,
                             .has_interruptions = true,
                             .has_stale_events = true,
                             .has_failing_accepts = true,
                             .has_shortages = true,
                             .has_late_submissions = true},
                            random().Next());
  do {
    ASSERT_OK(ManyPatterns(8, PatternBytes(), random()));
    ASSERT_OK(ManyPingPongs(20, Rounds(50)));
  } while (kernel.count() < kFaultsMin);
}

// --- Epoll

BOBBIN_EPOLL_TEST(FaultsTest, StaleEventsHarmNobody) {
  const FaultyKernel kernel({.one_in = 2, .has_stale_events = true}, random().Next());
  do {
    ASSERT_OK(ManyPatterns(8, PatternBytes(), random()));
  } while (kernel.count() < kFaultsMin);
  // Numbers are used again at once.
  for (int round = 0; round < Rounds(300); ++round) {
    Pair pair = round % 2 == 0 ? MakeLocalPair() : MakePair();
    std::array<std::byte, 1> buffer;
    {
      DeadlineScope scope(microseconds(random().Between(0, 100)));
      EXPECT_THAT(pair.left.Read(buffer), StatusIs(kDeadlineExceeded));
    }
    VirtualThread reader =
        Spawn({.placement = Placement::kSpread}, [&] { EXPECT_EQ(ReadText(pair.left, 1), "x"); });
    ASSERT_OK(pair.right.WriteAll(Bytes("x")));
    EXPECT_OK(reader.Join());
  }
}

BOBBIN_EPOLL_TEST(FaultsTest, AcceptsThatFailForAMomentLoseNoConnection) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  const FaultyKernel kernel({.one_in = 3, .has_failing_accepts = true}, random().Next());
  do {
    const int connections = Rounds(100);
    TaskGroup group({.placement = Placement::kSpread});
    group.Spawn([&]() -> absl::Status {
      for (int i = 0; i < connections; ++i) {
        BOBBIN_ASSIGN_OR_RETURN(io::TcpStream peer, listener->Accept());
        BOBBIN_RETURN_IF_ERROR(peer.WriteAll(Bytes("x")));
      }
      return absl::OkStatus();
    });
    for (int i = 0; i < connections; ++i) {
      group.Spawn([&]() -> absl::Status {
        BOBBIN_ASSIGN_OR_RETURN(auto stream, io::TcpStream::Connect(listener->local_address()));
        EXPECT_EQ(ReadText(stream, 1), "x");
        return absl::OkStatus();
      });
    }
    ASSERT_OK(group.Wait());
  } while (kernel.count() < kFaultsMin);
}

// --- Rings

BOBBIN_RING_TEST(FaultsTest, EntersThatDoNothingDelayOnly, {}) {
  const FaultyKernel kernel({.has_shortages = true}, random().Next());
  do {
    ASSERT_OK(ManyPatterns(4, PatternBytes() / 4, random()));
    ASSERT_OK(ManyPingPongs(10, Rounds(20)));
  } while (kernel.count() < kFaultsMin);
}

BOBBIN_RING_TEST(FaultsTest, ReceivesThatFindNoBufferLoseNothing, {}) {
  const FaultyKernel kernel({.one_in = 2, .has_missing_buffers = true}, random().Next());
  do {
    ASSERT_OK(ManyPatterns(4, PatternBytes() / 4, random()));
    ASSERT_OK(ManyDatagrams(6, Rounds(40), random()));
  } while (kernel.count() < kFaultsMin);
}

// A kernel that is older, or has been patched: what it does not know is done in another way.
BOBBIN_RING_TEST(FaultsTest, WhatAKernelDoesNotKnowIsDoneWithoutIt, {}) {
  const FaultyKernel kernel({.one_in = 1, .has_unknown_requests = true}, random().Next());
  const uint64_t before = runtime().Statistics().poller.copied_sends;
  do {
    ASSERT_OK(ManyPatterns(4, PatternBytes() / 4, random()));
    ASSERT_OK(ManyDatagrams(6, Rounds(40), random()));
  } while (kernel.count() < kFaultsMin);
  EXPECT_GT(runtime().Statistics().poller.copied_sends, before);
}

BOBBIN_RING_TEST(FaultsTest, SmallQueuesLoseNeitherPipesNorDatagrams,
                 {.submission_entries = 4, .completion_entries = 16}) {
  const FaultyKernel kernel({.one_in = 2, .has_late_submissions = true}, random().Next());
  do {
    ASSERT_OK(ManyPipes(8, PatternBytes() / 8, random()));
    ASSERT_OK(ManyDatagrams(16, Rounds(20), random()));
    ASSERT_OK(PassDescriptors(Rounds(20), random().Fork()));
  } while (kernel.count() < kFaultsMin);
}

BOBBIN_RING_TEST(FaultsTest, LateSubmissionsAndLateCancelsLoseNothing,
                 {.submission_entries = 4, .completion_entries = 16}) {
  const FaultyKernel kernel({.one_in = 2, .has_late_submissions = true}, random().Next());
  do {
    ASSERT_OK(ManyPatterns(8, PatternBytes(), random()));
    ASSERT_OK(ManyPingPongs(50, Rounds(20)));
  } while (kernel.count() < kFaultsMin);
}

}  // namespace
}  // namespace bobbin::test
