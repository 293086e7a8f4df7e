// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/local.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/os_threads.h"

namespace bobbin::test {
namespace {

VthreadLocal<int> number;
VthreadLocal<std::string> text;

BOBBIN_TEST(VthreadLocalTest, EachThreadHasItsOwnValueAcrossWaits) {
  TaskGroup group({.placement = Placement::kSpread});
  *number = -1;
  for (int i = 0; i < 16; ++i) {
    group.Spawn([i] {
      EXPECT_EQ(*number,
                0);  // Value-initialised, also on a stack and in a block that were used before.
      EXPECT_EQ(*text, "");
      *number = i;
      *text = std::to_string(i);
      for (int round = 0; round < 20; ++round) {
        Yield();
        EXPECT_EQ(*number, i);
        EXPECT_EQ(text->size(), std::to_string(i).size());
      }
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(*number, -1);
}

BOBBIN_FOREIGN_TEST(VthreadLocalTest, ForeignThreadsHaveTheirsToo) {
  *number = 5;
  OsThreads threads;
  threads.Start([] {
    EXPECT_EQ(*number, 0);
    *number = 6;
  });
  threads.Join();
  EXPECT_EQ(*number, 5);
  *number = 0;
}

Log<int> endings;

template <int kNumber>
struct Reporter {
  ~Reporter() { endings.Add(kNumber); }
};
VthreadLocal<Reporter<1>> first;
VthreadLocal<Reporter<2>> second;
VthreadLocal<Reporter<3>> third;

BOBBIN_TEST(VthreadLocalTest, ValuesEndWithTheirThreadTheLastMadeFirst) {
  endings.Take();
  ASSERT_OK(Spawn([] {
              third.Get();
              first.Get();
              second.Get();
              first.Get();
              EXPECT_EQ(endings.size(), 0);
            }).Join());
  EXPECT_THAT(endings.Take(), testing::ElementsAre(2, 1, 3));
}

struct Waits {
  ~Waits() {
    EXPECT_OK(SleepFor(std::chrono::microseconds(50)));
    *number = 1;  // Made anew: it is ended, too.
    first.Get();
    endings.Add(9);
  }
};
VthreadLocal<Waits> waits;

BOBBIN_TEST(VthreadLocalTest, ADestructorMayWaitAndMakeNewValues) {
  endings.Take();
  TaskGroup group({.placement = Placement::kSpread});
  for (int i = 0; i < 4; ++i) group.Spawn([] { waits.Get(); });
  ASSERT_OK(group.Wait());
  EXPECT_THAT(endings.Take(), testing::UnorderedElementsAre(9, 9, 9, 9, 1, 1, 1, 1));
}

}  // namespace
}  // namespace bobbin::test
