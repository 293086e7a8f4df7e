// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/task_group.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"

namespace bobbin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

BOBBIN_TEST(TaskGroupTest, WaitReturnsWhenEveryChildHasEnded) {
  std::atomic<int> ended{0};
  TaskGroup group;
  for (int i = 0; i < 100; ++i) {
    group.Spawn([&ended] {
      Yield();
      ended.fetch_add(1);
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(ended.load(), 100);
  EXPECT_EQ(group.live(), 0u);
}

BOBBIN_TEST(TaskGroupTest, TheFirstFailureCancelsTheOthersAndComesBack) {
  TaskGroup group;
  for (int i = 0; i < 10; ++i) {
    group.Spawn([] { return SleepFor(hours(1)); });
  }
  group.Spawn([] { return absl::DataLossError("torn page"); });
  EXPECT_EQ(group.Wait().message(), "torn page");
}

BOBBIN_TEST(TaskGroupTest, WaitRethrowsTheExceptionOfAChild) {
  TaskGroup group;
  group.Spawn([]() -> void { throw std::runtime_error("thrown"); });
  group.Spawn([] { return SleepFor(hours(1)); });
  EXPECT_THROW(static_cast<void>(group.Wait()), std::runtime_error);
  EXPECT_OK(group.Wait());
}

BOBBIN_TEST(TaskGroupTest, AGroupThatLogsGoesOnAfterAFailure) {
  testing::internal::CaptureStderr();
  {
    TaskGroup group({.on_failure = OnFailure::kLog});
    group.Spawn({.name = "unlucky"}, [] { return absl::InternalError("broken"); });
    group.Spawn([]() -> void { throw std::runtime_error("thrown"); });
    group.Spawn([] { return SleepFor(milliseconds(1)); });
    EXPECT_OK(group.Wait());
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("\"unlucky\""));
  EXPECT_THAT(log, testing::HasSubstr("broken"));
  EXPECT_THAT(log, testing::HasSubstr("thrown"));
}

BOBBIN_TEST(TaskGroupTest, TheDestructorCancelsAndWaits) {
  std::atomic<int> cancelled{0};
  {
    TaskGroup group;
    for (int i = 0; i < 10; ++i) {
      group.Spawn([&cancelled] {
        if (absl::IsCancelled(SleepFor(hours(1)))) cancelled.fetch_add(1);
      });
    }
  }
  EXPECT_EQ(cancelled.load(), 10);
}

BOBBIN_TEST(TaskGroupTest, AChildSpawnedAfterTheFailureStartsCancelled) {
  TaskGroup group;
  Event has_failed;
  group.Spawn([&]() -> absl::Status {
    has_failed.Set();
    return absl::InternalError("first");
  });
  ASSERT_OK(has_failed.Wait());
  while (group.live() != 0) Yield();
  absl::Status late;
  group.Spawn([&late] { late = SleepFor(hours(1)); });
  EXPECT_EQ(group.Wait().message(), "first");
  EXPECT_TRUE(absl::IsCancelled(late)) << late;
}

BOBBIN_TEST(TaskGroupTest, ADeadlineAroundWaitCancelsTheChildrenAndWaitsForThem) {
  std::atomic<bool> has_ended{false};
  TaskGroup group;
  group.Spawn([&has_ended] {
    EXPECT_TRUE(absl::IsCancelled(SleepFor(hours(1))));
    has_ended.store(true);
  });
  {
    const DeadlineScope scope(milliseconds(5));
    EXPECT_TRUE(absl::IsDeadlineExceeded(group.Wait()));
  }
  EXPECT_TRUE(has_ended.load());
}

BOBBIN_TEST(TaskGroupTest, CancellingTheOwnerReachesTheGrandchildren) {
  std::atomic<int> cancelled{0};
  Event is_deep;
  VirtualThread owner = Spawn([&] {
    TaskGroup group;
    group.Spawn([&] {
      TaskGroup inner;
      inner.Spawn([&] {
        is_deep.Set();
        if (absl::IsCancelled(SleepFor(hours(1)))) cancelled.fetch_add(1);
      });
      return inner.Wait();
    });
    return group.Wait();
  });
  ASSERT_OK(is_deep.Wait());
  owner.Cancel();
  EXPECT_TRUE(absl::IsCancelled(owner.Join()));
  EXPECT_EQ(cancelled.load(), 1);
}

BOBBIN_TEST(TaskGroupTest, ChildrenMaySpawnSiblings) {
  std::atomic<int> ended{0};
  TaskGroup group;
  struct Grower {
    TaskGroup& group;
    std::atomic<int>& ended;
    int depth;
    void operator()() const {
      ended.fetch_add(1);
      if (depth == 0) return;
      group.Spawn(Grower{group, ended, depth - 1});
      group.Spawn(Grower{group, ended, depth - 1});
    }
  };
  group.Spawn(Grower{group, ended, 6});
  ASSERT_OK(group.Wait());
  EXPECT_EQ(ended.load(), 127);
}

BOBBIN_TEST(TaskGroupTest, TheGroupMayBeDestroyedAsSoonAsWaitReturns) {
  for (int round = 0; round < test::Rounds(2000); ++round) {
    auto group = std::make_unique<TaskGroup>();
    for (int i = 0; i < 4; ++i) group->Spawn({.placement = Placement::kSpread}, [] {});
    ASSERT_OK(group->Wait());
  }
}

BOBBIN_TEST(TaskGroupTest, CancelRacesWithTheEndOfTheChildren) {
  for (int round = 0; round < test::Rounds(1000); ++round) {
    TaskGroup group({.placement = Placement::kSpread});
    for (int i = 0; i < 8; ++i) {
      group.Spawn([] { static_cast<void>(SleepFor(std::chrono::microseconds(20))); });
    }
    Yield();
    group.Cancel();
    ASSERT_OK(group.Wait());
  }
}

}  // namespace
}  // namespace bobbin
