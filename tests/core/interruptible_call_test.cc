// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "gtest/gtest.h"

#include <bobbin/core/internal/interruptible_call.h>
#include <bobbin/core/internal/thread_signal.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/seed.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using internal::InterruptibleCall;
using internal::ThreadSignal;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(fds_, O_CLOEXEC), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(fds_[0]);
    ::close(fds_[1]);
  }
  int reader() const { return fds_[0]; }
  void Put(char byte) { EXPECT_EQ(::write(fds_[1], &byte, 1), 1); }
  int Unread() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(fds_[0], FIONREAD, &bytes), 0);
    return bytes;
  }

 private:
  int fds_[2];
};

// Whether that thread sleeps in the kernel.
bool IsAsleep(pid_t os_thread) {
  char text[256] = {};
  const std::string path = "/proc/self/task/" + std::to_string(os_thread) + "/stat";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t bytes = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  const char* const name_end = bytes > 0 ? std::strrchr(text, ')') : nullptr;
  return name_end != nullptr && name_end[2] == 'S';
}

class InterruptibleCallTest : public testing::Test {
 public:
  InterruptibleCallTest() { ThreadSignal::Install(SIGURG); }
};

TEST_F(InterruptibleCallTest, TheKernelsAnswerComesBack) {
  InterruptibleCall call;
  EXPECT_EQ(call.Run(SYS_getpid), ::getpid());
  EXPECT_EQ(call.Run(SYS_close, -1), -EBADF);
  Pipe pipe;
  pipe.Put('x');
  char byte = 0;
  EXPECT_EQ(call.Run(SYS_read, pipe.reader(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(InterruptibleCallTest, SixArgumentsArrive) {
  Pipe from;
  Pipe to;
  for (int i = 0; i < 6; ++i) from.Put('y');
  InterruptibleCall call;
  // The file, its offset, the other file, its offset, the length, the flags: only the last is bad.
  EXPECT_EQ(call.Run(SYS_splice, from.reader(), nullptr, to.reader(), nullptr, 6, 0), -EBADF);
  EXPECT_EQ(call.Run(SYS_splice, from.reader(), nullptr, to.reader(), nullptr, 6, ~0u), -EINVAL);
}

TEST_F(InterruptibleCallTest, WhatIsInterruptedBeforeItBeginsIsNotMade) {
  Pipe pipe;
  pipe.Put('x');
  InterruptibleCall call;
  call.Interrupt();
  char byte = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call.Run(SYS_read, pipe.reader(), &byte, 1), -EINTR);
  EXPECT_EQ(pipe.Unread(), 1);
}

TEST_F(InterruptibleCallTest, ACallThatSleepsIsEnded) {
  Pipe pipe;
  InterruptibleCall call;
  std::atomic<pid_t> id{0};
  int64_t result = 0;
  OsThreads threads;
  threads.Start([&] {
    ThreadSignal::AdmitHere();
    id = ::gettid();
    char byte;
    result = call.Run(SYS_read, pipe.reader(), &byte, 1);
  });
  AwaitTrue([&] { return id != 0 && IsAsleep(id); });
  call.Interrupt();
  threads.Join();
  EXPECT_EQ(result, -EINTR);
}

TEST_F(InterruptibleCallTest, ASignalThatIsNotMeantEndsNothing) {
  Pipe pipe;
  InterruptibleCall call;
  std::atomic<pid_t> id{0};
  std::atomic<bool> has_ended{false};
  OsThreads threads;
  threads.Start([&] {
    ThreadSignal::AdmitHere();
    id = ::gettid();
    char byte;
    EXPECT_EQ(call.Run(SYS_read, pipe.reader(), &byte, 1), 1);
    has_ended = true;
  });
  for (int i = 0; i < 20; ++i) {
    AwaitTrue([&] { return id != 0 && IsAsleep(id); });
    EXPECT_TRUE(ThreadSignal::Send(id));
  }
  EXPECT_FALSE(has_ended.load());
  pipe.Put('x');
}

// Interrupts at every instant: before the call, in it, as a byte arrives, after it. The thread goes
// on with the next call meanwhile, which a late signal must not end.
TEST_F(InterruptibleCallTest, AByteIsEitherReturnedOrStillThere) {
  Random random(Seed());
  Pipe pipe;
  constexpr int kSlots = 64;
  const int rounds = Rounds(20'000);
  std::optional<InterruptibleCall> calls[kSlots];
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::atomic<int> interrupted{0};
  int returned = 0;
  int refused = 0;
  OsThreads threads;
  threads.Start([&] {
    ThreadSignal::AdmitHere();
    for (int i = 0; i < rounds; ++i) {
      // Whoever interrupts is done with the object that was here.
      while (interrupted.load() < i - kSlots + 1) std::this_thread::yield();
      InterruptibleCall& call = calls[i % kSlots].emplace();
      begun.store(i + 1);
      char byte = 0;
      const int64_t result = call.Run(SYS_read, pipe.reader(), &byte, 1);
      if (result == 1) ++returned;
      if (result == -EINTR) ++refused;
      ended.store(i + 1);
    }
  });
  int put = 0;
  for (int i = 0; i < rounds; ++i) {
    while (begun.load() <= i) std::this_thread::yield();
    Spin(random.Below(2000));
    if (random.Below(2) == 0) {
      pipe.Put('x');
      ++put;
      Spin(random.Below(500));
    }
    calls[i % kSlots]->Interrupt();
    interrupted.store(i + 1);
    if (random.Below(8) == 0) {
      while (ended.load() <= i) std::this_thread::yield();
    }
  }
  threads.Join();
  EXPECT_EQ(returned + refused, rounds);
  EXPECT_EQ(returned + pipe.Unread(), put);
  EXPECT_GT(returned, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace bobbin::test
