// SPDX-License-Identifier: Apache-2.0

#include <sched.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

#include <bobbin/core/internal/word_lock.h>

#include "tests/support/sanitizers.h"

namespace bobbin::internal {
namespace {

// In a process of its own it is asked by that thread first, and the answer is kept.
TEST(OsTest, OthersRunWhileAThreadIsBoundToOneCpu) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(getpid(), sizeof(usable), &usable), 0);
  const bool has_many = CPU_COUNT(&usable) > 1 || test::kIsSimulated;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &usable)) ++cpu;
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(OthersRunMeanwhile(), has_many);
  }).join();
}

}  // namespace
}  // namespace bobbin::internal
