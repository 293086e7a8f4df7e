// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/dump.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

// These tests lock and unlock as no program should: the compiler's analysis has nothing to say
// here.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {

// With names that a symbol table has, whatever the optimiser does.
[[gnu::noinline]] absl::Status AwaitTheBell(Event& event) {
  absl::Status status = event.Wait();
  __asm__ __volatile__("" : : : "memory");  // No tail call.
  return status;
}
[[gnu::noinline]] absl::Status AwaitTheTurn(Mutex& mutex) {
  const MutexLock lock(mutex);
  return absl::OkStatus();
}
[[gnu::noinline]] absl::Status AwaitTheMorning() {
  absl::Status status = SleepFor(std::chrono::hours(1));
  __asm__ __volatile__("" : : : "memory");
  return status;
}
[[gnu::noinline]] void HogTheCarrier(const std::atomic<bool>& is_over) {
  while (!is_over.load()) static_cast<void>(usleep(10));
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// Waits until so many of the calling thread's runtime's threads wait for `kind`; dumps say so.
std::string AwaitWaiting(Runtime& runtime, int count, std::string_view kind) {
  std::string text;
  AwaitTrue([&] {
    text = runtime.Dump();
    return text.find("\n" + std::to_string(count) + " waiting: " + std::string(kind) + "\n") !=
           text.npos;
  });
  return text;
}

BOBBIN_TEST(DumpTest, EachThreadIsNamedWithWhatItWaitsForAndWhere) {
  Event bell;
  Mutex turn;
  turn.lock();
  TaskGroup group({.placement = Placement::kSpread});
  ThreadProbe probes[6];
  for (int i = 0; i < 2; ++i) {
    group.Spawn({.name = "listener"}, [&, i] {
      probes[i].Attach();
      return AwaitTheBell(bell);
    });
    group.Spawn({.name = "writer"}, [&, i] {
      probes[2 + i].Attach();
      return AwaitTheTurn(turn);
    });
    group.Spawn({.name = "sleeper"}, [&, i] {
      probes[4 + i].Attach();
      return AwaitTheMorning();
    });
  }
  for (const ThreadProbe& probe : probes) probe.AwaitParked();

  const std::string id = std::to_string(this_vthread::Id());
  const std::string text = Dump();
  EXPECT_THAT(text, HasSubstr("virtual threads: 7 (0 not started, 0 running, 0 ready, 7 waiting)"));
  EXPECT_THAT(text, ContainsRegex("\n2 waiting: event\n"
                                  "  #[0-9]+ \"listener\" from #" +
                                  id +
                                  ", carrier [0-9], event 0x[0-9a-f]+, for [0-9.]+ s, stack "
                                  "[0-9]+ B, [0-9]+ KiB touched\n"
                                  "  #[0-9]+ \"listener\"[^\n]*\n"
                                  "    0x[0-9a-f]+ bobbin::Event::WaitSlow"));
  EXPECT_THAT(text, HasSubstr(" bobbin::test::AwaitTheBell()\n"));
  EXPECT_THAT(text,
              ContainsRegex("\"writer\"[^\n]* mutex 0x[0-9a-f]+ held by #" + id + " \"test\""));
  EXPECT_THAT(text, HasSubstr(" bobbin::test::AwaitTheTurn()\n"));
  EXPECT_THAT(text,
              ContainsRegex("\"sleeper\"[^\n]*, sleep, for [0-9.]+ s, 3[0-9]+\\.[0-9]+ s left"));
  EXPECT_THAT(text, HasSubstr(" bobbin::test::AwaitTheMorning()\n"));
  EXPECT_THAT(text, Not(HasSubstr("wait for each other")));
  turn.unlock();
  group.Cancel();
}

BOBBIN_TEST(DumpTest, ChannelsJoinsAndGroupsSayWhatIsAwaited) {
  const ChannelEnds<int> ends = MakeChannel<int>({.capacity = 0});
  Event never;
  TaskGroup group({.placement = Placement::kSpread});
  ThreadProbe receiving;
  ThreadProbe joining;
  group.Spawn([&]() -> absl::Status {
    receiving.Attach();
    return ends.receiver.Receive().status();
  });
  VirtualThread awaited = Spawn({.name = "awaited"}, [&] { return never.Wait(); });
  group.Spawn([&] {
    joining.Attach();
    return awaited.Join();
  });
  receiving.AwaitParked();
  joining.AwaitParked();
  const std::string text = Dump();
  EXPECT_THAT(text, HasSubstr("\n1 waiting: channel receive\n"));
  EXPECT_THAT(text, ContainsRegex(", join of #" + std::to_string(awaited.Id()) + " \"awaited\""));
  never.Set();
  group.Cancel();
  static_cast<void>(group.Wait());
}

BOBBIN_TEST(DumpTest, ThreadsThatWaitForEachOtherAreNamed) {
  Mutex first;
  Mutex second;
  Event go;
  WaitGroup both;
  both.Add(2);
  TaskGroup group({.placement = Placement::kSpread});
  auto cross = [&](Mutex& mine, Mutex& others) {
    return [&]() -> absl::Status {
      const MutexLock lock(mine);
      both.Done();
      BOBBIN_RETURN_IF_ERROR(go.Wait());
      BOBBIN_RETURN_IF_ERROR(others.LockUntil(Deadline::After(std::chrono::hours(1))));
      others.unlock();
      return absl::OkStatus();
    };
  };
  group.Spawn({.name = "left"}, cross(first, second));
  group.Spawn({.name = "right"}, cross(second, first));
  ASSERT_OK(both.Wait());
  go.Set();
  std::string text;
  AwaitTrue([&] {
    text = Dump();
    return text.find("wait for each other") != text.npos;
  });
  EXPECT_THAT(text, ContainsRegex("\n2 wait for each other:\n"
                                  "  #[0-9]+ \"(left|right)\", mutex 0x[0-9a-f]+ held by #[0-9]+ "
                                  "\"(left|right)\"[^\n]*\n"
                                  "  #[0-9]+ \"(left|right)\", mutex"));
  EXPECT_THAT(Dump({.format = DumpFormat::kJson}), HasSubstr("\"cycles\":[[{\"role\":\"virtual\""));
  group.Cancel();
  static_cast<void>(group.Wait());
}

TEST(DumpTest, AThreadThatHogsItsCarrierIsShownWithItsStack) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    std::atomic<bool> is_over{false};
    std::atomic<bool> has_begun{false};
    Event bell;
    VirtualThread parked = runtime.Spawn({.name = "parked"}, [&] { return bell.Wait(); });
    static_cast<void>(AwaitWaiting(runtime, 1, "event"));
    VirtualThread hog = runtime.Spawn({.name = "hog"}, [&] {
      has_begun = true;
      HogTheCarrier(is_over);
    });
    while (!has_begun) static_cast<void>(usleep(100));
    VirtualThread fresh = runtime.Spawn({.name = "not begun"}, [] {});
    // A signal may take its time to come through.
    std::string text;
    AwaitTrue([&] {
      text = runtime.Dump({.budget = milliseconds(50)});
      return text.find("HogTheCarrier") != text.npos;
    });
    EXPECT_THAT(text, HasSubstr("does not come round, runs #" + std::to_string(hog.Id())));
    EXPECT_THAT(text, ContainsRegex("\n1 running\n  #[0-9]+ \"hog\""));
    EXPECT_THAT(text, HasSubstr(" bobbin::test::HogTheCarrier()\n"));
    EXPECT_THAT(text, ContainsRegex("\n1 waiting: event\n  #[0-9]+ \"parked\", carrier 0, event"));
    EXPECT_THAT(text, ContainsRegex("\n1 not started\n  #[0-9]+ \"not begun\""));
    is_over = true;
    bell.Set();
    EXPECT_OK(hog.Join());
    EXPECT_OK(parked.Join());
    EXPECT_OK(fresh.Join());
  });
}

// The patient cannot help: every carrier is held, and there is no descriptor to open anything with.
TEST(DumpTest, ItComesWhereNothingElseGoesOn) {
  WithRuntime({.carriers = 2}, [](Runtime& runtime) {
    std::atomic<bool> is_over{false};
    std::atomic<int> held{0};
    std::vector<VirtualThread> hogs;
    for (int i = 0; i < 2; ++i) {
      hogs.push_back(runtime.Spawn({.name = "hog", .placement = Placement::kSpread}, [&] {
        ++held;
        while (held < 2) usleep(10);
        HogTheCarrier(is_over);
      }));
    }
    AwaitTrue([&] { return held == 2; });
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_EQ(dup(STDERR_FILENO), -1);
    std::string text;
    AwaitTrue([&] {
      text = runtime.Dump({.budget = milliseconds(50)});
      return CountOf(text, "does not come round, runs #") == 2;
    });
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_THAT(text, HasSubstr("\n2 running\n"));
    EXPECT_EQ(CountOf(text, "\"hog\""), 2);
    is_over = true;
    for (VirtualThread& hog : hogs) EXPECT_OK(hog.Join());
  });
}

BOBBIN_TEST(DumpTest, ForeignAndPlatformThreadsAreListed) {
  Event bell;
  OsThreads threads;
  std::atomic<bool> is_over{false};
  threads.Start([&] { EXPECT_OK(bell.Wait()); });
  VirtualThread caller = Spawn([&] { return RunBlocking([&] { HogTheCarrier(is_over); }); });
  std::string text;
  AwaitTrue([&] {
    text = Dump({.os_thread_stacks = OsThreadStacks::kPlatform});
    return text.find("HogTheCarrier") != text.npos && text.find("waiting: event") != text.npos &&
           text.find("waiting: blocking call") != text.npos;
  });
  EXPECT_THAT(text, ContainsRegex("\n1 waiting: event\n  foreign thread, OS thread [0-9]+, event "
                                  "0x[0-9a-f]+, for [0-9.]+ s\n"));
  EXPECT_THAT(text, ContainsRegex("platform thread \"blocking-[0-9]+\", OS thread"));
  EXPECT_THAT(text, HasSubstr(" bobbin::test::HogTheCarrier()\n"));
  EXPECT_THAT(text, HasSubstr("\n1 waiting: blocking call\n"));
  is_over = true;
  bell.Set();
  EXPECT_OK(caller.Join());
  threads.Join();
}

BOBBIN_TEST(DumpTest, ALongListIsCutWhereItIsTold) {
  Event bell;
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 50; ++i) {
    group.Spawn({.name = "listener"}, [&] { return AwaitTheBell(bell); });
  }
  EXPECT_EQ(CountOf(AwaitWaiting(runtime(), 50, "event"), "\"listener\""), 50);
  const std::string text = Dump({.listed_max = 3});
  EXPECT_EQ(CountOf(text, "\"listener\""), 3);
  EXPECT_THAT(text, HasSubstr("  and 47 more\n"));
  group.Cancel();
}

BOBBIN_TEST(DumpTest, JsonHasAnEntryForEachThread) {
  Event bell;
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 20; ++i) {
    group.Spawn({.name = "odd \"\\\n\x01\xff name"}, [&] { return AwaitTheBell(bell); });
  }
  static_cast<void>(AwaitWaiting(runtime(), 20, "event"));
  const std::string text = Dump({.format = DumpFormat::kJson});
  EXPECT_EQ(CountOf(text, "\"name\":\"odd \\\"\\\\\\u000a\\u0001\\u00ff name\""), 20);
  EXPECT_EQ(CountOf(text, "\"wait\":{\"kind\":\"event\",\"object\":\"0x"), 20);
  EXPECT_THAT(text, HasSubstr("\"function\":\"bobbin::test::AwaitTheBell()\""));
  EXPECT_EQ(CountOf(text, "\n"), 0);
  group.Cancel();
}

// Threads come, wait, and go on every side while dumps are made on every side.
BOBBIN_TEST(DumpTest, ManyAtOnceMeetThreadsThatComeAndGo) {
  std::atomic<bool> is_over{false};
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) {
    group.Spawn({.name = "parent"}, [&]() -> absl::Status {
      Mutex mutex;
      while (!is_over) {
        TaskGroup children({.placement = Placement::kSpread});
        for (int child = 0; child < 20; ++child) {
          children.Spawn({.name = "child with a name that is long"}, [&] {
            const MutexLock lock(mutex);
            Yield();
          });
        }
        BOBBIN_RETURN_IF_ERROR(children.Wait());
      }
      return absl::OkStatus();
    });
  }
  std::atomic<int> dumps{0};
  TaskGroup dumpers({.placement = Placement::kSpread});
  for (int i = 0; i < 3; ++i) {
    dumpers.Spawn([&, i] {
      for (int round = 0; round < Rounds(60); ++round) {
        const std::string text =
            Dump({.format = i == 0 ? DumpFormat::kJson : DumpFormat::kText, .listed_max = 2});
        EXPECT_THAT(text, HasSubstr("parent"));
        ++dumps;
      }
    });
  }
  EXPECT_OK(dumpers.Wait());
  is_over = true;
  EXPECT_OK(group.Wait());
  EXPECT_EQ(dumps, 3 * Rounds(60));
}

TEST(DumpTest, ARuntimeThatHasEndedSaysSo) {
  Runtime runtime({.carriers = 2});
  EXPECT_OK(runtime.Spawn([] {}).Join());
  EXPECT_OK(runtime.Shutdown());
  EXPECT_THAT(runtime.Dump(), HasSubstr("virtual threads: 0 "));
}

// Carriers that end while they are asked answer all the same.
TEST(DumpTest, RuntimesComeAndGoUnderDumps) {
  std::atomic<bool> is_over{false};
  OsThreads threads;
  threads.Start([&] {
    while (!is_over) static_cast<void>(Dump({.budget = seconds(20)}));
  });
  for (int i = 0; i < Rounds(100); ++i) {
    Runtime runtime({.carriers = 2});
    EXPECT_OK(runtime.Spawn([] { Yield(); }).Join());
    EXPECT_OK(runtime.Shutdown());
  }
  is_over = true;
}

// A thread that ticks keeps on ticking while others are described: between two ticks a carrier does
// one slice, not all of them.
TEST(DumpTest, OthersGoOnWhileManyAreDescribed) {
  constexpr int kThreads = Rounds(100'000);
  if (kUnderThreadSanitizer) GTEST_SKIP() << "the sanitizer maps memory for every thread";
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    Event bell;
    WaitGroup parked;
    parked.Add(kThreads);
    std::atomic<bool> is_over{false};
    std::atomic<uint64_t> ticks{0};
    VirtualThread main = runtime.Spawn([&] {
      TaskGroup group;
      for (int i = 0; i < kThreads; ++i) {
        group.Spawn([&] {
          parked.Done();
          return AwaitTheBell(bell);
        });
      }
      return group.Wait();
    });
    ASSERT_OK(parked.Wait());
    VirtualThread ticker = runtime.Spawn([&] {
      while (!is_over) {
        ++ticks;
        Yield();
      }
    });
    const uint64_t before = ticks;
    const std::string text = runtime.Dump({.budget = seconds(60), .listed_max = 1});
    const uint64_t meanwhile = ticks - before;
    EXPECT_THAT(text, HasSubstr("\n" + std::to_string(kThreads) + " waiting: event\n"));
    EXPECT_THAT(text, HasSubstr(" bobbin::test::AwaitTheBell()\n"));
    // A hundred microseconds for each slice, and a turn between two: dozens of threads to a tick.
    EXPECT_GT(meanwhile, kThreads / 100);
    is_over = true;
    EXPECT_OK(ticker.Join());
    bell.Set();
    EXPECT_OK(main.Join());
  });
}

TEST(DumpDeathTest, AFailedCheckPrintsEveryThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 2});
        Event bell;
        VirtualThread listener =
            runtime.Spawn({.name = "listener"}, [&] { return AwaitTheBell(bell); });
        static_cast<void>(AwaitWaiting(runtime, 1, "event"));
        static_cast<void>(runtime
                              .Spawn({.name = "culprit"},
                                     [&] {
                                       const NoSuspendScope no_suspend;
                                       static_cast<void>(AwaitTheBell(bell));
                                     })
                              .Join());
      },
      AllOf(ContainsRegex("a wait inside a NoSuspendScope.*virtual thread \"culprit\""),
            ContainsRegex("on this stack:\n(  .*\n)*  0x[0-9a-f]+ bobbin::test::AwaitTheBell"),
            ContainsRegex("1 waiting: event\n  #[0-9]+ \"listener\""),
            ContainsRegex("1 running\n  #[0-9]+ \"culprit\"")));
}

TEST(DumpDeathTest, ASignalWritesADump) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        DumpOnSignal(SIGQUIT);
        Runtime runtime({.carriers = 2});
        Event bell;
        VirtualThread listener =
            runtime.Spawn({.name = "listener"}, [&] { return AwaitTheBell(bell); });
        static_cast<void>(AwaitWaiting(runtime, 1, "event"));
        // Its own standard error, to see when it is done.
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        const int error = dup(STDERR_FILENO);
        dup2(ends[1], STDERR_FILENO);
        EXPECT_EQ(raise(SIGQUIT), 0);
        std::string text;
        while (text.find("taken in") == text.npos) {
          char piece[4096];
          const ssize_t got = read(ends[0], piece, sizeof(piece));
          if (got > 0) text.append(piece, static_cast<size_t>(got));
        }
        dup2(error, STDERR_FILENO);
        std::fputs(text.c_str(), stderr);
        bell.Set();
        EXPECT_OK(listener.Join());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "1 waiting: event\n  #[0-9]+ \"listener\"");
}

}  // namespace
}  // namespace bobbin::test
