// SPDX-License-Identifier: Apache-2.0
//
// The sanitizers see through the switches: what is wrong in virtual threads is reported, with the
// stack of the virtual thread. That nothing else is reported, every other test shows.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/sanitizers.h"

namespace bobbin::test {

// With names that a report shows.
[[gnu::noinline]] void WriteTo(volatile char* byte) { *byte = 1; }
[[gnu::noinline]] void IncrementPlainly(int& number) {
  ++number;
  __asm__ __volatile__("" : : : "memory");
}

namespace {

// A block of its own, on the stack itself and nowhere else.
[[gnu::noinline]] volatile char* OnTheStack(char* memory, size_t bytes) {
  std::memset(memory, 0, bytes);
  return memory;
}

template <typename F>
void RunOnOneCarrier(F body) {
  Runtime runtime(RuntimeOptions{.carriers = 1});
  static_cast<void>(runtime.Spawn(body).Join());
}

TEST(AddressSanitizerDeathTest, AHeapOverflowInAVirtualThreadIsReportedWithItsStack) {
  if (!kUnderAddressSanitizer) GTEST_SKIP() << "only under the address sanitizer";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(RunOnOneCarrier([] {
                 char* const bytes = static_cast<char*>(std::malloc(10));
                 Yield();
                 WriteTo(bytes + 10);
                 std::free(bytes);
               }),
               "heap-buffer-overflow(.*\n)*.*in bobbin::test::WriteTo(.*\n)*.*Task::RunBody");
}

TEST(AddressSanitizerDeathTest, AnOverflowOfAVirtualThreadsArrayIsReported) {
  if (!kUnderAddressSanitizer) GTEST_SKIP() << "only under the address sanitizer";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(RunOnOneCarrier([] {
                 char bytes[10];
                 volatile char* const first = OnTheStack(bytes, sizeof(bytes));
                 Yield();
                 WriteTo(first + 10);
               }),
               "stack-buffer-overflow(.*\n)*.*in bobbin::test::WriteTo");
}

TEST(AddressSanitizerDeathTest, AStrayPointerIntoTheStackOfAnEndedThreadIsReported) {
  if (!kUnderAddressSanitizer) GTEST_SKIP() << "only under the address sanitizer";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(RunOnOneCarrier([] {
                 volatile char* stray = nullptr;
                 // What alloca gives is never on a stack of the sanitizer's own.
                 const auto body = [&] {
                   stray = OnTheStack(static_cast<char*>(__builtin_alloca(64)), 64);
                 };
                 static_cast<void>(Spawn(body).Join());
                 WriteTo(stray);
               }),
               "use-after-poison(.*\n)*.*in bobbin::test::WriteTo");
}

// Each waits in its body until the other one is in its own: they are on two carriers.
void IncrementAtTheSameTime() {
  Runtime runtime({.carriers = 2});
  int number = 0;
  std::atomic<int> inside{0};
  VirtualThread threads[2];
  for (VirtualThread& thread : threads) {
    thread = runtime.Spawn({.placement = Placement::kSpread}, [&] {
      inside.fetch_add(1, std::memory_order_relaxed);
      while (inside.load(std::memory_order_relaxed) < 2) {
      }
      for (int i = 0; i < 1000; ++i) IncrementPlainly(number);
    });
  }
  for (VirtualThread& thread : threads) static_cast<void>(thread.Join());
}

TEST(ThreadSanitizerDeathTest, ARaceBetweenCarriersIsReportedWithTheirStacks) {
  if (!kUnderThreadSanitizer) GTEST_SKIP() << "only under the thread sanitizer";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        IncrementAtTheSameTime();
        std::exit(0);  // Which the sanitizer turns into its own code.
      },
      testing::ExitedWithCode(66),
      "data race(.*\n)*.*bobbin::test::IncrementPlainly(.*\n)*.*Task::RunBody");
}

// The same, in order.
BOBBIN_TEST(ThreadSanitizerTest, WhatAMutexOrdersIsNotReported) {
  Mutex mutex;
  int number = 0;
  VirtualThread threads[4];
  for (VirtualThread& thread : threads) {
    thread = Spawn({.placement = Placement::kSpread}, [&] {
      for (int i = 0; i < 100; ++i) {
        const MutexLock lock(mutex);
        IncrementPlainly(number);
        if (i % 10 == 0) Yield();
      }
    });
  }
  for (VirtualThread& thread : threads) EXPECT_OK(thread.Join());
  EXPECT_EQ(number, 400);
}

}  // namespace
}  // namespace bobbin::test
