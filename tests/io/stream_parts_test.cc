// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of many parts, and writes that end in the middle.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::vector<std::byte> Pattern(size_t bytes) {
  std::vector<std::byte> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) pattern[i] = PatternAt(i);
  return pattern;
}

bool IsPattern(std::span<const std::byte> bytes, size_t begin) {
  for (const std::byte byte : bytes) {
    if (byte != PatternAt(begin++)) return false;
  }
  return true;
}

// Cuts `whole` into parts, some of them empty.
template <typename Byte>
std::vector<std::span<Byte>> Parts(std::span<Byte> whole, size_t part_bytes_max, Random& random) {
  std::vector<std::span<Byte>> parts;
  while (!whole.empty()) {
    const size_t bytes = random.OneIn(5) ? 0 : std::min(whole.size(), random.Below(part_bytes_max));
    parts.push_back(whole.first(bytes));
    whole = whole.subspan(bytes);
  }
  return parts;
}

// Reads to the end, in small parts, and expects the pattern. Pauses behind each part.
size_t ReadPatternToTheEnd(io::TcpStream& stream, microseconds pause = microseconds(0)) {
  std::vector<std::byte> buffer(3'000);
  size_t have = 0;
  while (true) {
    const auto received = stream.Read(buffer);
    EXPECT_OK(received);
    if (!received.ok() || *received == 0) return have;
    EXPECT_TRUE(IsPattern(std::span(buffer).first(*received), have));
    have += *received;
    if (pause.count() != 0) SleepFor(pause).IgnoreError();
  }
}

void MoveInParts(Pair& pair, size_t total, Random& random) {
  const std::vector<std::byte> sent = Pattern(total);
  VirtualThread writer = Spawn(
      {.placement = Placement::kSpread}, [&, other = random.Fork()]() mutable -> absl::Status {
        const auto parts = Parts(std::span<const std::byte>(sent), 100, other);
        BOBBIN_RETURN_IF_ERROR(pair.left.WriteAll(parts));
        return pair.left.ShutdownWrite();
      });
  std::vector<std::byte> received(total + 100);
  size_t have = 0;
  while (true) {
    const auto rest = std::span(received).subspan(have);
    const auto got = pair.right.Read(
        Parts(rest.first(std::min(rest.size(), 1 + random.Below(100'000))), 150, random));
    ASSERT_OK(got);
    if (*got == 0) break;
    have += *got;
    if (random.OneIn(16)) Yield();
  }
  ASSERT_EQ(have, total);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), received.begin()));
  EXPECT_OK(writer.Join());
}

// More parts than the kernel takes at a time, and more bytes than it holds.
BOBBIN_IO_TEST(StreamPartsTest, AnyNumberOfPartsMovesInOrder) {
  for (const bool is_local : {false, true}) {
    Pair pair = is_local ? MakeLocalPair(4096) : MakePair();
    MoveInParts(pair, static_cast<size_t>(Rounds(3)) * 100'000, random());
  }
}

BOBBIN_IO_FOREIGN_TEST(StreamPartsTest, ForeignThreadsMoveParts) {
  Pair pair = MakePair();
  const std::vector<std::byte> sent = Pattern(1'000'000);
  OsThreads threads;
  threads.Start([&, other = random().Fork()]() mutable {
    EXPECT_OK(pair.left.WriteAll(Parts(std::span<const std::byte>(sent), 1000, other)));
    EXPECT_OK(pair.left.ShutdownWrite());
  });
  std::vector<std::byte> received(sent.size());
  size_t have = 0;
  while (have < sent.size()) {
    const auto got = pair.right.Read(Parts(std::span(received).subspan(have), 1500, random()));
    ASSERT_OK(got);
    ASSERT_GT(*got, 0u);
    have += *got;
  }
  EXPECT_EQ(received, sent);
}

BOBBIN_IO_TEST(StreamPartsTest, PartsWithoutBytesReturnAtOnce) {
  Pair pair = MakePair();
  const std::vector<std::span<std::byte>> buffers(3);
  const std::vector<std::span<const std::byte>> parts(2000);
  EXPECT_THAT(pair.left.Read(buffers), IsOkAndHolds(0u));
  EXPECT_THAT(pair.left.Write(parts), IsOkAndHolds(0u));
  EXPECT_OK(pair.left.WriteAll(parts));
  EXPECT_OK(pair.left.WriteCounted(parts).status);
  EXPECT_OK(pair.left.WriteCounted(std::span<const std::byte>()).status);
}

BOBBIN_IO_TEST(StreamPartsTest, TheyTakeTheirTurnWithOtherReadersAndWriters) {
  Pair pair = MakeLocalPair(4096);
  WaitProbe reading;
  VirtualThread reader = Spawn([&] {
    reading.Attach();
    EXPECT_EQ(ReadText(pair.left, 1), "x");
  });
  reading.AwaitParked();
  std::array<std::byte, 1> byte;
  const std::array<std::span<std::byte>, 1> buffers = {byte};
  EXPECT_THAT(pair.left.Read(buffers), StatusIs(kFailedPrecondition));

  WaitProbe writing;
  const std::vector<std::byte> text(size_t{1} << 20);
  VirtualThread writer = Spawn([&] {
    writing.Attach();
    EXPECT_THAT(pair.left.WriteCounted(text).status, StatusIs(kAborted));
  });
  writing.AwaitParked();
  const std::array<std::span<const std::byte>, 1> parts = {byte};
  EXPECT_THAT(pair.left.Write(parts), StatusIs(kFailedPrecondition));
  const io::Progress refused = pair.left.WriteCounted(parts);
  EXPECT_EQ(refused.bytes, 0u);
  EXPECT_THAT(refused.status, StatusIs(kFailedPrecondition));
  EXPECT_EQ(MessageOf(refused.status), "write: another thread is in a write of this socket");
  ASSERT_OK(pair.right.WriteAll(Bytes("x")));
  EXPECT_OK(reader.Join());
  pair.left.Close();
  EXPECT_OK(writer.Join());
}

// --- Writes that end in the middle

// The number that the writer is told must be what the peer receives, whenever the deadline comes.
BOBBIN_IO_TEST(StreamPartsTest, AWriteThatItsDeadlineCutsShortTellsExactlyHowMuchWasWritten) {
  const std::vector<std::byte> text = Pattern(size_t{300} << 10);
  std::atomic<int> cut_short{0};
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&, i, random = random().Fork()]() mutable -> absl::Status {
      for (int round = 0; round < Rounds(6); ++round) {
        Pair pair = i % 2 == 0 ? MakeLocalPair(4096) : MakePair();
        size_t read = 0;
        VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
          read = ReadPatternToTheEnd(pair.right, microseconds(200));
        });
        size_t written = 0;
        {
          DeadlineScope scope(microseconds(random.Between(0, 5000)));
          const auto parts = Parts(std::span(text), 50'000, random);
          const io::Progress progress =
              random.OneIn(2) ? pair.left.WriteCounted(parts) : pair.left.WriteCounted(text);
          written = progress.bytes;
          if (absl::IsDeadlineExceeded(progress.status)) ++cut_short;
          EXPECT_EQ(progress.status.ok(), written == text.size());
        }
        pair.left.Close();
        EXPECT_OK(reader.Join());
        EXPECT_EQ(read, written);
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
  EXPECT_GT(cut_short, 0);
}

BOBBIN_IO_TEST(StreamPartsTest, ACancelledWriteTellsHowMuchWasWritten) {
  const std::vector<std::byte> text = Pattern(size_t{4} << 20);
  for (int round = 0; round < Rounds(20); ++round) {
    Pair pair = round % 2 == 0 ? MakeLocalPair(4096) : MakePair();
    WaitProbe probe;
    io::Progress progress;
    VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      progress = pair.left.WriteCounted(text);
    });
    probe.AwaitParked();
    writer.Cancel();
    writer.Join().IgnoreError();
    EXPECT_THAT(progress.status, StatusIs(kCancelled));
    pair.left.Close();
    EXPECT_EQ(ReadPatternToTheEnd(pair.right), progress.bytes);
  }
}

BOBBIN_IO_FOREIGN_TEST(StreamPartsTest, AForeignThreadIsToldHowMuchItWrote) {
  const std::vector<std::byte> text = Pattern(size_t{16} << 20);
  for (int round = 0; round < 4; ++round) {
    Pair pair = round % 2 == 0 ? MakeLocalPair(4096) : MakePair();
    io::Progress progress;
    {
      DeadlineScope scope(milliseconds(5));
      progress = pair.left.WriteCounted(text);
    }
    EXPECT_THAT(progress.status, StatusIs(kDeadlineExceeded));
    pair.left.Close();
    EXPECT_EQ(ReadPatternToTheEnd(pair.right), progress.bytes);
  }
}

}  // namespace
}  // namespace bobbin::test
