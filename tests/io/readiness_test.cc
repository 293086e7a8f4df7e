// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/readiness.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A pipe whose ends do not wait.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    CloseReader();
    CloseWriter();
  }

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void Put(char byte) const { EXPECT_EQ(::write(writer(), &byte, 1), 1); }
  char Take() const {
    char byte = '?';
    EXPECT_EQ(::read(reader(), &byte, 1), 1);
    return byte;
  }
  void Fill() const {
    const std::array<char, 4096> bytes{};
    while (::write(writer(), bytes.data(), bytes.size()) > 0) {
    }
  }
  void Drain() const {
    std::array<char, 4096> bytes;
    while (::read(reader(), bytes.data(), bytes.size()) > 0) {
    }
  }
  void CloseReader() { Close(ends_[0]); }
  void CloseWriter() { Close(ends_[1]); }

 private:
  static void Close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  std::array<int, 2> ends_{};
};

absl::Status WaitReadableAtMost(int fd, std::chrono::nanoseconds time) {
  DeadlineScope scope(time);
  return io::WaitReadable(fd);
}

BOBBIN_IO_TEST(ReadinessTest, WhatIsReadyIsNotWaitedFor) {
  const Pipe pipe;
  EXPECT_OK(io::WaitWritable(pipe.writer()));
  pipe.Put('x');
  // Again and again: that it is ready is a state.
  for (int i = 0; i < 3; ++i) EXPECT_OK(io::WaitReadable(pipe.reader()));
  EXPECT_EQ(pipe.Take(), 'x');
}

BOBBIN_IO_TEST(ReadinessTest, AReaderWaitsUntilSomethingIsThere) {
  const Pipe pipe;
  for (int round = 0; round < Rounds(200); ++round) {
    WaitProbe probe;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      EXPECT_OK(io::WaitReadable(pipe.reader()));
      EXPECT_EQ(pipe.Take(), 'x');
    });
    if (random().OneIn(2)) probe.AwaitParked();
    pipe.Put('x');
    EXPECT_OK(reader.Join());
  }
}

BOBBIN_IO_TEST(ReadinessTest, AWriterWaitsUntilThereIsRoom) {
  const Pipe pipe;
  for (int round = 0; round < Rounds(50); ++round) {
    pipe.Fill();
    WaitProbe probe;
    VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      EXPECT_OK(io::WaitWritable(pipe.writer()));
      pipe.Put('x');
    });
    probe.AwaitParked();
    pipe.Drain();
    EXPECT_OK(writer.Join());
    pipe.Drain();
  }
}

BOBBIN_IO_TEST(ReadinessTest, AllWhoWaitForOneDescriptorGoOn) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const std::array<std::byte, 4096> bytes{};
  while (::send(ends[0], bytes.data(), bytes.size(), 0) > 0) {
  }
  std::vector<WaitProbe> probes(6);
  std::atomic<int> read_on{0}, written_on{0};
  TaskGroup group({.placement = Placement::kSpread});
  for (size_t i = 0; i < probes.size(); ++i) {
    group.Spawn([&, i]() -> absl::Status {
      probes[i].Attach();
      BOBBIN_RETURN_IF_ERROR(i % 2 == 0 ? io::WaitReadable(ends[0]) : io::WaitWritable(ends[0]));
      ++(i % 2 == 0 ? read_on : written_on);
      return absl::OkStatus();
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  EXPECT_EQ(::send(ends[1], "x", 1, 0), 1);
  AwaitTrue([&] { return read_on == 3; });
  EXPECT_EQ(written_on, 0);
  std::array<std::byte, 4096> taken;
  while (::recv(ends[1], taken.data(), taken.size(), 0) > 0) {
  }
  EXPECT_OK(group.Wait());
  EXPECT_EQ(written_on, 3);
  ::close(ends[0]);
  ::close(ends[1]);
}

BOBBIN_IO_TEST(ReadinessTest, AnEndCountsAsReady) {
  Pipe pipe;
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    EXPECT_OK(io::WaitReadable(pipe.reader()));
  });
  probe.AwaitParked();
  pipe.CloseWriter();
  EXPECT_OK(reader.Join());

  Pipe other;
  other.Fill();
  WaitProbe writing;
  VirtualThread writer = Spawn([&] {
    writing.Attach();
    EXPECT_OK(io::WaitWritable(other.writer()));
  });
  writing.AwaitParked();
  other.CloseReader();
  EXPECT_OK(writer.Join());
}

// The peer's end is no room to write.
BOBBIN_IO_TEST(ReadinessTest, AWriterWaitsForRoomAlsoWhenThePeerHasFinished) {
  for (int round = 0; round < Rounds(50); ++round) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    std::array<std::byte, 4096> bytes{};
    while (::send(ends[0], bytes.data(), bytes.size(), 0) > 0) {
    }
    std::atomic<bool> has_room{false};
    WaitProbe probe;
    VirtualThread writer = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      EXPECT_OK(io::WaitWritable(ends[0]));
      EXPECT_TRUE(has_room);
    });
    if (random().OneIn(2)) probe.AwaitParked();
    ::shutdown(ends[1], SHUT_WR);
    for (uint64_t spins = random().Below(5); spins > 0; --spins) Yield();
    has_room = true;
    while (::recv(ends[1], bytes.data(), bytes.size(), 0) > 0) {
    }
    EXPECT_OK(writer.Join());
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

BOBBIN_IO_TEST(ReadinessTest, AFileIsAlwaysReady) {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_OK(io::WaitReadable(file));
  EXPECT_OK(io::WaitWritable(file));
  ::close(file);
}

BOBBIN_IO_TEST(ReadinessTest, AClosedDescriptorIsAnError) {
  int closed;
  {
    const Pipe pipe;
    closed = pipe.reader();
  }
  for (const int fd : {closed, -1}) {
    const absl::Status status = io::WaitReadable(fd);
    EXPECT_THAT(status, StatusIs(kFailedPrecondition));
    EXPECT_EQ(MessageOf(status), "wait until readable: bad file descriptor");
    EXPECT_THAT(io::WaitWritable(fd), StatusIs(kFailedPrecondition));
  }
}

BOBBIN_IO_TEST(ReadinessTest, DeadlineAndCancelEndTheWait) {
  const Pipe pipe;
  for (int round = 0; round < Rounds(50); ++round) {
    EXPECT_THAT(WaitReadableAtMost(pipe.reader(), microseconds(random().Between(0, 500))),
                StatusIs(kDeadlineExceeded));
    WaitProbe probe;
    VirtualThread reader = Spawn({.placement = Placement::kSpread}, [&] {
      probe.Attach();
      return io::WaitReadable(pipe.reader());
    });
    probe.AwaitParked();
    reader.Cancel();
    EXPECT_THAT(reader.Join(), StatusIs(kCancelled));
  }
  pipe.Put('x');
  EXPECT_OK(io::WaitReadable(pipe.reader()));
}

// A poller must not take the next owner of a number for the one that it knows.
BOBBIN_IO_TEST(ReadinessTest, ANumberThatIsUsedAgainIsWaitedForAnew) {
  for (int round = 0; round < Rounds(200); ++round) {
    // What was waited for lives on under another number: the kernel may still tell of it.
    int kept;
    {
      const Pipe old_pipe;
      EXPECT_THAT(WaitReadableAtMost(old_pipe.reader(), microseconds(50)),
                  StatusIs(kDeadlineExceeded));
      kept = ::dup(old_pipe.reader());
    }
    const Pipe pipe;
    EXPECT_THAT(WaitReadableAtMost(pipe.reader(), microseconds(50)), StatusIs(kDeadlineExceeded));
    WaitProbe probe;
    VirtualThread reader = Spawn([&] {
      probe.Attach();
      EXPECT_OK(io::WaitReadable(pipe.reader()));
    });
    probe.AwaitParked();
    pipe.Put('x');
    EXPECT_OK(reader.Join());
    ::close(kept);
  }
}

BOBBIN_IO_TEST(ReadinessTest, AnEventfdIsPassedToAndFro) {
  const int ping = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int pong = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  constexpr int kRounds = Rounds(2000);
  const auto pass = [](int from, int to) -> absl::Status {
    for (int i = 0; i < kRounds; ++i) {
      BOBBIN_RETURN_IF_ERROR(io::WaitReadable(from));
      uint64_t count = 0;
      if (::read(from, &count, sizeof(count)) != sizeof(count) || count != 1) {
        return absl::DataLossError("woken in vain");
      }
      if (::write(to, &count, sizeof(count)) != sizeof(count)) return absl::DataLossError("full");
    }
    return absl::OkStatus();
  };
  const uint64_t one = 1;
  ASSERT_EQ(::write(ping, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  TaskGroup group({.placement = Placement::kSpread});
  group.Spawn([&] { return pass(ping, pong); });
  group.Spawn([&] { return pass(pong, ping); });
  EXPECT_OK(group.Wait());
  ::close(ping);
  ::close(pong);
}

BOBBIN_IO_FOREIGN_TEST(ReadinessTest, ForeignThreadsWaitToo) {
  const Pipe pipe;
  EXPECT_OK(io::WaitWritable(pipe.writer()));
  EXPECT_THAT(WaitReadableAtMost(pipe.reader(), milliseconds(5)), StatusIs(kDeadlineExceeded));
  VirtualThread writer = runtime().Spawn([&] { pipe.Put('x'); });
  EXPECT_OK(io::WaitReadable(pipe.reader()));
  EXPECT_EQ(pipe.Take(), 'x');
  EXPECT_OK(writer.Join());
  EXPECT_THAT(io::WaitReadable(-1), StatusIs(kFailedPrecondition));
}

}  // namespace
}  // namespace bobbin::test
