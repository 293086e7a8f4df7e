// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/process.h>
#include <bobbin/io/signals.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/io/temporary_directory.h"
#include "tests/support/leak_check.h"

namespace bobbin::test {
namespace {

using namespace std::chrono_literals;
using io::Process;
using io::ProcessEnd;
using io::ProcessOptions;
using io::StandardStream;
using std::chrono::microseconds;
using testing::HasSubstr;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kInternal = absl::StatusCode::kInternal;

// A shell that does this.
ProcessOptions Shell(std::string_view script) {
  return {.program = "/bin/sh", .arguments = {"-c", std::string(script)}};
}

Process Start(const ProcessOptions& options) {
  auto process = Process::Spawn(options);
  EXPECT_OK(process);
  return *std::move(process);
}

// Until all who could write have closed it.
std::string ReadAll(io::PipeReader& reader) {
  std::string text;
  std::array<std::byte, 4096> buffer;
  while (true) {
    const auto count = reader.Read(buffer);
    EXPECT_OK(count);
    if (!count.ok() || *count == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
}

std::string OutputOf(ProcessOptions options) {
  options.output = StandardStream::kPipe;
  Process process = Start(options);
  std::string text = ReadAll(process.output());
  EXPECT_THAT(process.Wait(), IsOkAndHolds(ProcessEnd{}));
  return text;
}

// Whether this process has no child, running or ended.
bool HasNoChild() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

BOBBIN_IO_TEST(ProcessTest, ItsEndIsAwaited) {
  EXPECT_THAT(Start({.program = "true"}).Wait(), IsOkAndHolds(ProcessEnd{}));
  Process failing = Start(Shell("exit 7"));
  EXPECT_THAT(failing.Wait(), IsOkAndHolds(ProcessEnd{.code = 7}));
  EXPECT_THAT(failing.Wait(), IsOkAndHolds(ProcessEnd{.code = 7})) << "and may be asked again";
  EXPECT_FALSE(failing.Wait()->ok());
  Process killed = Start(Shell("kill -9 $$"));
  EXPECT_THAT(killed.Wait(), IsOkAndHolds(ProcessEnd{.code = -1, .signal = SIGKILL}));
  EXPECT_EQ(killed.Wait()->ToString(), "signal 9 (Killed)");
  EXPECT_EQ(failing.Wait()->ToString(), "exit code 7");
  EXPECT_TRUE(HasNoChild());
}

BOBBIN_IO_TEST(ProcessTest, OthersGoOnWhileOneWaits) {
  ProcessOptions options = Shell("read line");
  options.input = StandardStream::kPipe;
  Process process = Start(options);
  std::vector<WaitProbe> probes(4);
  TaskGroup group({.placement = Placement::kSpread});
  for (WaitProbe& probe : probes) {
    group.Spawn([&] {
      probe.Attach();
      EXPECT_THAT(process.Wait(), IsOkAndHolds(ProcessEnd{}));
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  const auto end = process.TryWait();
  ASSERT_OK(end);
  EXPECT_EQ(*end, std::nullopt);
  EXPECT_OK(process.input().WriteAll(Bytes("go\n")));
  EXPECT_OK(group.Wait());
  EXPECT_TRUE(HasNoChild());
}

BOBBIN_IO_TEST(ProcessTest, ItIsTalkedToThroughPipes) {
  ProcessOptions options = Shell("cat; echo done >&2; exit 3");
  options.input = options.output = options.error = StandardStream::kPipe;
  Process process = Start(options);
  // More than a pipe holds: both ends are used at once.
  std::string sent;
  while (sent.size() < 300'000) sent += "0123456789abcdef";
  VirtualThread writer = Spawn([&]() -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(process.input().WriteAll(Bytes(sent)));
    process.input().Close();
    return absl::OkStatus();
  });
  EXPECT_EQ(ReadAll(process.output()), sent);
  EXPECT_EQ(ReadAll(process.error()), "done\n");
  EXPECT_OK(writer.Join());
  EXPECT_THAT(process.Wait(), IsOkAndHolds(ProcessEnd{.code = 3}));
}

BOBBIN_IO_TEST(ProcessTest, ItHasTheArgumentsEnvironmentAndDirectoryThatItWasGiven) {
  EXPECT_EQ(OutputOf({.program = "printf", .arguments = {"<%s>", "a b", "", "$HOME"}}),
            "<a b><><$HOME>");
  ProcessOptions options = Shell("echo \"$A|$B|$PATH_NOT_SET\"; exec env | grep -c HOME; true");
  options.environment = {"A=1 2", "B=", "PATH=/usr/bin:/bin"};
  EXPECT_EQ(OutputOf(options), "1 2||\n0\n");
  ASSERT_EQ(::setenv("BOBBIN_TEST_INHERITED", "yes", 1), 0);
  EXPECT_EQ(OutputOf(Shell("echo $BOBBIN_TEST_INHERITED")), "yes\n");
  const TemporaryDirectory directory;
  options = Shell("pwd -P");
  options.directory = directory.path();
  EXPECT_EQ(OutputOf(options), directory.path() + "\n");
  EXPECT_EQ(OutputOf(Shell("read line || echo no input")), "no input\n");
}

// What it is not meant to have: descriptors, handlers, masks.
BOBBIN_IO_TEST(ProcessTest, ItInheritsNothingElse) {
  int leaky[2];
  ASSERT_EQ(::pipe(leaky), 0);  // Without O_CLOEXEC.
  auto signals = io::Signals::Open({SIGTERM});
  ASSERT_OK(signals);
  struct sigaction ignoring {
  }, before{};
  ignoring.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGPIPE, &ignoring, &before), 0);

  EXPECT_EQ(OutputOf(Shell("for fd in /proc/self/fd/*; do echo ${fd##*/}; done | sort -n | "
                           "awk '$1 > 2 && $1 < 10' | wc -l")),
            "1\n")
      << "but that of the directory itself";
  const std::string status =
      OutputOf({.program = "grep", .arguments = {"-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"}});
  EXPECT_THAT(status, HasSubstr("SigBlk:\t0000000000000000"));
  // All but those that the C library keeps for itself.
  EXPECT_THAT(status, testing::ContainsRegex("SigIgn:\t[0-9a-f]{8}[08]0000000"));

  ASSERT_EQ(::sigaction(SIGPIPE, &before, nullptr), 0);
  ::close(leaky[0]);
  ::close(leaky[1]);
}

BOBBIN_IO_TEST(ProcessTest, AProgramThatCannotBeRunIsAnError) {
  const size_t before = OpenDescriptors();
  const TemporaryDirectory directory;
  const std::string plain = directory / "plain";
  std::ofstream(plain) << "text";
  const auto spawn = [](const ProcessOptions& options) { return Process::Spawn(options).status(); };
  const absl::Status missing = spawn({.program = "/no/such/program"});
  EXPECT_THAT(missing, StatusIs(kNotFound));
  EXPECT_EQ(MessageOf(missing), "spawn /no/such/program: no such file or directory");
  EXPECT_THAT(spawn({.program = "no-such-program-in-path",
                     .input = StandardStream::kPipe,
                     .output = StandardStream::kPipe}),
              StatusIs(kNotFound));
  EXPECT_THAT(spawn({.program = "true", .directory = "/no/such/directory"}), StatusIs(kNotFound));
  EXPECT_THAT(spawn({.program = plain}), StatusIs(kPermissionDenied));
  EXPECT_THAT(spawn({.program = ""}), StatusIs(kInvalidArgument));
  EXPECT_THAT(spawn({.program = std::string("a\0b", 3)}), StatusIs(kInvalidArgument));
  EXPECT_THAT(spawn({.program = "true", .arguments = {std::string("\0", 1)}}),
              StatusIs(kInvalidArgument));
  EXPECT_TRUE(HasNoChild());
  EXPECT_LE(OpenDescriptors(), before + 1);
}

BOBBIN_IO_TEST(ProcessTest, SignalsReachItAndNobodyElse) {
  Process process = Start({.program = "sleep", .arguments = {"3600"}});
  EXPECT_OK(process.Send(0));
  EXPECT_OK(process.Send(SIGINT));
  EXPECT_THAT(process.Wait(), IsOkAndHolds(ProcessEnd{.code = -1, .signal = SIGINT}));
  const absl::Status late = process.Send(SIGTERM);
  EXPECT_THAT(late, StatusIs(kFailedPrecondition));
  EXPECT_THAT(std::string(MessageOf(late)), HasSubstr("it has ended"));
}

BOBBIN_IO_TEST(ProcessTest, StopAsksFirstAndThenInsists) {
  EXPECT_THAT(Start({.program = "sleep", .arguments = {"3600"}}).Stop(60s),
              IsOkAndHolds(ProcessEnd{.code = -1, .signal = SIGTERM}));
  ProcessOptions options = Shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done");
  options.output = StandardStream::kPipe;
  Process polite = Start(options);
  std::array<std::byte, 6> ready;
  EXPECT_OK(polite.output().ReadExact(ready));
  EXPECT_THAT(polite.Stop(60s), IsOkAndHolds(ProcessEnd{.code = 5}));

  options = Shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  options.output = StandardStream::kPipe;
  Process deaf = Start(options);
  EXPECT_OK(deaf.output().ReadExact(ready));
  EXPECT_THAT(deaf.Stop(10ms), IsOkAndHolds(ProcessEnd{.code = -1, .signal = SIGKILL}));
  EXPECT_TRUE(HasNoChild());
}

BOBBIN_IO_TEST(ProcessTest, AHandleThatGoesEndsItsProcessAndSaysSo) {
  pid_t id;
  testing::internal::CaptureStderr();
  {
    Process process = Start({.program = "sleep", .arguments = {"3600"}});
    id = process.id();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "bobbin: process " + std::to_string(id) +
                " (sleep) runs although nobody holds it any more: it is ended\n");
  EXPECT_TRUE(HasNoChild());
  // One that has ended is no news, and no zombie either.
  testing::internal::CaptureStderr();
  {
    ProcessOptions options = Shell("echo x");
    options.output = StandardStream::kPipe;
    Process process = Start(options);
    EXPECT_EQ(ReadAll(process.output()), "x\n");
    // Its output has ended; it may take a little longer.
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(process.id()), &info, WEXITED | WNOWAIT), 0);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(HasNoChild());
}

BOBBIN_IO_TEST(ProcessTest, DeadlineAndCancelEndTheWaitAndNotTheProcess) {
  Process process = Start({.program = "sleep", .arguments = {"3600"}});
  for (int round = 0; round < Rounds(30); ++round) {
    {
      const DeadlineScope scope(microseconds(random().Between(0, 500)));
      EXPECT_THAT(process.Wait(), StatusIs(kDeadlineExceeded));
    }
    VirtualThread waiter =
        Spawn({.placement = Placement::kSpread}, [&] { return process.Wait().status(); });
    waiter.Cancel();
    EXPECT_THAT(waiter.Join(), StatusIs(kCancelled));
  }
  EXPECT_OK(process.Send(SIGKILL));
  EXPECT_THAT(process.Wait(), IsOkAndHolds(ProcessEnd{.code = -1, .signal = SIGKILL}));
  // Nor does a deadline that passes meanwhile leave one behind that nobody knows of.
  for (int round = 0; round < Rounds(30); ++round) {
    absl::StatusOr<Process> started;
    {
      const DeadlineScope scope(microseconds(random().Between(0, 1500)));
      started = Process::Spawn({.program = "true"});
    }
    if (!started.ok()) {
      EXPECT_THAT(started, StatusIs(kDeadlineExceeded));
    } else {
      EXPECT_OK(started->Wait());
    }
    EXPECT_TRUE(HasNoChild());
  }
}

BOBBIN_IO_TEST(ProcessTest, AnEndThatSomebodyElseHasTakenIsSaid) {
  Process process = Start({.program = "true"});
  EXPECT_EQ(::waitpid(process.id(), nullptr, 0), process.id());
  EXPECT_THAT(process.Wait(), StatusIs(kInternal));
  EXPECT_THAT(process.Send(SIGTERM), StatusIs(kFailedPrecondition));
}

BOBBIN_IO_TEST(ProcessTest, ManyAtOnce) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) {
    group.Spawn([i]() -> absl::Status {
      for (int round = 0; round < Rounds(5); ++round) {
        EXPECT_EQ(OutputOf(Shell("echo " + std::to_string(i))), std::to_string(i) + "\n");
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
  EXPECT_TRUE(HasNoChild());
}

BOBBIN_IO_FOREIGN_TEST(ProcessTest, ForeignThreadsSpawnToo) {
  EXPECT_EQ(OutputOf(Shell("echo hello")), "hello\n");
  Process process = Start({.program = "sleep", .arguments = {"3600"}});
  {
    const DeadlineScope scope(2ms);
    EXPECT_THAT(process.Wait(), StatusIs(kDeadlineExceeded));
  }
  EXPECT_THAT(process.Stop(60s), IsOkAndHolds(ProcessEnd{.code = -1, .signal = SIGTERM}));
}

}  // namespace
}  // namespace bobbin::test
