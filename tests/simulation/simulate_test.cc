// SPDX-License-Identifier: Apache-2.0

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>
#include <bobbin/testing/clock.h>
#include <bobbin/testing/os_thread.h>
#include <bobbin/testing/plain.h>
#include <bobbin/testing/simulate.h>

namespace bobbin::testing {
namespace {

using bobbin::internal::Atomic;
using ::testing::HasSubstr;

TEST(SimulateTest, ARuntimeRuns) {
  int runs = 0;
  const SimulationReport report = Simulate({.seeds = 100, .carriers = 2}, [&] {
    ++runs;
    Mutex mutex;
    Plain<int> sum(0);
    TaskGroup group;
    for (int i = 0; i < 4; ++i) {
      group.Spawn({.placement = Placement::kSpread}, [&] {
        const MutexLock lock(mutex);
        sum.Write(sum.Read() + 1);
      });
    }
    BOBBIN_CHECK(group.Wait().ok(), "nobody fails");
    BOBBIN_CHECK(sum.Read() == 4, "an addition got lost");
  });
  EXPECT_TRUE(report.ok()) << report.failure;
  EXPECT_EQ(runs, 100);
}

TEST(SimulateTest, Foreign) {
  const SimulationReport report = Simulate({.seeds = 1000, .carriers = 0}, [&] {
    Event event;
    Plain<int> value(0);
    OsThread other([&] {
      value.Write(1);
      event.Set();
    });
    BOBBIN_CHECK(event.Wait().ok(), "set");
    BOBBIN_CHECK(value.Read() == 1, "the value");
  });
  EXPECT_TRUE(report.ok()) << report.failure;
}

TEST(SimulateTest, SleepsTakeNoTime) {
  const SimulationReport report = Simulate({.seeds = 10, .carriers = 1}, [&] {
    const MonotonicTime before = MonotonicNow();
    BOBBIN_CHECK(SleepFor(std::chrono::hours(24)).ok(), "slept");
    BOBBIN_CHECK(MonotonicNow() - before >= std::chrono::hours(24), "a day");
  });
  EXPECT_TRUE(report.ok()) << report.failure;
}

}  // namespace
}  // namespace bobbin::testing
