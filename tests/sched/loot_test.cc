// SPDX-License-Identifier: Apache-2.0

#include "sched/src/loot.h"

#include "gtest/gtest.h"

#include "sched/src/run_length.h"

namespace bobbin::internal {
namespace {

constexpr uint64_t kShort = kStealNanoseconds - 1;

TEST(LootTest, LongRunsAreShared) {
  Loot loot;
  EXPECT_EQ(loot.Take(10, kStealNanoseconds, 1, 0), size_t{6});
  EXPECT_EQ(loot.Take(10 * kSparedMin, kStealNanoseconds, 2, 1), kStealMax);
  EXPECT_FALSE(loot.is_spared());
}

TEST(LootTest, AFewShortRunsAreShared) {
  Loot loot;
  EXPECT_NE(loot.Take(kSparedMin - 1, kShort, 1, 0), size_t{0});
  EXPECT_FALSE(loot.is_spared());
}

TEST(LootTest, ABatchOfShortRunsIsSparedWhileItsCarrierGetsOn) {
  Loot loot;
  for (uint64_t look = 1; look < 10; ++look) {
    const int64_t now = static_cast<int64_t>(look) * 2 * kSpareNanoseconds;
    EXPECT_EQ(loot.Take(kSparedMin, kShort, look, now), size_t{0});
    EXPECT_TRUE(loot.is_spared());
  }
  EXPECT_NE(loot.Take(kSparedMin, kStealNanoseconds, 10, 0), size_t{0});
  EXPECT_FALSE(loot.is_spared());
}

TEST(LootTest, ACarrierThatDoesNotGetOnIsRobbed) {
  Loot loot;
  EXPECT_EQ(loot.Take(kSparedMin, kShort, 7, 1000), size_t{0});
  EXPECT_EQ(loot.Take(kSparedMin, kShort, 7, 1000 + kSpareNanoseconds - 1), size_t{0});
  EXPECT_NE(loot.Take(kSparedMin, kShort, 7, 1000 + kSpareNanoseconds), size_t{0});
  EXPECT_FALSE(loot.is_spared());
}

TEST(RunLengthTest, OneLongRunAmongShortOnesIsNoLongRun) {
  RunLength length(50'000);
  length.Learn(64 * 30, 64);
  EXPECT_EQ(length.nanoseconds(), uint64_t{30});
  length.Learn(60'000 + 63 * 30, 64);
  EXPECT_LT(length.nanoseconds(), kStealNanoseconds);
  length.Learn(64 * 10'000, 64);
  EXPECT_GE(length.nanoseconds(), kStealNanoseconds);
}

}  // namespace
}  // namespace bobbin::internal
