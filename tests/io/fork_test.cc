// SPDX-License-Identifier: Apache-2.0
//
// A busy process forks: it goes on as if nothing had been, and the child does what it may, or
// aborts and says why.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/vthread.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// A child that this thread forks, and what it writes to its standard error.
class ForkedChild {
 public:
  // Goes on in both processes.
  ForkedChild() {
    std::array<int, 2> ends;
    BOBBIN_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe");
    pid_ = ::fork();
    BOBBIN_CHECK(pid_ >= 0, "no process");
    if (is_child()) {
      const rlimit none{};
      ::setrlimit(RLIMIT_CORE, &none);
      ::dup2(ends[1], STDERR_FILENO);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  // In the child `body` is called, and if it returns, that is its end.
  explicit ForkedChild(const std::function<void()>& body) : ForkedChild() {
    if (!is_child()) return;
    body();
    ::_exit(kHasReturned);
  }
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;
  ~ForkedChild() { ::close(output_); }

  bool is_child() const { return pid_ == 0; }

  // These two block the OS thread.
  void ExpectToEndWell() {
    const std::string text = ReadText();
    const int status = Await();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << ": " << text;
    EXPECT_EQ(text, "");
  }
  void ExpectToAbort() {
    EXPECT_THAT(ReadText(), HasSubstr("made by fork of one that uses bobbin"));
    const int status = Await();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  }

 private:
  static constexpr int kHasReturned = 3;

  std::string ReadText() {
    std::string text;
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t got = ::read(output_, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return text;
      text.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  int Await() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  pid_t pid_ = -1;
  int output_ = -1;
};

// Connections on which small messages go to and fro without a pause.
class Traffic {
 public:
  Traffic() {
    for (Pair& pair : pairs_) {
      pair = MakePair();
      echoes_.Spawn([&pair] {
        std::array<std::byte, 64> buffer;
        while (true) {
          const auto got = pair.right.Read(buffer);
          if (!got.ok() || *got == 0) return;
          EXPECT_OK(pair.right.WriteAll(std::span(buffer).first(*got)));
        }
      });
      askers_.Spawn([this, &pair] {
        for (uint32_t i = 0; !is_over_; ++i) {
          EXPECT_OK(pair.left.WriteAll(std::as_bytes(std::span(&i, 1))));
          uint32_t answer = ~i;
          EXPECT_OK(pair.left.ReadExact(std::as_writable_bytes(std::span(&answer, 1))));
          EXPECT_EQ(answer, i);
          ++rounds_;
        }
        pair.left.Close();
      });
    }
  }
  ~Traffic() {
    is_over_ = true;
    EXPECT_OK(askers_.Wait());
    EXPECT_OK(echoes_.Wait());
  }

  // Until each of its connections has been used some more.
  void AwaitMore() {
    const int64_t before = rounds_;
    AwaitTrue([&] { return rounds_ > before + 100; });
  }
  io::TcpStream& stream() { return pairs_[0].left; }

 private:
  static constexpr int kPairs = 4;

  std::array<Pair, kPairs> pairs_;
  std::atomic<int64_t> rounds_{0};
  std::atomic<bool> is_over_{false};
  TaskGroup askers_;
  TaskGroup echoes_;
};

// What a child may do.
std::vector<std::function<void()>> AllowedCalls() {
  std::vector<std::function<void()>> calls = {
      [] { ::_exit(0); },
      [] { ::execl("/bin/true", "true", nullptr); },
  };
  // Sanitizers look for leaks and races at an exit, and miss the threads of the parent.
  if (!kUnderAddressSanitizer && !kUnderThreadSanitizer) calls.push_back([] { std::exit(0); });
  return calls;
}

BOBBIN_IO_TEST(ForkTest, OfAVirtualThreadTheChildMayEndOrBecomeAProgram) {
  Traffic traffic;
  for (const std::function<void()>& call : AllowedCalls()) {
    ForkedChild child(call);
    traffic.AwaitMore();
    RunBlocking([&] { child.ExpectToEndWell(); }).IgnoreError();
  }
}

BOBBIN_IO_TEST(ForkTest, OfAVirtualThreadTheChildAbortsWhereItWouldWait) {
  Traffic traffic;
  Event never;
  const std::vector<std::function<void()>> calls = {
      [&] { never.Wait().IgnoreError(); },
      [&] { SleepFor(milliseconds(1)).IgnoreError(); },
      [&] {
        while (true) Yield();
      },
      [&] { Spawn([] {}).Join().IgnoreError(); },
      [&] {
        std::array<std::byte, 8> buffer;
        while (traffic.stream().Read(buffer).ok()) {
        }
      },
      [&] { RunBlocking([] {}).IgnoreError(); },
      [&] { io::TcpStream::Connect("127.0.0.1:1").IgnoreError(); },
      [&] { runtime().Dump(); },
  };
  for (const std::function<void()>& call : calls) {
    ForkedChild child(call);
    traffic.AwaitMore();
    RunBlocking([&] { child.ExpectToAbort(); }).IgnoreError();
  }
}

BOBBIN_IO_TEST(ForkTest, AChildWhoseVirtualThreadEndsRunsNoOther) {
  if constexpr (kUnderThreadSanitizer) {
    GTEST_SKIP() << "after a fork the sanitizer has forgotten which virtual thread went before";
  }
  Traffic traffic;
  std::optional<ForkedChild> child;
  EXPECT_OK(Spawn([&] { child.emplace(); }).Join());
  traffic.AwaitMore();
  RunBlocking([&] { child->ExpectToAbort(); }).IgnoreError();
}

BOBBIN_IO_FOREIGN_TEST(ForkTest, OfAForeignThreadTheSameHolds) {
  Event is_over;
  std::atomic<int64_t> looks{0};
  VirtualThread host = runtime().Spawn([&] {
    Traffic traffic;
    while (!is_over.IsSet()) {
      traffic.AwaitMore();
      ++looks;
    }
  });
  for (const std::function<void()>& call : AllowedCalls()) {
    ForkedChild(call).ExpectToEndWell();
  }
  auto other = std::make_unique<Runtime>(RuntimeOptions{.carriers = 1});
  ForkedChild([&] {
    other = nullptr;  // Its carriers are the parent's.
    ::_exit(0);
  }).ExpectToEndWell();

  const std::vector<std::function<void()>> calls = {
      [&] { runtime().Spawn([] {}).Detach(); },
      [&] { Event().Wait().IgnoreError(); },
      [&] { SleepFor(milliseconds(1)).IgnoreError(); },
      [&] { Runtime({.carriers = 1}); },
      [&] { runtime().Shutdown().IgnoreError(); },
      [&] { PlatformPool({.name = "orphans"}).Submit([] {}).IgnoreError(); },
  };
  for (const std::function<void()>& call : calls) ForkedChild(call).ExpectToAbort();
  const int64_t before = looks;
  AwaitTrue([&] { return looks > before; });
  is_over.Set();
  EXPECT_OK(host.Join());
}

}  // namespace
}  // namespace bobbin::test
