// SPDX-License-Identifier: Apache-2.0
//
// What takes minutes, in a simulation, whose minutes take no time.

#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>
#include <bobbin/testing/simulate.h>

namespace bobbin::testing {
namespace {

using std::chrono::minutes;

[[gnu::noinline]] void UseStack(size_t bytes) {
  auto* const area = static_cast<char*>(__builtin_alloca(bytes));
  std::memset(area, 1, bytes);
  __asm__ __volatile__("" : : "r"(area) : "memory");
}

// A burst of threads that use much of their stacks; then nothing but a thread that sleeps. Its
// carriers wake now and then to give the pages back, until it is not worth it.
TEST(LongTimeTest, AfterABurstTheMemoryOfItsStacksGoesBack) {
  constexpr size_t kThreads = 1000;
  constexpr size_t kUsed = size_t{32} << 10;
  // What a carrier keeps is not worth a wake; and each stack that was used once has a page or two.
  constexpr size_t kKept = size_t{2} * 64 * 2 * kUsed;
  const auto report = Simulate({.seeds = 4, .carriers = 2, .steps_max = 100'000'000}, [&] {
    Runtime& runtime = bobbin::internal::CurrentRuntime();
    {
      Event all_at_once;
      TaskGroup burst({.placement = Placement::kSpread});
      for (size_t i = 0; i < kThreads; ++i) {
        burst.Spawn([&] {
          UseStack(kUsed);
          return all_at_once.Wait();
        });
      }
      while (runtime.Statistics().parked < kThreads) Yield();
      all_at_once.Set();
      BOBBIN_CHECK(burst.Wait().ok(), "nobody fails");
    }
    BOBBIN_CHECK(runtime.MeasureStacks().resident_bytes >= kThreads * kUsed, "they were used");
    BOBBIN_CHECK(SleepFor(minutes(2)).ok(), "nobody stops the sleep");
    const StackUsage after = runtime.MeasureStacks();
    BOBBIN_CHECK(after.resident_bytes <= kKept, std::to_string(after.resident_bytes >> 10));
  });
  EXPECT_TRUE(report.ok()) << report.failure;
}

// Of stacks that threads have asked for nothing is kept that nobody needs: they may be large.
TEST(LongTimeTest, LargeStacksThatNobodyNeedsAreGivenBack) {
  constexpr size_t kUsed = size_t{2} << 20;
  const auto report = Simulate({.seeds = 4, .carriers = 2, .steps_max = 10'000'000}, [&] {
    Runtime& runtime = bobbin::internal::CurrentRuntime();
    const size_t before = runtime.MeasureStacks().resident_bytes;
    for (int i = 0; i < 3; ++i) {
      const absl::Status ended =
          Spawn({.stack_bytes = size_t{4} << 20}, [] { UseStack(kUsed); }).Join();
      BOBBIN_CHECK(ended.ok(), "nobody fails");
    }
    BOBBIN_CHECK(runtime.MeasureStacks().resident_bytes >= before + kUsed, "it was used");
    BOBBIN_CHECK(SleepFor(minutes(1)).ok(), "nobody stops the sleep");
    const StackUsage after = runtime.MeasureStacks();
    BOBBIN_CHECK(after.resident_bytes < before + kUsed / 8,
                 std::to_string(after.resident_bytes >> 10));
  });
  EXPECT_TRUE(report.ok()) << report.failure;
}

}  // namespace
}  // namespace bobbin::testing
