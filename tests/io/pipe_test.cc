// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/pipe.h>
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

io::Pipe NewPipe() {
  auto pipe = io::MakePipe();
  EXPECT_OK(pipe);
  return *std::move(pipe);
}

std::string ReadAll(io::PipeReader& reader, size_t bytes) {
  std::string text(bytes, '\0');
  EXPECT_OK(reader.ReadExact(std::as_writable_bytes(std::span(text))));
  return text;
}

BOBBIN_IO_TEST(PipeTest, WhatIsWrittenIsRead) {
  io::Pipe pipe = NewPipe();
  ASSERT_OK(pipe.writer.WriteAll(Bytes("ping")));
  EXPECT_EQ(ReadAll(pipe.reader, 4), "ping");
  std::array<std::byte, 4> buffer;
  EXPECT_THAT(pipe.reader.Read(std::span<std::byte>()), IsOkAndHolds(0u));
  pipe.writer.Close();
  EXPECT_THAT(pipe.reader.Read(buffer), IsOkAndHolds(0u));
  EXPECT_THAT(pipe.reader.ReadExact(buffer), StatusIs(absl::StatusCode::kOutOfRange));
}

BOBBIN_IO_TEST(PipeTest, ReadersAndWritersWaitForEachOtherAndLoseNothing) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 8; ++i) {
    group.Spawn([random = random().Fork()]() mutable -> absl::Status {
      io::Pipe pipe = NewPipe();
      const size_t total = static_cast<size_t>(Rounds(8)) * 50'000;
      VirtualThread writer =
          Spawn({.placement = Placement::kSpread}, [&, other = random.Fork()]() mutable {
            std::vector<std::byte> chunk(100'000);
            for (size_t sent = 0; sent < total;) {
              const size_t bytes = std::min(total - sent, 1 + other.Below(chunk.size()));
              for (size_t k = 0; k < bytes; ++k) chunk[k] = PatternAt(sent + k);
              EXPECT_OK(pipe.writer.WriteAll(std::span(chunk).first(bytes)));
              sent += bytes;
              if (other.OneIn(4)) Yield();
            }
            pipe.writer.Close();
          });
      std::vector<std::byte> buffer(100'000);
      size_t have = 0;
      while (true) {
        DeadlineScope scope(random.OneIn(3) ? microseconds(random.Between(0, 300))
                                            : microseconds(60'000'000));
        const auto read =
            pipe.reader.Read(std::span(buffer).first(1 + random.Below(buffer.size())));
        if (absl::IsDeadlineExceeded(read.status())) continue;
        EXPECT_OK(read);
        if (!read.ok() || *read == 0) break;
        bool is_pattern = true;
        for (size_t k = 0; k < *read; ++k) is_pattern &= buffer[k] == PatternAt(have + k);
        EXPECT_TRUE(is_pattern);
        have += *read;
      }
      EXPECT_EQ(have, total);
      return writer.Join();
    });
  }
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(PipeTest, ManyWaitAtTheSameTime) {
  std::vector<io::Pipe> pipes;
  for (int i = 0; i < 100; ++i) pipes.push_back(NewPipe());
  std::vector<WaitProbe> probes(pipes.size());
  TaskGroup group({.placement = Placement::kSpread});
  for (size_t i = 0; i < pipes.size(); ++i) {
    group.Spawn([&, i] {
      probes[i].Attach();
      EXPECT_EQ(ReadAll(pipes[i].reader, 1), "x");
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  for (io::Pipe& pipe : pipes) EXPECT_OK(pipe.writer.WriteAll(Bytes("x")));
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(PipeTest, AWriteThatIsCutShortTellsHowMuchWasWritten) {
  const std::vector<std::byte> much(size_t{1} << 20);
  for (int round = 0; round < Rounds(10); ++round) {
    io::Pipe pipe = NewPipe();
    io::Progress progress;
    {
      DeadlineScope scope(microseconds(random().Between(0, 2000)));
      progress = pipe.writer.WriteCounted(much);
    }
    EXPECT_THAT(progress.status, StatusIs(kDeadlineExceeded));
    pipe.writer.Close();
    std::vector<std::byte> buffer(much.size());
    size_t have = 0;
    while (true) {
      const auto read = pipe.reader.Read(buffer);
      ASSERT_OK(read);
      if (*read == 0) break;
      have += *read;
    }
    EXPECT_EQ(have, progress.bytes);
  }
}

BOBBIN_IO_TEST(PipeTest, WritingForNobodyIsAnErrorAndNoSignal) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  io::Pipe pipe = NewPipe();
  pipe.reader.Close();
  EXPECT_THAT(pipe.writer.WriteAll(Bytes("anybody there?")), StatusIs(kUnavailable));
  // Also to one who waits for room meanwhile.
  io::Pipe full = NewPipe();
  WaitProbe probe;
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    probe.Attach();
    const std::vector<std::byte> much(size_t{1} << 20);
    EXPECT_THAT(full.writer.WriteAll(much), StatusIs(kUnavailable));
  });
  probe.AwaitParked();
  full.reader.Close();
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(PipeTest, CancelEndsReadersAndWriters) {
  io::Pipe pipe = NewPipe();
  WaitProbe reading, writing;
  VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
    reading.Attach();
    std::array<std::byte, 4> buffer;
    EXPECT_THAT(pipe.reader.Read(buffer), StatusIs(kCancelled));
  });
  reading.AwaitParked();
  reader.Cancel();
  EXPECT_OK(reader.Join());
  VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
    writing.Attach();
    const std::vector<std::byte> much(size_t{1} << 20);
    EXPECT_THAT(pipe.writer.WriteAll(much), StatusIs(kCancelled));
  });
  writing.AwaitParked();
  writer.Cancel();
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(PipeTest, OneReaderAtATime) {
  io::Pipe pipe = NewPipe();
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    EXPECT_EQ(ReadAll(pipe.reader, 1), "x");
  });
  probe.AwaitParked();
  std::array<std::byte, 1> buffer;
  EXPECT_THAT(pipe.reader.Read(buffer), StatusIs(kFailedPrecondition));
  ASSERT_OK(pipe.writer.WriteAll(Bytes("x")));
  EXPECT_OK(reader.Join());
}

BOBBIN_IO_TEST(PipeTest, AnEndIsGivenAwayAndWaitsAgain) {
  const size_t descriptors = OpenDescriptors();
  {
    io::Pipe pipe = NewPipe();
    auto fd = pipe.writer.Release();
    ASSERT_OK(fd);
    EXPECT_EQ(::fcntl(fd->get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_THAT(pipe.writer.WriteAll(Bytes("x")), StatusIs(kAborted));
    EXPECT_THAT(pipe.writer.Release(), StatusIs(kAborted));
    EXPECT_EQ(::write(fd->get(), "y", 1), 1);
    *fd = io::FileDescriptor();
    EXPECT_EQ(ReadAll(pipe.reader, 1), "y");
    std::array<std::byte, 1> buffer;
    EXPECT_THAT(pipe.reader.Read(buffer), IsOkAndHolds(0u));
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

BOBBIN_IO_FOREIGN_TEST(PipeTest, ForeignThreadsReadAndWrite) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  io::Pipe pipe = NewPipe();
  OsThreads threads;
  threads.Start([&] {
    EXPECT_OK(pipe.writer.WriteAll(std::vector<std::byte>(size_t{1} << 20)));
    pipe.writer.Close();
  });
  size_t have = 0;
  std::vector<std::byte> buffer(10'000);
  while (true) {
    const auto read = pipe.reader.Read(buffer);
    ASSERT_OK(read);
    if (*read == 0) break;
    have += *read;
  }
  EXPECT_EQ(have, size_t{1} << 20);
  io::Pipe other = NewPipe();
  {
    DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(other.reader.Read(buffer), StatusIs(kDeadlineExceeded));
  }
  other.reader.Close();
  EXPECT_THAT(other.writer.WriteAll(buffer), StatusIs(kUnavailable));
}

BOBBIN_IO_FOREIGN_TEST(PipeTest, AWriterThatNeverWaitsLetsOthersRun) {
  io::Pipe pipe = NewPipe();
  OsThreads threads;
  threads.Start([&] {
    std::vector<std::byte> buffer(size_t{1} << 16);
    while (true) {
      const auto read = pipe.reader.Read(buffer);
      if (!read.ok() || *read == 0) return;
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
                  DeadlineScope scope(milliseconds(50));
                  absl::Status status;
                  while (status.ok()) status = pipe.writer.WriteAll(Bytes("x"));
                  EXPECT_THAT(status, StatusIs(kDeadlineExceeded));
                })
                .Join());
  is_over = true;
  for (VirtualThread& other : others) EXPECT_OK(other.Join());
  EXPECT_GE(turns, 10);
  pipe.writer.Close();
}

TEST(PipeDeathTest, EmptyOnesAbort) {
  io::PipeReader reader;
  EXPECT_DEATH(reader.Close(), "this PipeReader holds no end");
  io::PipeWriter writer;
  EXPECT_DEATH(writer.Close(), "this PipeWriter holds no end");
}

TEST(PipeDeathTest, AnEndThatIsClosedUnderItsUserAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1, .poller = io::EpollPoller()});
        runtime
            .Spawn([] {
              io::Pipe pipe = *io::MakePipe();
              WaitProbe probe;
              VirtualThread reader = Spawn([&] {
                probe.Attach();
                std::array<std::byte, 1> buffer;
                pipe.reader.Read(buffer).IgnoreError();
              });
              probe.AwaitParked();
              pipe.reader.Close();
            })
            .Join()
            .IgnoreError();
      },
      "an end of a pipe is closed while it is used");
}

}  // namespace
}  // namespace bobbin::test
