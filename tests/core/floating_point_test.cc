// SPDX-License-Identifier: Apache-2.0
//
// The floating-point environment is a thread's own.

#include <cfenv>
#include <cmath>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

// A quotient that is rounded down by default, both as double and as long double, and up when asked
// to. Not folded by the compiler, which knows nothing of rounding modes.
[[gnu::noinline]] double Seventh() {
  volatile double one = 1.0;
  volatile double seven = 7.0;
  return one / seven;
}
[[gnu::noinline]] long double LongSeventh() {
  volatile long double one = 1.0L;
  volatile long double seven = 7.0L;
  return one / seven;
}

BOBBIN_TEST(FloatingPointTest, ARoundingModeStaysWithTheThreadThatSetIt) {
  const double nearest = Seventh();
  const long double long_nearest = LongSeventh();
  Event go;
  ThreadProbe probe;
  VirtualThread upward = Spawn([&] {
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    const double up = Seventh();
    const long double long_up = LongSeventh();
    EXPECT_GT(up, nearest);
    EXPECT_GT(long_up, long_nearest);
    probe.Attach();
    EXPECT_OK(go.Wait());
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    EXPECT_EQ(Seventh(), up);
    EXPECT_EQ(LongSeventh(), long_up);
  });
  probe.AwaitParked();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(Seventh(), nearest);
  EXPECT_EQ(LongSeventh(), long_nearest);
  go.Set();
  ASSERT_OK(upward.Join());
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

BOBBIN_TEST(FloatingPointTest, ANewThreadStartsWithTheDefaultMode) {
  TaskGroup group;
  for (int i = 0; i < 32; ++i) {
    // Each ends with its mode set: the next one starts on the same carrier, and mostly on its
    // stack.
    group.Spawn([i] {
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
      std::fesetround(i % 2 == 0 ? FE_DOWNWARD : FE_TOWARDZERO);
      if (i % 3 == 0) Yield();
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

}  // namespace
}  // namespace bobbin::test
