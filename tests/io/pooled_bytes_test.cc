// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/core/channel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/pooled_bytes.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// More than the kernel is offered at a time; more than a carrier's pool has.
constexpr int kMany = 400;
constexpr int kMoreThanAll = 1200;

std::string Text(const io::PooledBytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size());
}

BOBBIN_IO_TEST(PooledBytesTest, ReadsBringWhatWasWrittenAndThenTheEnd) {
  for (const bool is_local : {false, true}) {
    Pair pair = is_local ? MakeLocalPair() : MakePair();
    ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
    auto read = pair.right.ReadPooled();
    ASSERT_OK(read);
    EXPECT_EQ(Text(*read), "ping");
    io::PooledBytes kept = *std::move(read);
    EXPECT_TRUE(read->empty());
    ASSERT_OK(pair.left.WriteAll(Bytes("again")));
    ASSERT_OK(pair.left.ShutdownWrite());
    read = pair.right.ReadPooled();
    ASSERT_OK(read);
    EXPECT_EQ(Text(*read), "again");
    EXPECT_EQ(Text(kept), "ping");
    kept = *std::move(read);
    EXPECT_EQ(Text(kept), "again");
    read = pair.right.ReadPooled();
    ASSERT_OK(read);
    EXPECT_TRUE(read->empty());
  }
}

// Far more wait than there are buffers; all are served.
BOBBIN_IO_TEST(PooledBytesTest, ThoseWhoWaitHoldNoBuffer) {
  std::vector<Pair> pairs;
  for (int i = 0; i < kMany; ++i) pairs.push_back(MakeLocalPair());
  std::vector<WaitProbe> probes(pairs.size());
  TaskGroup group({.placement = Placement::kSpread});
  for (size_t i = 0; i < pairs.size(); ++i) {
    group.Spawn([&, i]() -> absl::Status {
      probes[i].Attach();
      for (int round = 0; round < 3; ++round) {
        BOBBIN_ASSIGN_OR_RETURN(const auto read, pairs[i].left.ReadPooled());
        EXPECT_EQ(Text(read), std::to_string(i));
        BOBBIN_RETURN_IF_ERROR(pairs[i].left.WriteAll(read.bytes()));
      }
      return absl::OkStatus();
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_OK(pairs[i].right.WriteAll(Bytes(std::to_string(i))));
    }
    for (size_t i = 0; i < pairs.size(); ++i) {
      const std::string text = std::to_string(i);
      EXPECT_EQ(ReadText(pairs[i].right, text.size()), text);
    }
  }
  EXPECT_OK(group.Wait());
}

// Whoever keeps all buffers does not keep others from reading, and what is kept stays as it is.
BOBBIN_IO_TEST(PooledBytesTest, ReadsGoOnWhenAllBuffersAreKept) {
  Pair pair = MakeLocalPair();
  std::vector<io::PooledBytes> kept;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kMoreThanAll; ++i) {
      ASSERT_OK(pair.left.WriteAll(Bytes(std::to_string(i))));
      auto read = pair.right.ReadPooled();
      ASSERT_OK(read);
      kept.push_back(*std::move(read));
    }
    // Also for one who waits.
    WaitProbe probe;
    VirtualThread reader = Spawn([&]() -> absl::Status {
      probe.Attach();
      BOBBIN_ASSIGN_OR_RETURN(const auto read, pair.right.ReadPooled());
      EXPECT_EQ(Text(read), "late");
      return absl::OkStatus();
    });
    probe.AwaitParked();
    ASSERT_OK(pair.left.WriteAll(Bytes("late")));
    EXPECT_OK(reader.Join());
    for (size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(Text(kept[i]), std::to_string(i));
    kept.clear();
  }
}

// All buffers are kept, and all connections have something at once: their reads take turns, none is
// left out.
BOBBIN_IO_TEST(PooledBytesTest, ManyAtOnceAreServedWhenAllBuffersAreKept) {
  Pair keeper = MakeLocalPair();
  std::vector<io::PooledBytes> kept;
  for (int i = 0; i < kMoreThanAll; ++i) {
    ASSERT_OK(keeper.left.WriteAll(Bytes("k")));
    auto read = keeper.right.ReadPooled();
    ASSERT_OK(read);
    kept.push_back(*std::move(read));
  }
  std::vector<Pair> pairs;
  for (int i = 0; i < kMany / 4; ++i) pairs.push_back(MakeLocalPair());
  TaskGroup group;
  for (Pair& pair : pairs) {
    group.Spawn([&]() -> absl::Status {
      while (true) {
        BOBBIN_ASSIGN_OR_RETURN(const auto read, pair.left.ReadPooled());
        if (read.empty()) return absl::OkStatus();
        BOBBIN_RETURN_IF_ERROR(pair.left.WriteAll(read.bytes()));
      }
    });
  }
  for (int round = 0; round < Rounds(20); ++round) {
    const std::string text = std::to_string(round);
    for (Pair& pair : pairs) ASSERT_OK(pair.right.WriteAll(Bytes(text)));
    for (Pair& pair : pairs) ASSERT_EQ(ReadText(pair.right, text.size()), text);
  }
  for (Pair& pair : pairs) ASSERT_OK(pair.right.ShutdownWrite());
  EXPECT_OK(group.Wait());
  for (const io::PooledBytes& bytes : kept) EXPECT_EQ(Text(bytes), "k");
}

// Given back by virtual threads on all carriers, and by an OS thread, while reads go on.
BOBBIN_IO_TEST(PooledBytesTest, BuffersComeBackFromEverywhere) {
  ChannelEnds<io::PooledBytes> ends = MakeChannel<io::PooledBytes>({.capacity = 64});
  const size_t total = static_cast<size_t>(Rounds(20)) * 10'000;
  TaskGroup group({.placement = Placement::kSpread});
  std::atomic<size_t> dropped{0};
  Pair pair = MakeLocalPair();
  OsThreads threads;
  const auto drop = [&, from = ends.receiver]() mutable {
    while (true) {
      auto bytes = from.Receive();
      if (!bytes.ok()) return;
      dropped += bytes->size();
    }
  };
  threads.Start(drop);
  for (int i = 0; i < 3; ++i) group.Spawn(drop);
  group.Spawn([&, random = random().Fork()]() mutable -> absl::Status {
    std::vector<std::byte> chunk(10'000);
    for (size_t sent = 0; sent < total;) {
      const size_t bytes = std::min(total - sent, 1 + random.Below(chunk.size()));
      for (size_t k = 0; k < bytes; ++k) chunk[k] = PatternAt(sent + k);
      BOBBIN_RETURN_IF_ERROR(pair.left.WriteAll(std::span(chunk).first(bytes)));
      sent += bytes;
    }
    return pair.left.ShutdownWrite();
  });
  size_t have = 0;
  while (true) {
    auto read = pair.right.ReadPooled();
    ASSERT_OK(read);
    if (read->empty()) break;
    bool is_pattern = true;
    for (const std::byte byte : read->bytes()) is_pattern &= byte == PatternAt(have++);
    ASSERT_TRUE(is_pattern);
    ASSERT_OK(ends.sender.Send(*std::move(read)));
  }
  ends.sender.Close();
  EXPECT_EQ(have, total);
  EXPECT_OK(group.Wait());
  AwaitTrue([&] { return dropped == total; });
}

BOBBIN_IO_TEST(PooledBytesTest, DeadlinesLoseNoByte) {
  Pair pair = MakeLocalPair();
  const size_t total = static_cast<size_t>(Rounds(2000));
  std::atomic<int> expired{0};
  VirtualThread writer =
      Spawn({.placement = Placement::kSpread}, [&, jitter = random().Fork()]() mutable {
        for (size_t i = 0; i < total; ++i) {
          EXPECT_OK(pair.left.WriteAll(std::array{PatternAt(i)}));
          if (jitter.OneIn(2)) SleepFor(microseconds(jitter.Below(200))).IgnoreError();
          if (!jitter.OneIn(16)) continue;
          // Now and then until a deadline has come in vain.
          for (const int before = expired; before == expired;) {
            SleepFor(microseconds(50)).IgnoreError();
          }
        }
        EXPECT_OK(pair.left.ShutdownWrite());
      });
  size_t have = 0;
  while (true) {
    DeadlineScope scope(microseconds(random().Between(0, 200)));
    const auto read = pair.right.ReadPooled();
    if (absl::IsDeadlineExceeded(read.status())) {
      ++expired;
      continue;
    }
    ASSERT_OK(read);
    if (read->empty()) break;
    for (const std::byte byte : read->bytes()) ASSERT_EQ(byte, PatternAt(have++));
  }
  EXPECT_EQ(have, total);
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(PooledBytesTest, TheOneReaderCancelAndCloseAreAsOfOtherReads) {
  Pair pair = MakePair();
  WaitProbe first, second;
  VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
    first.Attach();
    EXPECT_THAT(pair.left.ReadPooled(), StatusIs(kCancelled));
  });
  first.AwaitParked();
  EXPECT_THAT(pair.left.ReadPooled(), StatusIs(kFailedPrecondition));
  reader.Cancel();
  EXPECT_OK(reader.Join());
  reader = Spawn({.placement = Placement::kSpread}, [&] {
    second.Attach();
    EXPECT_THAT(pair.left.ReadPooled(), StatusIs(kAborted));
  });
  second.AwaitParked();
  pair.left.Close();
  EXPECT_OK(reader.Join());
  EXPECT_THAT(pair.left.ReadPooled(), StatusIs(kAborted));
}

BOBBIN_IO_FOREIGN_TEST(PooledBytesTest, ForeignThreadsReadThem) {
  Pair pair = MakePair();
  ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
  EXPECT_EQ(Text(*pair.right.ReadPooled()), "ping");
  {
    DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(pair.right.ReadPooled(), StatusIs(kDeadlineExceeded));
  }
  pair.left.Close();
  EXPECT_TRUE(pair.right.ReadPooled()->empty());
}

TEST(PooledBytesLifeTest, BytesOutliveStreamAndRuntime) {
  for (const Backend backend : Backends()) {
    std::vector<io::PooledBytes> kept;
    {
      Runtime runtime({.carriers = 2, .poller = MakePollers(backend)});
      EXPECT_OK(runtime
                    .Spawn([&] {
                      Pair pair = MakeLocalPair();
                      for (int i = 0; i < kMoreThanAll; ++i) {
                        EXPECT_OK(pair.left.WriteAll(Bytes(std::to_string(i))));
                        kept.push_back(*pair.right.ReadPooled());
                      }
                    })
                    .Join());
    }
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(Text(kept[i]), std::to_string(i));
  }
}

}  // namespace
}  // namespace bobbin::test
