// SPDX-License-Identifier: Apache-2.0

#include "io/src/ring_poller.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "io/src/uring_constants.h"
#include "tests/io/io_test.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Sends `rounds` bytes to and fro.
absl::Status PingPong(Pair& pair, int rounds) {
  TaskGroup group({.placement = Placement::kSpread});
  group.Spawn([&]() -> absl::Status {
    std::array<std::byte, 1> byte{};
    for (int i = 0; i < rounds; ++i) {
      BOBBIN_RETURN_IF_ERROR(pair.left.WriteAll(byte));
      BOBBIN_RETURN_IF_ERROR(pair.left.ReadExact(byte));
      if (byte[0] != PatternAt(static_cast<size_t>(i))) return absl::DataLossError("wrong byte");
    }
    return absl::OkStatus();
  });
  group.Spawn([&]() -> absl::Status {
    for (int i = 0; i < rounds; ++i) {
      std::array<std::byte, 1> byte{};
      BOBBIN_RETURN_IF_ERROR(pair.right.ReadExact(byte));
      byte[0] = PatternAt(static_cast<size_t>(i));
      BOBBIN_RETURN_IF_ERROR(pair.right.WriteAll(byte));
    }
    return absl::OkStatus();
  });
  return group.Wait();
}

absl::Status ManyPingPongs(int pairs, int rounds) {
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < pairs; ++i) {
    group.Spawn([rounds] {
      Pair pair = MakeLocalPair();
      return PingPong(pair, rounds);
    });
  }
  return group.Wait();
}

// Readers that all wait, then all get something at once.
void WakeAllAtOnce(int readers) {
  std::vector<Pair> pairs;
  for (int i = 0; i < readers; ++i) pairs.push_back(MakeLocalPair());
  std::vector<WaitProbe> probes(pairs.size());
  TaskGroup group({.placement = Placement::kSpread});
  for (size_t i = 0; i < pairs.size(); ++i) {
    group.Spawn([&, i] {
      probes[i].Attach();
      EXPECT_EQ(ReadText(pairs[i].left, 1), "x");
    });
  }
  for (const WaitProbe& probe : probes) probe.AwaitParked();
  for (Pair& pair : pairs) EXPECT_OK(pair.right.WriteAll(Bytes("x")));
  EXPECT_OK(group.Wait());
}

// --- Full queues

BOBBIN_IO_TEST(RingPollerTest, ManyOperationsShareARing) {
  EXPECT_OK(ManyPingPongs(200, Rounds(100)));
  WakeAllAtOnce(500);
  // Nothing was scarce, so nothing is counted.
  EXPECT_EQ(runtime().Statistics().poller, PollerStatistics{});
}

BOBBIN_IO_TEST_WITH(RingPollerTest, AFullSubmissionQueueLosesNothing, {.submission_entries = 4}) {
  EXPECT_OK(ManyPingPongs(kUnderSanitizer ? 100 : 500, Rounds(20)));
  EXPECT_GT(runtime().Statistics().poller.early_submits, 0);
}

BOBBIN_IO_TEST_WITH(RingPollerTest, AnOverflowingCompletionQueueLosesNothing,
                    {.submission_entries = 4, .completion_entries = 16}) {
  EXPECT_OK(ManyPingPongs(kUnderSanitizer ? 100 : 500, Rounds(20)));
  WakeAllAtOnce(kUnderSanitizer ? 200 : 1000);
  EXPECT_GT(runtime().Statistics().poller.overflows, 0);
  EXPECT_THAT(runtime().Statistics().Text(), testing::ContainsRegex("scarce: .* overflows"));
}

BOBBIN_IO_TEST_WITH(RingPollerTest, AnOverflowDoesNotDeafenAListener,
                    {.submission_entries = 4, .completion_entries = 16}) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  const int connections = 300;
  VirtualThread server = Spawn([&]() -> absl::Status {
    for (int i = 0; i < connections; ++i) BOBBIN_RETURN_IF_ERROR(listener->Accept().status());
    return absl::OkStatus();
  });
  TaskGroup clients({.placement = Placement::kSpread});
  for (int i = 0; i < connections; ++i) {
    clients.Spawn([&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(io::TcpStream stream,
                              io::TcpStream::Connect(listener->local_address()));
      std::array<std::byte, 1> buffer;
      return stream.Read(buffer).status();
    });
  }
  EXPECT_OK(clients.Wait());
  EXPECT_OK(server.Join());
}

BOBBIN_IO_TEST_WITH(RingPollerTest, CancelsFindRoomInAFullQueue,
                    {.submission_entries = 4, .completion_entries = 16}) {
  for (int round = 0; round < Rounds(10); ++round) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 100; ++i) pairs.push_back(MakeLocalPair());
    TaskGroup group({.on_failure = OnFailure::kLog, .placement = Placement::kSpread});
    std::atomic<int> expired{0};
    for (Pair& pair : pairs) {
      group.Spawn([&] {
        DeadlineScope scope(milliseconds(2));
        std::array<std::byte, 1> buffer;
        if (absl::IsDeadlineExceeded(pair.left.Read(buffer).status())) ++expired;
      });
    }
    EXPECT_OK(group.Wait());
    EXPECT_EQ(expired, 100);
  }
}

// --- Waking

// A carrier that sleeps for long must notice work from elsewhere at once.
void WakeFromOutside(Runtime& runtime, int rounds) {
  VirtualThread sleeper = runtime.Spawn([] { return SleepFor(seconds(3600)); });
  for (int i = 0; i < rounds; ++i) {
    const MonotonicTime begun = MonotonicNow();
    EXPECT_OK(runtime
                  .Spawn({.placement = Placement::kSpread},
                         [] { return SleepFor(std::chrono::microseconds(500)); })
                  .Join());
    EXPECT_LT(MonotonicNow() - begun, seconds(2));
  }
  sleeper.Cancel();
  EXPECT_THAT(sleeper.Join(), StatusIs(kCancelled));
}

BOBBIN_IO_FOREIGN_TEST(RingPollerTest, AMessageWakesASleepingCarrier) {
  WakeFromOutside(runtime(), Rounds(2000));
}

TEST(RingPollerTest, ADoorbellWakesASleepingCarrier) {
  for (const int carriers : {1, 2, 4}) {
    WithRuntime({.carriers = carriers, .poller = io::UringPoller({.forces_eventfd_wake = true})},
                [](Runtime& runtime) { WakeFromOutside(runtime, Rounds(2000)); });
  }
}

BOBBIN_IO_TEST_WITH(RingPollerTest, TheDoorbellRingsWhileQueuesOverflow,
                    {.submission_entries = 4,
                     .completion_entries = 16,
                     .forces_eventfd_wake = true}) {
  EXPECT_OK(ManyPingPongs(100, Rounds(50)));
}

BOBBIN_IO_TEST(RingPollerTest, VirtualThreadsOnTwoCarriersWakeEachOther) {
  Pair pair = MakeLocalPair();
  EXPECT_OK(PingPong(pair, Rounds(5000)));
}

BOBBIN_IO_FOREIGN_TEST(RingPollerTest, IdleCarriersUseNoCpu) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  VirtualThread server = runtime().Spawn([&] { return listener->Accept().status(); });
  std::this_thread::sleep_for(milliseconds(50));
  const uint64_t turns = runtime().Statistics().turns;
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LT(runtime().Statistics().turns - turns, 20u);
  listener->Close();
  EXPECT_THAT(server.Join(), StatusIs(kAborted));
}

// How many threads of the whole machine the kernel counts as waiting for a disk.
int BlockedOnDisk() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    int count = 0;
    if (word == "procs_blocked" && file >> count) return count;
  }
  return 0;
}

// An idle server must not look like one that waits for its disk.
TEST(RingPollerTest, IdleCarriersAreIdleAndNotInIowait) {
  io_uring ring{};
  ASSERT_EQ(io_uring_queue_init(4, &ring, 0), 0);
  const bool is_told_apart = (ring.features & io::internal::kFeatureNoIowait) != 0;
  io_uring_queue_exit(&ring);
  if (!is_told_apart) GTEST_SKIP() << "before Linux 6.15 whoever waits in a ring is in iowait";
  // More than ever wait for a disk at once, elsewhere.
  constexpr int kCarriers = 100;
  WithRuntime({.carriers = kCarriers,
               .poller = io::UringPoller({.submission_entries = 4, .completion_entries = 16})},
              [](Runtime& runtime) {
                // With an operation in the ring: a ring without any is never in iowait.
                std::vector<Pair> pairs(kCarriers);
                std::vector<VirtualThread> readers;
                for (Pair& pair : pairs) {
                  pair = MakeLocalPair();
                  readers.push_back(runtime.Spawn({.placement = Placement::kSpread}, [&pair] {
                    std::array<std::byte, 1> byte;
                    return pair.left.Read(byte).status();
                  }));
                }
                AwaitTrue([&] { return runtime.Statistics().in_flight >= kCarriers; });
                // For longer than they would all be awake at once.
                for (int looks = 0; looks < 100; ++looks) {
                  if (BlockedOnDisk() >= kCarriers / 2) looks = 0;
                  std::this_thread::sleep_for(milliseconds(1));
                }
                for (VirtualThread& reader : readers) reader.Cancel();
                for (VirtualThread& reader : readers) {
                  EXPECT_THAT(reader.Join(), StatusIs(kCancelled));
                }
              });
}

// --- Busy carriers

// Completions appear only when the carrier enters its ring: it must do so also when it is never
// idle.
BOBBIN_IO_FOREIGN_TEST(RingPollerTest, CompletionsAreSeenWhileOthersNeverStop) {
  std::atomic<bool> is_done{false};
  std::vector<VirtualThread> busy;
  for (int i = 0; i < 8; ++i) {
    busy.push_back(runtime().Spawn({.placement = Placement::kSpread}, [&] {
      while (!is_done) Yield();
    }));
  }
  Pair pair = MakeLocalPair();
  VirtualThread echo = runtime().Spawn({.placement = Placement::kSpread}, [&]() -> absl::Status {
    std::array<std::byte, 1> byte;
    while (true) {
      BOBBIN_ASSIGN_OR_RETURN(const size_t received, pair.right.Read(byte));
      if (received == 0) return absl::OkStatus();
      BOBBIN_RETURN_IF_ERROR(pair.right.WriteAll(byte));
    }
  });
  DeadlineScope scope(seconds(10));
  for (int i = 0; i < Rounds(200); ++i) {
    ASSERT_OK(pair.left.WriteAll(Bytes("x")));
    ASSERT_EQ(ReadText(pair.left, 1), "x");
  }
  pair.left.Close();
  EXPECT_OK(echo.Join());
  is_done = true;
  for (VirtualThread& thread : busy) EXPECT_OK(thread.Join());
}

// --- Signals

std::atomic<int> signals_seen{0};
void CountSignal(int) { ++signals_seen; }

BOBBIN_IO_TEST(RingPollerTest, AStormOfSignalsDisturbsNothing) {
  struct sigaction action {};
  action.sa_handler = CountSignal;  // Without SA_RESTART: system calls return EINTR.
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  std::atomic<bool> is_done{false};
  OsThreads threads;
  threads.Start([&] {
    while (!is_done) {
      for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        syscall(SYS_tgkill, getpid(), std::stoi(entry.path().filename()), SIGUSR1);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  const MonotonicTime end = MonotonicNow() + milliseconds(700);
  while (MonotonicNow() < end) {
    EXPECT_OK(ManyPingPongs(10, 50));
    Pair pair = MakePair();
    DeadlineScope scope(milliseconds(3));
    std::array<std::byte, 1> buffer;
    EXPECT_THAT(pair.left.Read(buffer), StatusIs(kDeadlineExceeded));
  }
  is_done = true;
  threads.Join();
  EXPECT_GT(signals_seen, 0);
  std::signal(SIGUSR1, SIG_IGN);  // One may be pending, and would end the process.
}

// --- The kernel's own threads

BOBBIN_IO_TEST(RingPollerTest, NoOperationIsEverHandedToAKernelThread) {
  // Drip-fed reads and dribbling writes are what makes the kernel give up waiting in the ring.
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 20; ++i) {
    group.Spawn([&]() -> absl::Status {
      Pair pair = MakeLocalPair(4096);
      const std::string text(size_t{200'000}, 'd');
      VirtualThread writer = Spawn([&]() -> absl::Status {
        for (int drip = 0; drip < 300; ++drip) {
          BOBBIN_RETURN_IF_ERROR(pair.left.WriteAll(Bytes("d")));
          Yield();
        }
        return pair.left.WriteAll(Bytes(text));
      });
      std::vector<std::byte> buffer(300);
      BOBBIN_RETURN_IF_ERROR(pair.right.ReadExact(buffer));
      for (size_t have = 0; have < text.size();) {
        BOBBIN_ASSIGN_OR_RETURN(const size_t received,
                                pair.right.Read(std::span(buffer).first(100)));
        have += received;
        Yield();
      }
      return writer.Join();
    });
  }
  WaitProbe probe;
  Pair idle = MakePair();
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    std::array<std::byte, 1> buffer;
    EXPECT_THAT(idle.left.Read(buffer), IsOkAndHolds(0u));
  });
  EXPECT_OK(group.Wait());
  for (const std::string& name : OsThreadNames()) {
    EXPECT_FALSE(name.starts_with("iou-wrk")) << name;
  }
  idle.right.Close();
  EXPECT_OK(reader.Join());
}

// --- Shutdown

void ShutDownWithParked(int pairs, io::UringOptions options) {
  const size_t readers = static_cast<size_t>(pairs) * 2;
  std::vector<Pair> streams;
  for (int i = 0; i < pairs; ++i) streams.push_back(MakeLocalPair());
  std::atomic<size_t> cancelled{0};
  for (const int carriers : {1, 2, 4}) {
    cancelled = 0;
    Runtime runtime({.carriers = carriers, .poller = io::UringPoller(options)});
    io::TcpListener listener = *io::TcpListener::Bind("127.0.0.1:0");
    runtime.Spawn([&] { return listener.Accept().status(); }).Detach();
    for (Pair& pair : streams) {
      for (io::TcpStream* const end : {&pair.left, &pair.right}) {
        runtime
            .Spawn({.placement = Placement::kSpread},
                   [&cancelled, end] {
                     std::array<std::byte, 16> buffer;
                     if (absl::IsCancelled(end->Read(buffer).status())) ++cancelled;
                   })
            .Detach();
      }
    }
    AwaitTrue([&] { return runtime.Statistics().started == readers + 1; });
    EXPECT_OK(runtime.Shutdown());
    EXPECT_EQ(cancelled, readers);
    EXPECT_EQ(runtime.Statistics().in_flight, 0u);
  }
}

TEST(RingPollerTest, ShutdownEndsTenThousandParkedReaders) {
  ShutDownWithParked(kUnderSanitizer ? 300 : 5000, {});
}

TEST(RingPollerTest, ShutdownEndsParkedReadersWithTinyQueuesAndADoorbell) {
  ShutDownWithParked(
      200, {.submission_entries = 4, .completion_entries = 16, .forces_eventfd_wake = true});
}

TEST(RingPollerTest, RuntimesComeAndGo) {
  for (int round = 0; round < 20; ++round) {
    WithRuntime({.carriers = 2, .poller = io::UringPoller()}, [](Runtime& runtime) {
      EXPECT_EQ(runtime.poller_name(), "io_uring");
      EXPECT_OK(runtime.Spawn([] { return ManyPingPongs(4, 10); }).Join());
    });
  }
}

// --- Systems without it

// From now on, in this process, io_uring_setup fails with `error` if it is asked for more than
// `entries_max` entries.
void RefuseUring(int error, uint32_t entries_max) {
  const auto statement = [](int code, uint32_t value) {
    return sock_filter{static_cast<uint16_t>(code), 0, 0, value};
  };
  const auto jump = [](int code, uint32_t value, int if_true, int if_false) {
    return sock_filter{static_cast<uint16_t>(code), static_cast<uint8_t>(if_true),
                       static_cast<uint8_t>(if_false), value};
  };
  sock_filter filter[] = {
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 3),
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      jump(BPF_JMP | BPF_JGT | BPF_K, entries_max, 0, 1),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::fprintf(stderr, "no seccomp filter\n");
    std::exit(2);
  }
}

// Prints what the probe and a runtime say under such a filter, and exits.
[[noreturn]] void TryUnderFilter(int error, uint32_t entries_max) {
  RefuseUring(error, entries_max);
  const absl::Status probe = io::ProbeUring();
  const auto runtime = Runtime::Create({.carriers = 2, .poller = io::UringPoller()});
  std::fprintf(stderr, "probe %s\nruntime %s\n", probe.ToString().c_str(),
               runtime.status().ToString().c_str());
  if (runtime.ok()) {
    const absl::Status served = (*runtime)->Spawn([] { return ManyPingPongs(50, 20); }).Join();
    std::fprintf(stderr, "served %s, %llu small queues\n", served.ToString().c_str(),
                 static_cast<unsigned long long>((*runtime)->Statistics().poller.small_queues));
  }
  std::exit(0);
}

class UringRefusedDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST(UringProbeTest, ThisKernelHasIt) { EXPECT_OK(io::ProbeUring()); }

TEST_F(UringRefusedDeathTest, ARefusalNamesSeccompAndTheSetting) {
  for (const int error : {EPERM, EACCES}) {
    EXPECT_EXIT(TryUnderFilter(error, 0), testing::ExitedWithCode(0),
                "probe PERMISSION_DENIED: io_uring: refused.*seccomp.*kernel.io_uring_disabled"
                ".*\nruntime PERMISSION_DENIED");
  }
}

TEST_F(UringRefusedDeathTest, AMissingSystemCallIsUnimplemented) {
  EXPECT_EXIT(TryUnderFilter(ENOSYS, 0), testing::ExitedWithCode(0),
              "probe UNIMPLEMENTED: io_uring: this kernel has none, or a seccomp filter hides it");
}

TEST_F(UringRefusedDeathTest, UnknownFlagsMeanThatTheKernelIsTooOld) {
  EXPECT_EXIT(TryUnderFilter(EINVAL, 0), testing::ExitedWithCode(0),
              "probe UNIMPLEMENTED: io_uring: this kernel is too old; 6.1 is needed");
}

TEST_F(UringRefusedDeathTest, LackOfDescriptorsAndMemoryNamesTheLimit) {
  EXPECT_EXIT(TryUnderFilter(EMFILE, 0), testing::ExitedWithCode(0),
              "probe RESOURCE_EXHAUSTED: .*RLIMIT_NOFILE");
  EXPECT_EXIT(TryUnderFilter(ENOMEM, 0), testing::ExitedWithCode(0),
              "probe RESOURCE_EXHAUSTED: .*RLIMIT_MEMLOCK");
}

TEST_F(UringRefusedDeathTest, WithLittleMemoryARingIsSmallAndWorks) {
  EXPECT_EXIT(TryUnderFilter(ENOMEM, 8), testing::ExitedWithCode(0),
              "probe OK\nruntime OK\nserved OK, 2 small queues");
}

}  // namespace
}  // namespace bobbin::test
