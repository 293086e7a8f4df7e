// SPDX-License-Identifier: Apache-2.0
//
// Which poller a runtime gets: by the system, by the environment, and by what the program says.

#include "io/src/poller_choice.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <bobbin/core/status.h>

#include "tests/io/io_test.h"
#include "tests/io/refuse_uring.h"
#include "tests/io/traffic.h"
#include "tests/support/kept_lines.h"

namespace bobbin::test {
namespace {

// Says on standard error what the probe answers, which poller a runtime has and why, and whether it
// works; twice, and exits.
[[noreturn]] void Describe(PollerFactory (*make)()) {
  std::fprintf(stderr, "probe %s\n", io::ProbeUring().ToString().c_str());
  for (int round = 0; round < 2; ++round) {
    const auto runtime = Runtime::Create({.carriers = 2, .poller = make()});
    std::fprintf(stderr, "runtime %s\n", runtime.status().ToString().c_str());
    if (!runtime.ok()) continue;
    std::fprintf(stderr, "poller %s\nreason %s\n", std::string((*runtime)->poller_name()).c_str(),
                 std::string((*runtime)->poller_reason()).c_str());
    const absl::Status served = (*runtime)->Spawn([] { return ManyPingPongs(50, 20); }).Join();
    std::fprintf(stderr, "served %s\n", served.ToString().c_str());
    const uint64_t small_queues = (*runtime)->Statistics().poller.small_queues;
    if (small_queues != 0) {
      std::fprintf(stderr, "%llu small queues\n", static_cast<unsigned long long>(small_queues));
    }
  }
  std::exit(0);
}

PollerFactory Automatic() { return io::AutoPoller(); }
PollerFactory Ring() { return io::UringPoller(); }
PollerFactory Epoll() { return io::EpollPoller(); }

[[noreturn]] void DescribeUnderFilter(int error, uint32_t entries_max, PollerFactory (*make)()) {
  RefuseUring(error, entries_max);
  Describe(make);
}

class PollerChoiceDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  // What the environment says meanwhile; null: nothing.
  static void Say(const char* wish) {
    if (wish == nullptr) {
      ::unsetenv("BOBBIN_IO");
    } else {
      ::setenv("BOBBIN_IO", wish, 1);
    }
  }
  void TearDown() override { Say(nullptr); }
};

const auto kExits = testing::ExitedWithCode(0);

TEST(UringProbeTest, ThisKernelHasIt) { EXPECT_OK(io::ProbeUring()); }

// --- What the system says

TEST_F(PollerChoiceDeathTest, WhereRingsWorkTheyAreUsed) {
  EXPECT_EXIT(Describe(Automatic), kExits,
              "probe OK\nruntime OK\npoller io_uring\nreason \nserved OK\n"
              "runtime OK\npoller io_uring\nreason \nserved OK");
}

TEST_F(PollerChoiceDeathTest, WhereRingsAreRefusedEpollIsUsedAndTheReasonIsPrintedOnce) {
  for (const int error : {EPERM, EACCES}) {
    EXPECT_EXIT(DescribeUnderFilter(error, 0, Automatic), kExits,
                "probe PERMISSION_DENIED: (io_uring: refused.*seccomp.*io_uring_disabled.*)\n"
                "bobbin: I/O by epoll, which is slower: io_uring: refused.*\n"
                "runtime OK\npoller epoll\nreason io_uring: refused.*\nserved OK\n"
                "runtime OK\npoller epoll\nreason io_uring: refused.*\nserved OK");
  }
}

TEST_F(PollerChoiceDeathTest, AMissingSystemCallMeansEpoll) {
  EXPECT_EXIT(DescribeUnderFilter(ENOSYS, 0, Automatic), kExits,
              "probe UNIMPLEMENTED: io_uring: this kernel has none, or a seccomp filter hides it\n"
              "bobbin: I/O by epoll.*\nruntime OK\npoller epoll\nreason .*none.*\nserved OK");
}

TEST_F(PollerChoiceDeathTest, UnknownFlagsMeanThatTheKernelIsTooOldAndEpoll) {
  EXPECT_EXIT(DescribeUnderFilter(EINVAL, 0, Automatic), kExits,
              "probe UNIMPLEMENTED: io_uring: this kernel is too old; 6.1 is needed\n"
              "bobbin: I/O by epoll.*\nruntime OK\npoller epoll\nreason .*too old.*\nserved OK");
}

TEST_F(PollerChoiceDeathTest, LackOfDescriptorsAndMemoryNamesTheLimitAndMeansEpoll) {
  EXPECT_EXIT(DescribeUnderFilter(EMFILE, 0, Automatic), kExits,
              "probe RESOURCE_EXHAUSTED: .*RLIMIT_NOFILE(.|\n)*poller epoll");
  EXPECT_EXIT(DescribeUnderFilter(ENOMEM, 0, Automatic), kExits,
              "probe RESOURCE_EXHAUSTED: .*RLIMIT_MEMLOCK(.|\n)*poller epoll");
}

TEST_F(PollerChoiceDeathTest, ARingThatMayNotBeEnteredIsRefused) {
  const auto describe = [] {
    RefuseAbove(SYS_io_uring_enter, 5, 0, EPERM);
    Describe(Automatic);
  };
  EXPECT_EXIT(describe(), kExits,
              "probe PERMISSION_DENIED: io_uring: refused(.|\n)*poller epoll(.|\n)*served OK");
}

// The probe finds a ring, and the first carriers do; the next one finds no descriptor left.
TEST_F(PollerChoiceDeathTest, ARingThatALaterCarrierDoesNotGetStopsTheStartAndNamesTheLimit) {
  const auto describe = [](PollerFactory (*make)()) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    // More than the probe needs at a time, and fewer than there are carriers.
    const rlimit tight{.rlim_cur = static_cast<rlim_t>(next) + 12, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &tight);
    for (int round = 0; round < 3; ++round) {
      const auto runtime = Runtime::Create({.carriers = 32, .poller = make()});
      std::fprintf(stderr, "runtime %s\n", runtime.status().ToString().c_str());
    }
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const auto runtime = Runtime::Create({.carriers = 32, .poller = make()});
    std::fprintf(stderr, "at last %s\n", runtime.status().ToString().c_str());
    std::exit(0);
  };
  EXPECT_EXIT(describe(Automatic), kExits,
              "(runtime RESOURCE_EXHAUSTED: io_uring: no descriptor left for a ring; raise "
              "RLIMIT_NOFILE\n){3}at last OK");
  EXPECT_EXIT(describe(Ring), kExits, "(runtime RESOURCE_EXHAUSTED.*RLIMIT_NOFILE\n){3}at last OK");
}

TEST_F(PollerChoiceDeathTest, WithLittleMemoryARingIsSmallAndWorks) {
  EXPECT_EXIT(DescribeUnderFilter(ENOMEM, 8, Automatic), kExits,
              "probe OK\nruntime OK\npoller io_uring\nreason \nserved OK\n2 small queues");
}

// --- What the program says

TEST_F(PollerChoiceDeathTest, ARuntimeThatWantsRingsDoesNotStartWithout) {
  EXPECT_EXIT(DescribeUnderFilter(EPERM, 0, Ring), kExits,
              "runtime PERMISSION_DENIED: io_uring: refused");
}

TEST_F(PollerChoiceDeathTest, ARuntimeThatWantsEpollGetsItWhateverTheEnvironmentSays) {
  for (const char* const wish : {"uring", "nonsense"}) {
    Say(wish);
    EXPECT_EXIT(Describe(Epoll), kExits, "runtime OK\npoller epoll\nreason \nserved OK");
  }
}

TEST_F(PollerChoiceDeathTest, ADumpTellsTheReason) {
  Say("epoll");
  const auto describe = [] {
    Runtime runtime({.carriers = 1, .poller = io::AutoPoller()});
    std::fputs(runtime.Dump().c_str(), stderr);
    std::fputs(runtime.Dump({.format = DumpFormat::kJson}).c_str(), stderr);
    std::exit(0);
  };
  EXPECT_EXIT(describe(), kExits,
              "\nepoll: BOBBIN_IO is epoll\n(.|\n)*\"poller_reason\": ?\"BOBBIN_IO is epoll\"");
}

// With a log that has a sink the reason is a line of that, once, with a field.
TEST_F(PollerChoiceDeathTest, WhereRingsAreRefusedTheLogHasTheReasonOnce) {
  const auto describe = [] {
    const KeptLines lines;
    RefuseUring(EPERM, 0);
    for (int round = 0; round < 2; ++round) {
      const auto runtime = Runtime::Create({.carriers = 1, .poller = io::AutoPoller()});
      if (!runtime.ok()) std::exit(1);
    }
    const std::vector<LogRecord> told = lines.With("epoll");
    std::fprintf(stderr, "%zu line\n", told.size());
    for (const LogRecord& line : told) {
      std::fprintf(stderr, "%s\nreason %s\n", line.text.c_str(), FieldOf(line, "reason").c_str());
    }
    std::exit(0);
  };
  EXPECT_EXIT(
      describe(), kExits,
      "1 line\nI/O by epoll, which is slower: io_uring: refused.*\nreason io_uring: refused");
}

// --- What the environment says

TEST_F(PollerChoiceDeathTest, TheEnvironmentChoosesEpoll) {
  Say("epoll");
  EXPECT_EXIT(Describe(Automatic), kExits,
              "probe OK\nruntime OK\npoller epoll\nreason BOBBIN_IO is epoll\nserved OK");
}

TEST_F(PollerChoiceDeathTest, TheEnvironmentInsistsOnRings) {
  Say("uring");
  EXPECT_EXIT(Describe(Automatic), kExits, "runtime OK\npoller io_uring\nreason \nserved OK");
  EXPECT_EXIT(DescribeUnderFilter(EPERM, 0, Automatic), kExits,
              "runtime PERMISSION_DENIED: io_uring: refused");
}

TEST_F(PollerChoiceDeathTest, TheEnvironmentMayLeaveTheChoiceToUs) {
  for (const char* const wish : {"auto", ""}) {
    Say(wish);
    EXPECT_EXIT(Describe(Automatic), kExits, "runtime OK\npoller io_uring\nreason \nserved OK");
  }
}

TEST_F(PollerChoiceDeathTest, AnythingElseInTheEnvironmentIsAnErrorThatSaysWhatIsAllowed) {
  for (const char* const wish : {"io_uring", "EPOLL", " auto", "nonsense"}) {
    Say(wish);
    EXPECT_EXIT(Describe(Automatic), kExits,
                std::string("runtime INVALID_ARGUMENT: BOBBIN_IO is \"") + wish +
                    "\": must be auto, uring or epoll\nruntime INVALID_ARGUMENT");
  }
}

}  // namespace
}  // namespace bobbin::test
