// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;

// More than a connection holds whose receiver does not read.
constexpr size_t kTooMuch = size_t{8} << 20;

// A connection that holds little.
Pair MakeNarrowPair() {
  Pair pair = MakePair();
  for (io::TcpStream* const end : {&pair.left, &pair.right}) {
    EXPECT_OK(end->SetOptions({.receive_buffer_bytes = 1 << 16, .send_buffer_bytes = 1 << 18}));
  }
  return pair;
}

std::vector<std::byte> Pattern(size_t bytes, size_t from = 0) {
  std::vector<std::byte> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) pattern[i] = PatternAt(from + i);
  return pattern;
}

// Reads until the peer has finished: how much has come, and whether it was the pattern.
struct Received {
  size_t bytes = 0;
  bool is_pattern = true;
};
Received ReadToEnd(io::TcpStream& stream) {
  Received received;
  std::vector<std::byte> buffer(1 << 16);
  while (true) {
    const auto read = stream.Read(buffer);
    EXPECT_OK(read);
    if (!read.ok() || *read == 0) return received;
    for (const std::byte byte : std::span(buffer).first(*read)) {
      received.is_pattern &= byte == PatternAt(received.bytes++);
    }
  }
}

BOBBIN_IO_TEST(ZeroCopyTest, AnyLengthArrivesAsItWas) {
  for (const bool is_local : {false, true}) {
    Pair pair = is_local ? MakeLocalPair() : MakePair();
    size_t sent = 0;
    VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
      for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{100'001},
                                 static_cast<size_t>(Rounds(8)) << 17}) {
        std::vector<std::byte> data = Pattern(bytes, sent);
        const io::Progress progress = pair.left.WriteZeroCopy(data);
        EXPECT_OK(progress.status);
        EXPECT_EQ(progress.bytes, bytes);
        // The bytes are the caller's again.
        std::fill(data.begin(), data.end(), std::byte{0xff});
        sent += bytes;
      }
      EXPECT_OK(pair.left.ShutdownWrite());
    });
    const Received received = ReadToEnd(pair.right);
    EXPECT_OK(writer.Join());
    EXPECT_EQ(received.bytes, sent);
    EXPECT_TRUE(received.is_pattern);
  }
}

// What was taken from the caller and has not arrived is still needed: a deadline does not change
// that. Whoever returned early would have the peer read what the buffer holds then.
BOBBIN_IO_TEST(ZeroCopyTest, ItReturnsOnlyWhenThePeerHasTakenWhatWasSent) {
  Pair pair = MakeNarrowPair();
  WaitProbe probe;
  io::Progress progress;
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    std::vector<std::byte> data = Pattern(kTooMuch);
    probe.Attach();
    progress = pair.left.WriteZeroCopy(data);
    std::fill(data.begin(), data.end(), std::byte{0xff});
    EXPECT_OK(pair.left.ShutdownWrite());
  });
  probe.AwaitParked();
  writer.Cancel();
  const Received received = ReadToEnd(pair.right);
  EXPECT_OK(writer.Join());
  EXPECT_THAT(progress.status, StatusIs(kCancelled));
  EXPECT_LT(progress.bytes, kTooMuch);
  EXPECT_EQ(received.bytes, progress.bytes);
  EXPECT_TRUE(received.is_pattern);
}

BOBBIN_IO_TEST(ZeroCopyTest, DeadlinesLoseNothing) {
  for (int round = 0; round < Rounds(10); ++round) {
    Pair pair = MakePair();
    const size_t total = 1 + random().Below(1 << 20);
    const std::vector<std::byte> data = Pattern(total);
    VirtualThread writer =
        Spawn({.placement = Placement::kSpread}, [&, random = random().Fork()]() mutable {
          for (size_t sent = 0; sent < total;) {
            DeadlineScope scope(microseconds(random.Between(0, 2000)));
            const io::Progress progress = pair.left.WriteZeroCopy(std::span(data).subspan(sent));
            sent += progress.bytes;
            if (progress.status.ok()) {
              EXPECT_EQ(sent, total);
            } else {
              EXPECT_THAT(progress.status, StatusIs(kDeadlineExceeded));
            }
          }
          EXPECT_OK(pair.left.ShutdownWrite());
        });
    const Received received = ReadToEnd(pair.right);
    EXPECT_OK(writer.Join());
    EXPECT_EQ(received.bytes, total);
    EXPECT_TRUE(received.is_pattern);
  }
}

BOBBIN_IO_TEST(ZeroCopyTest, APeerThatResetsEndsIt) {
  Pair pair = MakeNarrowPair();
  WaitProbe probe;
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    const std::vector<std::byte> data = Pattern(kTooMuch);
    probe.Attach();
    const io::Progress progress = pair.left.WriteZeroCopy(data);
    EXPECT_THAT(progress.status, StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_LT(progress.bytes, kTooMuch);
  });
  probe.AwaitParked();
  ASSERT_OK(pair.right.SetOptions({.on_close = io::OnClose::kReset}));
  pair.right.Close();
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(ZeroCopyTest, ACloseEndsItWhenThePeerReadsOrGoes) {
  Pair pair = MakeNarrowPair();
  WaitProbe probe;
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    const std::vector<std::byte> data = Pattern(kTooMuch);
    probe.Attach();
    const io::Progress progress = pair.left.WriteZeroCopy(data);
    EXPECT_THAT(progress.status, StatusIs(kAborted));
    EXPECT_LT(progress.bytes, kTooMuch);
  });
  probe.AwaitParked();
  pair.left.Close();
  const Received received = ReadToEnd(pair.right);
  EXPECT_TRUE(received.is_pattern);
  EXPECT_LT(received.bytes, kTooMuch);
  EXPECT_OK(writer.Join());
}

// Within the machine all of it is copied, whichever way it is asked for.
BOBBIN_IO_TEST(ZeroCopyTest, WhatIsCopiedAllTheSameIsCounted) {
  for (const bool is_local : {false, true}) {
    const uint64_t before = runtime().Statistics().poller.copied_sends;
    Pair pair = is_local ? MakeLocalPair() : MakePair();
    VirtualThread writer = Spawn([&] {
      EXPECT_OK(pair.left.WriteZeroCopy(Pattern(1 << 16)).status);
      EXPECT_OK(pair.left.ShutdownWrite());
    });
    EXPECT_EQ(ReadToEnd(pair.right).bytes, size_t{1} << 16);
    EXPECT_OK(writer.Join());
    EXPECT_GT(runtime().Statistics().poller.copied_sends, before);
  }
}

BOBBIN_IO_FOREIGN_TEST(ZeroCopyTest, ForeignThreadsWriteToo) {
  Pair pair = MakePair();
  EXPECT_OK(pair.left.WriteZeroCopy(Pattern(4096)).status);
  EXPECT_OK(pair.left.ShutdownWrite());
  EXPECT_EQ(ReadToEnd(pair.right).bytes, 4096u);
}

}  // namespace
}  // namespace bobbin::test
