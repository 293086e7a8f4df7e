// SPDX-License-Identifier: Apache-2.0

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/watchdog.h>

#include "tests/support/log.h"
#include "tests/support/os_threads.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

nanoseconds OwnCpuTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// Uses so much CPU time, however long that takes.
[[gnu::noinline]] void ComputeFor(nanoseconds cpu) {
  const nanoseconds end = OwnCpuTime() + cpu;
  while (OwnCpuTime() < end) {
  }
}

// Computes, or blocks, until the watchdog has counted `holds`.
uint64_t HoldsOf(const Runtime& runtime) {
  const RuntimeStatistics now = runtime.Statistics();
  return now.computing_holds + now.blocking_holds;
}
[[gnu::noinline]] void ComputeUntilCounted(const Runtime& runtime, uint64_t holds) {
  while (HoldsOf(runtime) < holds) {
  }
}
[[gnu::noinline]] void BlockUntilCounted(const Runtime& runtime, uint64_t holds) {
  while (HoldsOf(runtime) < holds) usleep(100'000);
}

// A runtime whose reports are collected.
struct Watched {
  explicit Watched(int carriers, nanoseconds limit = milliseconds(20), int per_minute = 10)
      : runtime({.carriers = carriers,
                 .watchdog = {.limit = limit,
                              .reports_per_minute = per_minute,
                              .report = [this](const CarrierHold& hold) { reports.Add(hold); }}}) {}

  Log<CarrierHold> reports;
  Runtime runtime;
};

TEST(WatchdogTest, AThreadThatComputesIsReportedOnce) {
  for (const int carriers : {1, 2}) {
    Watched watched(carriers);
    VirtualThread hog = watched.runtime.Spawn({.name = "hog"}, [&] {
      ComputeUntilCounted(watched.runtime, 1);
      // Still the same one.
      ComputeFor(milliseconds(200));
    });
    EXPECT_OK(hog.Join());
    EXPECT_OK(watched.runtime.Shutdown());
    const std::vector<CarrierHold> reports = watched.reports.Take();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].kind, CarrierHold::Kind::kComputes);
    EXPECT_EQ(reports[0].thread_name, "hog");
    EXPECT_NE(reports[0].thread_id, 0);
    EXPECT_THAT(reports[0].stack, testing::HasSubstr("ComputeUntilCounted"));
    EXPECT_GE(reports[0].held, milliseconds(20));
    EXPECT_EQ(watched.runtime.Statistics().computing_holds, 1);
    EXPECT_EQ(watched.runtime.Statistics().blocking_holds, 0);
  }
}

TEST(WatchdogTest, ACarrierIsToldAsHeldUntilItGoesOn) {
  Watched watched(1);
  const Runtime& runtime = watched.runtime;
  EXPECT_EQ(runtime.Statistics().held_carriers, 0);
  std::vector<HeldCarrier> held;
  VirtualThread hog = watched.runtime.Spawn({.name = "hog"}, [&] {
    ComputeUntilCounted(runtime, 1);
    held = runtime.HeldCarriers();
    EXPECT_EQ(runtime.Statistics().held_carriers, 1);
  });
  EXPECT_OK(hog.Join());
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].carrier, 0);
  EXPECT_GE(held[0].held, milliseconds(20));
  AwaitTrue([&] { return runtime.Statistics().held_carriers == 0; });
  EXPECT_TRUE(runtime.HeldCarriers().empty());
}

TEST(WatchdogTest, AThreadThatBlocksInTheKernelIsReportedOnce) {
  Watched watched(2);
  VirtualThread hog = watched.runtime.Spawn({.name = "sleeper"}, [&] {
    BlockUntilCounted(watched.runtime, 1);
    usleep(200'000);
  });
  EXPECT_OK(hog.Join());
  EXPECT_OK(watched.runtime.Shutdown());
  const std::vector<CarrierHold> reports = watched.reports.Take();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind, CarrierHold::Kind::kBlocks);
  EXPECT_EQ(reports[0].thread_name, "sleeper");
  EXPECT_THAT(reports[0].stack, testing::HasSubstr("BlockUntilCounted"));
  EXPECT_EQ(watched.runtime.Statistics().blocking_holds, 1);
}

// Nothing else runs then: each is reported, with what it is in.
TEST(WatchdogTest, WhereEveryCarrierIsBlockedEachIsReported) {
  constexpr int kCarriers = 3;
  Watched watched(kCarriers);
  std::atomic<int> inside{0};
  std::vector<VirtualThread> hogs;
  for (int i = 0; i < kCarriers; ++i) {
    hogs.push_back(watched.runtime.Spawn({.name = "hog", .placement = Placement::kSpread}, [&] {
      inside.fetch_add(1);
      while (inside.load() < kCarriers) usleep(1000);
      BlockUntilCounted(watched.runtime, kCarriers);
    }));
  }
  for (VirtualThread& hog : hogs) EXPECT_OK(hog.Join());
  EXPECT_OK(watched.runtime.Shutdown());
  std::set<int> carriers;
  for (const CarrierHold& hold : watched.reports.Take()) {
    EXPECT_EQ(hold.kind, CarrierHold::Kind::kBlocks);
    EXPECT_EQ(hold.thread_name, "hog");
    EXPECT_THAT(hold.stack, testing::ContainsRegex("BlockUntilCounted|usleep|nanosleep"));
    carriers.insert(hold.carrier);
  }
  EXPECT_EQ(carriers.size(), size_t{kCarriers});
}

[[gnu::noinline]] void LockTheSystemsMutexUntilCounted(const Runtime& runtime,
                                                       std::timed_mutex& mutex) {
  while (HoldsOf(runtime) < 1) {
    if (mutex.try_lock_for(milliseconds(100))) mutex.unlock();
  }
}

// A thread that waits with an OS mutex locked stops the next one of its carrier that locks it, and
// with it the carrier: the one that stands in the way of all others is named.
TEST(WatchdogTest, WhoBlocksAtAnOsMutexThatAParkedThreadHoldsIsReported) {
  if (kChecksDebug && !kUnderSanitizer) GTEST_SKIP() << "there, the wait itself aborts";
  if (kUnderThreadSanitizer) GTEST_SKIP() << "it delivers no signal to whoever waits for a mutex";
  Watched watched(1);
  std::timed_mutex mutex;
  Event go;
  ThreadProbe probe;
  VirtualThread careless = watched.runtime.Spawn({.name = "careless"}, [&] {
    const std::lock_guard hold(mutex);
    probe.Attach();
    return go.Wait();
  });
  probe.AwaitParked();
  VirtualThread victim = watched.runtime.Spawn(
      {.name = "victim"}, [&] { LockTheSystemsMutexUntilCounted(watched.runtime, mutex); });
  EXPECT_OK(victim.Join());
  go.Set();
  EXPECT_OK(careless.Join());
  EXPECT_OK(watched.runtime.Shutdown());
  const std::vector<CarrierHold> reports = watched.reports.Take();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind, CarrierHold::Kind::kBlocks);
  EXPECT_EQ(reports[0].thread_name, "victim");
  EXPECT_THAT(reports[0].stack, testing::HasSubstr("LockTheSystemsMutexUntilCounted"));
}

TEST(WatchdogTest, EachHoldIsCountedAndOnlySoManyAreReported) {
  constexpr uint64_t kHolds = 20;
  Watched watched(1, milliseconds(4), /*per_minute=*/3);
  VirtualThread hog = watched.runtime.Spawn([&] {
    for (uint64_t i = 1; i <= kHolds; ++i) {
      ComputeUntilCounted(watched.runtime, i);
      Yield();  // The next one is another one.
    }
  });
  EXPECT_OK(hog.Join());
  EXPECT_OK(watched.runtime.Shutdown());
  EXPECT_GE(HoldsOf(watched.runtime), kHolds);
  // A slow machine may have needed more than one minute.
  EXPECT_LT(watched.reports.size(), kHolds);
  EXPECT_GE(watched.reports.size(), 3u);
}

TEST(WatchdogTest, WhoYieldsWhenDueIsNotReportedAndLetsTimersFire) {
  Watched watched(1, seconds(1));
  std::atomic<bool> is_over{false};
  VirtualThread hog = watched.runtime.Spawn([&] {
    while (!is_over.load()) YieldIfDue();
  });
  VirtualThread sleeper = watched.runtime.Spawn([&] {
    for (int i = 0; i < 5; ++i) EXPECT_OK(SleepFor(milliseconds(1)));
    is_over.store(true);
  });
  EXPECT_OK(sleeper.Join());
  EXPECT_OK(hog.Join());
  EXPECT_EQ(HoldsOf(watched.runtime), 0);
}

TEST(WatchdogTest, ALongTurnOfManyIsNobodysHold) {
  Watched watched(1, seconds(1));
  std::atomic<int> left{100};
  for (int i = 0; i < 100; ++i) {
    watched.runtime
        .Spawn([&] {
          for (int step = 0; step < 10; ++step) {
            ComputeFor(milliseconds(1));
            Yield();
          }
          left.fetch_sub(1);
        })
        .Detach();
  }
  EXPECT_OK(watched.runtime.AwaitIdle());
  EXPECT_EQ(left.load(), 0);
  EXPECT_EQ(HoldsOf(watched.runtime), 0);
}

TEST(WatchdogTest, WithoutALimitNobodyIsWatched) {
  Watched watched(2, nanoseconds(0));
  VirtualThread hog = watched.runtime.Spawn([] { ComputeFor(milliseconds(100)); });
  EXPECT_OK(hog.Join());
  EXPECT_EQ(HoldsOf(watched.runtime), 0);
}

// The carrier gets a CPU for a hundredth of the time; what it does meanwhile is short.
TEST(WatchdogTest, WaitingForACpuIsNoHold) {
  Watched watched(1, milliseconds(20));
  std::atomic<bool> is_over{false};
  std::atomic<int> spinning{0};
  OsThreads others;
  nanoseconds longest{0};
  VirtualThread thread = watched.runtime.Spawn([&] {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(sched_getcpu(), &only);
    for (int i = 0; i < 2; ++i) {
      others.Start([&, only] {
        sched_setaffinity(0, sizeof(only), &only);
        spinning.fetch_add(1);
        while (!is_over.load()) {
        }
      });
    }
    while (spinning.load() != 2) Yield();
    sched_setaffinity(0, sizeof(only), &only);
    EXPECT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19), 0);
    // Until it has waited for longer than the limit a few times.
    for (int waits = 0; waits < 3;) {
      const MonotonicTime start = MonotonicNow();
      ComputeFor(milliseconds(1));
      const nanoseconds taken = MonotonicNow() - start;
      longest = std::max(longest, taken);
      if (taken > milliseconds(60)) ++waits;
      Yield();
    }
    is_over.store(true);
  });
  EXPECT_OK(thread.Join());
  others.Join();
  EXPECT_OK(watched.runtime.Shutdown());
  EXPECT_EQ(HoldsOf(watched.runtime), 0) << "the longest wait was " << longest.count() << " ns";
}

// Has the calling process stopped six times, each time for longer than the limit below.
void StopNowAndThen() {
  const pid_t self = getpid();
  if (fork() != 0) return;
  for (int i = 0; i < 6; ++i) {
    kill(self, SIGSTOP);
    usleep(150'000);
    kill(self, SIGCONT);
    usleep(20'000);
  }
  _exit(0);
}

int HoldsOfAStoppedProcess() {
  StopNowAndThen();
  Runtime runtime({.carriers = 1, .watchdog = {.limit = milliseconds(50)}});
  VirtualThread thread = runtime.Spawn([&] {
    // Longer than the stops and the pauses between them.
    for (const MonotonicTime end = MonotonicNow() + milliseconds(1500); MonotonicNow() < end;) {
      ComputeFor(std::chrono::microseconds(500));
      Yield();
    }
  });
  EXPECT_OK(thread.Join());
  return static_cast<int>(std::min<uint64_t>(HoldsOf(runtime), 100));
}

TEST(WatchdogDeathTest, AStoppedProcessReportsNothing) {
  if (kUnderThreadSanitizer) GTEST_SKIP() << "it does not survive the fork";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(_exit(HoldsOfAStoppedProcess()), testing::ExitedWithCode(0), "");
}

TEST(WatchdogTest, AReportGoesToStandardErrorUnlessThereIsAReceiver) {
  testing::internal::CaptureStderr();
  Runtime runtime({.carriers = 1});
  VirtualThread hog = runtime.Spawn({.name = "hog"}, [&] { ComputeUntilCounted(runtime, 1); });
  EXPECT_OK(hog.Join());
  EXPECT_OK(runtime.Shutdown());
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("bobbin: carrier 0 is held for "));
  EXPECT_THAT(text, testing::HasSubstr("virtual thread \"hog\""));
  EXPECT_THAT(text, testing::HasSubstr("which computes"));
  EXPECT_THAT(text, testing::HasSubstr("ComputeUntilCounted"));
}

}  // namespace
}  // namespace bobbin::test
