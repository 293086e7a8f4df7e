// SPDX-License-Identifier: Apache-2.0
//
// What every poller for I/O must do, whichever way it asks the kernel.

#include "io/src/io_poller.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/io/traffic.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

BOBBIN_IO_TEST(IoPollerTest, ManyOperationsShareAPoller) {
  EXPECT_OK(ManyPingPongs(200, Rounds(100)));
  WakeAllAtOnce(500);
  // Nothing was scarce, so nothing is counted.
  EXPECT_EQ(runtime().Statistics().poller, PollerStatistics{});
}

// --- Waking

BOBBIN_IO_FOREIGN_TEST(IoPollerTest, WorkFromElsewhereWakesASleepingCarrier) {
  WakeFromOutside(runtime(), Rounds(2000));
}

BOBBIN_IO_TEST(IoPollerTest, VirtualThreadsOnTwoCarriersWakeEachOther) {
  Pair pair = MakeLocalPair();
  EXPECT_OK(PingPong(pair, Rounds(5000)));
}

BOBBIN_IO_FOREIGN_TEST(IoPollerTest, IdleCarriersUseNoCpu) {
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

// --- Busy carriers

// Completions appear only when the carrier enters its ring: it must do so also when it is never
// idle.
BOBBIN_IO_FOREIGN_TEST(IoPollerTest, CompletionsAreSeenWhileOthersNeverStop) {
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

BOBBIN_IO_TEST(IoPollerTest, AStormOfSignalsDisturbsNothing) {
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

BOBBIN_IO_TEST(IoPollerTest, NoOperationIsEverHandedToAKernelThread) {
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
  ExpectNoKernelThreads();
  idle.right.Close();
  EXPECT_OK(reader.Join());
}

// --- Coming and going

TEST(IoPollerTest, ShutdownEndsTenThousandParkedReaders) {
  for (const Backend backend : Backends()) {
    ShutDownWithParked(kUnderSanitizer ? 300 : 5000, backend);
  }
}

TEST(IoPollerTest, RuntimesComeAndGo) {
  for (const Backend backend : Backends()) {
    for (int round = 0; round < 20; ++round) {
      WithRuntime({.carriers = 2, .poller = MakePollers(backend)}, [](Runtime& runtime) {
        EXPECT_OK(runtime.Spawn([] { return ManyPingPongs(4, 10); }).Join());
      });
    }
  }
}

}  // namespace
}  // namespace bobbin::test
