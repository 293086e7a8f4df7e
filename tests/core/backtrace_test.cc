// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"

// These tests lock and unlock as no program should: the compiler's analysis has nothing to say
// here.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {

// With names that a symbol table has, whatever the optimiser does.
[[gnu::noinline]] absl::Status WaitForTheEvent(Event& event) {
  absl::Status status = event.Wait();
  __asm__ __volatile__("" : : : "memory");  // No tail call.
  return status;
}
[[gnu::noinline]] absl::Status WaitForTheMutex(Mutex& mutex) {
  const MutexLock lock(mutex);
  return absl::OkStatus();
}
[[gnu::noinline]] absl::Status WaitForTheClock() {
  absl::Status status = SleepFor(std::chrono::hours(1));
  __asm__ __volatile__("" : : : "memory");
  return status;
}
[[gnu::noinline]] absl::Status WaitDeepDown(int depth, Event& event) {
  if (depth == 0) return WaitForTheEvent(event);
  absl::Status status = WaitDeepDown(depth - 1, event);
  __asm__ __volatile__("" : : : "memory");
  return status;
}
[[gnu::noinline]] internal::Backtrace HereAndNow() { return internal::Backtrace::OfCaller(); }

namespace {

using internal::Backtrace;

std::vector<std::string> NamesOf(const Backtrace& backtrace) {
  std::vector<std::string> names;
  for (const void* const frame : backtrace.frames()) names.push_back(internal::FrameName(frame));
  return names;
}

// Every virtual thread's stack begins so.
void ExpectEndsAtTheFirstFrame(const Backtrace& backtrace) {
  const std::vector<std::string> names = NamesOf(backtrace);
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "bobbin::internal::SwitchEntry::Enter()");
  EXPECT_FALSE(backtrace.is_cut());
}

// Which of the last page's neighbours a stack has in memory.
std::vector<unsigned char> ResidentPagesOf(const internal::Task& task) {
  const internal::StackPool& pool = task.dispatcher()->stacks().pool();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(pool.stack_bytes() / page);
  EXPECT_EQ(mincore(task.stack().base, pool.stack_bytes(), pages.data()), 0);
  return pages;
}

// Parks `body` on the caller's carrier and calls `look` with the thread that is parked.
template <typename Body, typename Look>
void ParkAndLook(Body body, Look look) {
  internal::Thread* parked = nullptr;
  TaskGroup group;
  group.Spawn([&] {
    parked = &internal::Current();
    return body();
  });
  // On one carrier nobody else runs meanwhile.
  while (parked == nullptr || parked->state().phase() == internal::Phase::kRunning) Yield();
  look(static_cast<const internal::Task&>(*parked));
  group.Cancel();
}

TEST(BacktraceTest, TheCallersOwnBeginsWithTheCaller) {
  const std::vector<std::string> names = NamesOf(HereAndNow());
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "bobbin::test::HereAndNow()");
}

BOBBIN_TEST(BacktraceTest, AVirtualThreadsOwnEndsAtItsFirstFrame) {
  ExpectEndsAtTheFirstFrame(HereAndNow());
}

TEST(BacktraceTest, AParkedThreadsNamesTheFunctionsThatWait) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    VirtualThread main = runtime.Spawn([] {
      Event event;
      Mutex mutex;
      mutex.lock();
      auto expect = [](const char* function) {
        return [function](const internal::Task& parked) {
          const Backtrace backtrace = Backtrace::OfParked(parked.parked_context());
          EXPECT_THAT(NamesOf(backtrace), testing::Contains(function));
          ExpectEndsAtTheFirstFrame(backtrace);
        };
      };
      ParkAndLook([&] { return WaitForTheEvent(event); },
                  expect("bobbin::test::WaitForTheEvent()"));
      ParkAndLook([&] { return WaitForTheClock(); }, expect("bobbin::test::WaitForTheClock()"));
      ParkAndLook([&] { return WaitForTheMutex(mutex); },
                  [&](const internal::Task& parked) {
                    expect("bobbin::test::WaitForTheMutex()")(parked);
                    mutex.unlock();
                  });
    });
    EXPECT_OK(main.Join());
  });
}

TEST(BacktraceTest, ADeepStackLosesItsFirstCallers) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    VirtualThread main = runtime.Spawn([] {
      Event event;
      ParkAndLook([&] { return WaitDeepDown(100, event); },
                  [](const internal::Task& parked) {
                    const Backtrace backtrace = Backtrace::OfParked(parked.parked_context());
                    EXPECT_TRUE(backtrace.is_cut());
                    EXPECT_EQ(backtrace.frames().size(), Backtrace::kFramesMax);
                    EXPECT_THAT(NamesOf(backtrace),
                                testing::Contains("bobbin::test::WaitForTheEvent()"));
                  });
    });
    EXPECT_OK(main.Join());
  });
}

TEST(BacktraceTest, LookingAtAParkedStackTouchesNoNewPage) {
  WithRuntime({.carriers = 1}, [](Runtime& runtime) {
    VirtualThread main = runtime.Spawn([] {
      Event event;
      ParkAndLook([&] { return WaitForTheEvent(event); },
                  [](const internal::Task& parked) {
                    const std::vector<unsigned char> before = ResidentPagesOf(parked);
                    for (int i = 0; i < 100; ++i) {
                      EXPECT_FALSE(Backtrace::OfParked(parked.parked_context()).empty());
                    }
                    EXPECT_EQ(ResidentPagesOf(parked), before);
                  });
    });
    EXPECT_OK(main.Join());
  });
}

TEST(BacktraceTest, AFrameReadsAsItsAddressAndTheFunctionsName) {
  std::string text;
  internal::AppendFrame(text, HereAndNow().frames().front());
  EXPECT_THAT(text, testing::MatchesRegex("0x[0-9a-f]+ bobbin::test::HereAndNow\\(\\)"));
  EXPECT_EQ(internal::FrameName(nullptr), "");
}

}  // namespace
}  // namespace bobbin::test
