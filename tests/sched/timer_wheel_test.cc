// SPDX-License-Identifier: Apache-2.0

#include "sched/src/timer_wheel.h"

#include <map>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/internal/current.h>

#include "tests/support/random.h"
#include "tests/support/seed.h"

namespace bobbin::internal {
namespace {

constexpr int64_t kTick = int64_t{1} << TimerWheel::kTickBits;

std::unique_ptr<TimerNode> NodeAt(int64_t deadline) {
  return std::make_unique<TimerNode>(Current(), deadline);
}

TEST(TimerWheelTest, NothingExpiresEarlyAndNothingLaterThanATickAfterItsTime) {
  TimerWheel wheel(0);
  const auto node = NodeAt(5 * kTick + 1);
  wheel.Add(*node);
  EXPECT_EQ(wheel.PopExpired(5 * kTick + 1), nullptr);  // Its tick is not over.
  EXPECT_EQ(wheel.PopExpired(6 * kTick), node.get());
  EXPECT_EQ(node->place, TimerNode::Place::kUnarmed);
  EXPECT_EQ(wheel.NextWake(), TimerWheel::kNever);
}

TEST(TimerWheelTest, ADeadlineOnATickExpiresThere) {
  TimerWheel wheel(0);
  for (const int64_t tick : {1, 63, 64, 65, 4095, 4096, 4097, 262143, 262144, 16777216}) {
    const auto node = NodeAt(tick * kTick);
    TimerWheel fresh(0);
    fresh.Add(*node);
    EXPECT_EQ(fresh.PopExpired(tick * kTick - 1), nullptr) << tick;
    EXPECT_EQ(fresh.PopExpired(tick * kTick), node.get()) << tick;
  }
}

TEST(TimerWheelTest, ADeadlineBeyondTheLastLevelIsKept) {
  TimerWheel wheel(0);
  const int64_t far = INT64_MAX - kTick;
  const auto node = NodeAt(far);
  wheel.Add(*node);
  EXPECT_EQ(wheel.PopExpired(int64_t{1} << 56), nullptr);
  EXPECT_EQ(wheel.PopExpired(int64_t{1} << 57), nullptr);
  EXPECT_EQ(wheel.size(), 1u);
  wheel.Remove(*node);
  EXPECT_EQ(wheel.NextWake(), TimerWheel::kNever);
}

TEST(TimerWheelTest, OneThatIsRemovedDoesNotExpire) {
  TimerWheel wheel(0);
  const auto first = NodeAt(10 * kTick);
  const auto second = NodeAt(10 * kTick);
  wheel.Add(*first);
  wheel.Add(*second);
  wheel.Remove(*first);
  EXPECT_EQ(wheel.PopExpired(10 * kTick), second.get());
  EXPECT_EQ(wheel.PopExpired(20 * kTick), nullptr);
}

TEST(TimerWheelTest, OneThatExpiresMayRemoveAnotherOfTheSameTick) {
  TimerWheel wheel(0);
  std::vector<std::unique_ptr<TimerNode>> nodes;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(NodeAt(10 * kTick));
    wheel.Add(*nodes.back());
  }
  TimerNode* const expired = wheel.PopExpired(10 * kTick);
  ASSERT_NE(expired, nullptr);
  for (const auto& node : nodes) {
    if (node.get() != expired) wheel.Remove(*node);
  }
  EXPECT_EQ(wheel.PopExpired(10 * kTick), nullptr);
  EXPECT_EQ(wheel.size(), 0u);
}

// What both kinds of timers promise, against a sorted map.
template <typename Timers>
void AgreesWithAModel(Timers& timers, int64_t now, int64_t resolution) {
  test::Random random(test::Seed());
  std::multimap<int64_t, std::unique_ptr<TimerNode>> model;
  for (int step = 0; step < 20'000; ++step) {
    if (random.Below(3) != 0) {
      // Far and near, so that every level is met.
      const uint64_t reach = uint64_t{1} << random.Between(10, 48);
      auto node = NodeAt(now + 1 + static_cast<int64_t>(random.Below(reach)));
      timers.Add(*node);
      model.emplace(node->deadline, std::move(node));
    } else if (!model.empty() && random.OneIn(2)) {
      auto victim = model.begin();
      std::advance(victim, random.Below(model.size() < 8 ? model.size() : 8));
      timers.Remove(*victim->second);
      model.erase(victim);
    }
    now += random.OneIn(50) ? static_cast<int64_t>(random.Below(uint64_t{1} << 36))
                            : static_cast<int64_t>(random.Below(uint64_t{1} << 22));
    while (TimerNode* const expired = timers.PopExpired(now)) {
      ASSERT_LE(expired->deadline, now) << "expired early";
      auto [first, last] = model.equal_range(expired->deadline);
      while (first != last && first->second.get() != expired) ++first;
      ASSERT_NE(first, last) << "expired although it was not armed";
      model.erase(first);
    }
    ASSERT_EQ(timers.size(), model.size());
    if (!model.empty()) {
      ASSERT_GT(model.begin()->first, now - resolution) << "expired late";
      ASSERT_LE(timers.NextWake(), model.begin()->first + resolution) << "would be slept through";
    }
  }
  for (auto& [deadline, node] : model) timers.Remove(*node);
}

TEST(TimerWheelTest, RandomUseAgreesWithASortedMap) {
  const int64_t start = int64_t{123} << 33;
  TimerWheel wheel(start);
  AgreesWithAModel(wheel, start, kTick);
}

TEST(TimerHeapTest, RandomUseAgreesWithASortedMap) {
  TimerHeap heap;
  AgreesWithAModel(heap, 1, 1);
}

TEST(TimerHeapTest, ItExpiresToTheNanosecond) {
  TimerHeap heap;
  const auto node = NodeAt(1000);
  heap.Add(*node);
  EXPECT_EQ(heap.PopExpired(999), nullptr);
  EXPECT_EQ(heap.PopExpired(1000), node.get());
}

}  // namespace
}  // namespace bobbin::internal
