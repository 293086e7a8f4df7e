// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/task_group.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/thread_probe.h"

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

BOBBIN_TEST(TaskGroupTest, BodiesAreMovedNotCopied) {
  std::atomic<int> sum{0};
  TaskGroup group({.live_max = 2});
  group.Spawn([&sum, value = std::make_unique<int>(1)] { sum += *value; });
  group.Spawn({.name = "named"}, [&sum, value = std::make_unique<int>(2)] { sum += *value; });
  ASSERT_OK(group.Wait());
  EXPECT_EQ(sum, 3);
}

// --- Policies.

BOBBIN_TEST(TaskGroupTest, AGroupThatCollectsGoesOnAndKeepsEveryFailure) {
  std::atomic<int> ended{0};
  TaskGroup group({.on_failure = OnFailure::kCollect});
  group.Spawn({.name = "status"}, [] { return absl::DataLossError("torn page"); });
  while (group.live() != 0) Yield();
  group.Spawn({.name = "exception"}, []() -> void { throw std::runtime_error("thrown"); });
  for (int i = 0; i < 5; ++i) {
    group.Spawn([&ended]() -> absl::Status {
      const absl::Status slept = SleepFor(milliseconds(1));
      if (slept.ok()) ended.fetch_add(1);
      return slept;
    });
  }
  EXPECT_EQ(group.Wait().message(), "torn page");
  EXPECT_EQ(ended.load(), 5);
  const std::vector<ChildFailure> failures = group.TakeFailures();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].name, "status");
  EXPECT_EQ(failures[0].status.message(), "torn page");
  EXPECT_EQ(failures[1].name, "exception");
  EXPECT_NE(failures[1].exception, nullptr);
  EXPECT_NE(failures[0].id, failures[1].id);
  EXPECT_TRUE(group.TakeFailures().empty());
  EXPECT_OK(group.Wait());
}

// --- Results.

BOBBIN_TEST(TaskGroupTest, ChildrenReturnResults) {
  TaskGroup group({.placement = Placement::kSpread});
  Future<int> number = group.Async([] { return 6 * 7; });
  Future<std::unique_ptr<int>> owned =
      group.Async({.name = "maker"}, []() -> absl::StatusOr<std::unique_ptr<int>> {
        BOBBIN_RETURN_IF_ERROR(SleepFor(milliseconds(1)));
        return std::make_unique<int>(1);
      });
  Future<void> nothing = group.Async([] {});
  EXPECT_THAT(number.Get(), test::IsOkAndHolds(42));
  ASSERT_OK(group.Wait());
  EXPECT_TRUE(owned.IsReady());
  EXPECT_THAT(owned.Get(), test::IsOk());
  EXPECT_OK(nothing.Get());
}

BOBBIN_TEST(TaskGroupTest, AResultThatFailsIsAFailureOfTheGroup) {
  TaskGroup group;
  Future<int> failed =
      group.Async([]() -> absl::StatusOr<int> { return absl::DataLossError("torn page"); });
  Future<int> other = group.Async([]() -> absl::StatusOr<int> {
    BOBBIN_RETURN_IF_ERROR(SleepFor(hours(1)));
    return 1;
  });
  EXPECT_EQ(group.Wait().message(), "torn page");
  EXPECT_EQ(failed.Get().status().message(), "torn page");
  EXPECT_TRUE(absl::IsCancelled(other.Get().status()));

  Future<void> thrown = group.Async([]() -> void { throw std::runtime_error("thrown"); });
  EXPECT_THROW(static_cast<void>(group.Wait()), std::runtime_error);
  EXPECT_THROW(static_cast<void>(thrown.Get()), std::runtime_error);
}

BOBBIN_TEST(TaskGroupTest, AChildWhoseFutureIsDroppedGoesOn) {
  std::atomic<bool> has_ended{false};
  TaskGroup group;
  {
    const Future<int> dropped = group.Async([&has_ended] {
      Yield();
      has_ended = true;
      return 1;
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_TRUE(has_ended.load());
}

// --- Limits.

BOBBIN_TEST(TaskGroupTest, SpawnWaitsForAPlaceAndTheLimitIsKept) {
  constexpr int kChildren = 300;
  std::atomic<int> live{0};
  std::atomic<int> live_peak{0};
  std::atomic<int> ended{0};
  TaskGroup group({.placement = Placement::kSpread, .live_max = 3});
  for (int i = 0; i < kChildren; ++i) {
    group.Spawn([&] {
      const int now = live.fetch_add(1) + 1;
      int peak = live_peak.load();
      while (peak < now && !live_peak.compare_exchange_weak(peak, now)) {
      }
      Yield();
      live.fetch_sub(1);
      ended.fetch_add(1);
    });
    EXPECT_LE(group.live(), 3u);
  }
  ASSERT_OK(group.Wait());
  EXPECT_EQ(ended.load(), kChildren);
  EXPECT_LE(live_peak.load(), 3);
}

BOBBIN_TEST(TaskGroupTest, TrySpawnAnswersAtTheLimitAndLeavesTheBody) {
  Event go_on;
  TaskGroup group({.live_max = 2});
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(group.TrySpawn({}, [&go_on] { return go_on.Wait(); }));
  }
  auto value = std::make_unique<int>(1);
  auto body = [value = std::move(value)] { EXPECT_EQ(*value, 1); };
  EXPECT_THAT(group.TrySpawn({}, std::move(body)), test::StatusIs(test::kResourceExhausted));
  EXPECT_EQ(group.live(), 2u);
  go_on.Set();
  ASSERT_OK(group.Wait());
  ASSERT_OK(group.TrySpawn({}, std::move(body)));
  ASSERT_OK(group.Wait());
}

BOBBIN_TEST(TaskGroupTest, ASpawnThatIsCutShortStartsNothingAndFailsTheGroup) {
  TaskGroup group({.live_max = 1});
  group.Spawn([] { return SleepFor(hours(1)); });
  {
    const DeadlineScope scope(milliseconds(1));
    group.Spawn({.name = "late"}, [] { ADD_FAILURE() << "there was no place"; });
  }
  // The first failure has cancelled the child that took the place.
  EXPECT_TRUE(absl::IsDeadlineExceeded(group.Wait()));
  EXPECT_EQ(group.live(), 0u);

  TaskGroup collecting({.on_failure = OnFailure::kCollect, .live_max = 1});
  Event go_on;
  collecting.Spawn([&go_on] { return go_on.Wait(); });
  Future<int> late;
  {
    const DeadlineScope scope(milliseconds(1));
    late = collecting.Async({.name = "late"}, [] { return 1; });
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.Get().status()));
  go_on.Set();
  EXPECT_TRUE(absl::IsDeadlineExceeded(collecting.Wait()));
  const std::vector<ChildFailure> failures = collecting.TakeFailures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].name, "late");
  EXPECT_EQ(failures[0].id, 0u);
}

BOBBIN_TEST(TaskGroupTest, ACancelEndsAWaitForAPlace) {
  TaskGroup group({.live_max = 1});
  Event go_on;
  group.Spawn([&go_on] { return go_on.Wait(); });
  test::ThreadProbe probe;
  VirtualThread feeder = Spawn([&] {
    probe.Attach();
    group.Spawn([] { ADD_FAILURE() << "there was no place"; });
  });
  probe.AwaitParked();
  feeder.Cancel();
  ASSERT_OK(feeder.Join());
  EXPECT_TRUE(absl::IsCancelled(group.Wait()));
}

// A child never waits for its siblings' end: it could wait for itself.
BOBBIN_TEST(TaskGroupTest, AChildOfAFullGroupMaySpawn) {
  std::atomic<int> ended{0};
  Event has_looked;
  TaskGroup group({.live_max = 1});
  group.Spawn([&] {
    group.Spawn([&] {
      EXPECT_OK(has_looked.Wait());
      ended.fetch_add(1);
    });
    EXPECT_EQ(group.live(), 2u);
    EXPECT_THAT(group.TrySpawn({}, [] {}), test::StatusIs(test::kResourceExhausted));
    has_looked.Set();
    ended.fetch_add(1);
  });
  group.Spawn([&ended] { ended.fetch_add(1); });
  ASSERT_OK(group.Wait());
  EXPECT_EQ(ended.load(), 3);
}

BOBBIN_FOREIGN_TEST(TaskGroupTest, FeedersWithDeadlinesAndEndingChildrenRace) {
  constexpr int kFeeders = 3;
  const int rounds = test::Rounds(300);
  std::atomic<int> live{0};
  std::atomic<int> started{0};
  VirtualThread owner = runtime().Spawn([&, own = random().Fork()]() mutable {
    TaskGroup group(
        {.on_failure = OnFailure::kCollect, .placement = Placement::kSpread, .live_max = 2});
    TaskGroup feeders({.placement = Placement::kSpread});
    for (int feeder = 0; feeder < kFeeders; ++feeder) {
      feeders.Spawn([&, own = own.Fork()]() mutable {
        for (int round = 0; round < rounds; ++round) {
          const DeadlineScope scope(std::chrono::microseconds(own.Below(3000)));
          group.Spawn([&, turns = own.Below(2000)] {
            EXPECT_LE(live.fetch_add(1) + 1, 2);
            started.fetch_add(1);
            test::Spin(turns);
            if (turns % 8 == 0) Yield();
            live.fetch_sub(1);
          });
        }
      });
    }
    ASSERT_OK(feeders.Wait());
    static_cast<void>(group.Wait());
    // Each Spawn has either started its child or failed.
    EXPECT_EQ(started + static_cast<int>(group.TakeFailures().size()), kFeeders * rounds);
    // No place was lost.
    ASSERT_OK(group.TrySpawn({}, [] {}));
    ASSERT_OK(group.TrySpawn({}, [] {}));
    ASSERT_OK(group.Wait());
  });
  ASSERT_OK(owner.Join());
}

BOBBIN_TEST(TaskGroupTest, GroupsNestAsDeepAsTheyLike) {
  struct Nest {
    static absl::Status Deepen(std::atomic<int>& ended, int depth) {
      if (depth == 0) return SleepFor(hours(1));
      TaskGroup group({.placement = Placement::kSpread, .live_max = 2});
      for (int i = 0; i < 2; ++i) {
        group.Spawn([&ended, depth] { return Deepen(ended, depth - 1); });
      }
      const absl::Status status = group.Wait();
      ended.fetch_add(1);
      return status;
    }
  };
  std::atomic<int> ended{0};
  TaskGroup group;
  group.Spawn([&ended] { return Nest::Deepen(ended, 5); });
  group.Spawn([]() -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(SleepFor(milliseconds(2)));
    return absl::InternalError("enough");
  });
  EXPECT_EQ(group.Wait().message(), "enough");
  EXPECT_EQ(ended.load(), 31);
}

}  // namespace
}  // namespace bobbin
