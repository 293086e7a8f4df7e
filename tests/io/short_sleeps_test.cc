// SPDX-License-Identifier: Apache-2.0

#include "io/src/short_sleeps.h"

#include <chrono>
#include <cstdint>

#include "gtest/gtest.h"

namespace bobbin::test {
namespace {

using io::internal::ShortSleeps;
using std::chrono::milliseconds;

// How many sleeps of that kind come before the next look; -1: there is none.
int SleepsBeforeALook(ShortSleeps& sleeps, std::chrono::nanoseconds length) {
  for (int count = 0; count < 5000; ++count) {
    if (sleeps.should_look()) return count;
    sleeps.AfterSleep(length);
  }
  return -1;
}

TEST(ShortSleepsTest, ALookComesAfterSeveralShortSleepsInARow) {
  ShortSleeps sleeps;
  EXPECT_FALSE(sleeps.should_look());
  for (uint32_t i = 0; i + 1 < ShortSleeps::kNeededMin; ++i) sleeps.AfterSleep(ShortSleeps::kShort);
  EXPECT_FALSE(sleeps.should_look());
  sleeps.AfterSleep(milliseconds(1));
  EXPECT_EQ(SleepsBeforeALook(sleeps, ShortSleeps::kShort), ShortSleeps::kNeededMin);
}

TEST(ShortSleepsTest, WhoSleepsLongNeverLooks) {
  ShortSleeps sleeps;
  EXPECT_EQ(SleepsBeforeALook(sleeps, ShortSleeps::kShort + std::chrono::nanoseconds(1)), -1);
}

TEST(ShortSleepsTest, LooksThatFindSomethingGoOnAndThoseInVainBecomeRare) {
  ShortSleeps sleeps;
  ASSERT_EQ(SleepsBeforeALook(sleeps, ShortSleeps::kShort), 8);
  for (int i = 0; i < 10; ++i) {
    sleeps.AfterLook(true);
    EXPECT_TRUE(sleeps.should_look());
  }
  for (const int needed : {16, 32, 64, 128, 256, 512, 1024, 1024}) {
    sleeps.AfterLook(false);
    ASSERT_EQ(SleepsBeforeALook(sleeps, ShortSleeps::kShort), needed);
  }
  sleeps.AfterLook(true);
  sleeps.AfterLook(false);
  EXPECT_EQ(SleepsBeforeALook(sleeps, ShortSleeps::kShort), 16);
}

}  // namespace
}  // namespace bobbin::test
