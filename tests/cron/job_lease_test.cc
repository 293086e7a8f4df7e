// SPDX-License-Identifier: Apache-2.0
//
// Jobs of which one process at a time runs each.

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/cron/memory_lease_store.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/sched/sleep.h>

#include "tests/cron/manual_clock.h"
#include "tests/support/bobbin_test.h"

namespace bobbin::cron {
namespace {

using namespace std::chrono_literals;
using test::InlineRunner;
using test::ManualClock;

// A store that can be out of reach.
class Unsteady final : public LeaseStore {
 public:
  explicit Unsteady(std::shared_ptr<MemoryLeases> leases) : right_(std::move(leases)) {}
  absl::StatusOr<std::optional<Lease>> Claim(const LeaseTerms& terms) override {
    ++calls;
    if (is_down) return absl::UnavailableError("it is down");
    return right_.Claim(terms);
  }
  absl::StatusOr<Lease> Extend(const Lease& lease, absl::Duration at_most) override {
    ++calls;
    if (is_down) return absl::UnavailableError("it is down");
    return right_.Extend(lease, at_most);
  }
  absl::Status Release(const Lease& lease) override {
    ++calls;
    if (is_down) return absl::UnavailableError("it is down");
    return right_.Release(lease);
  }
  absl::StatusOr<std::vector<Lease>> List() override { return right_.List(); }

  bool is_down = false;
  int calls = 0;

 private:
  MemoryLeaseStore right_;
};

// A process: its own clock, the store that all share.
struct Process {
  Process(const std::shared_ptr<MemoryLeases>& leases, absl::Time wall)
      : clock(wall),
        store(leases),
        scheduler({.runner = &runner,
                   .clock = &clock,
                   .leases = &store,
                   .drive = SchedulerOptions::Drive::kByHand}) {}
  template <typename F>
  void Add(F body, absl::Duration at_least = absl::ZeroDuration()) {
    ASSERT_OK(
        scheduler.Add({.name = "job",
                       .fixed_rate = absl::Minutes(1),
                       .lease = LeaseTerms{.at_most = absl::Minutes(10), .at_least = at_least}},
                      std::move(body)));
  }
  JobInfo Info() { return scheduler.Jobs().at(0); }

  ManualClock clock;
  InlineRunner runner;
  Unsteady store;
  Scheduler scheduler;
};

// Two of them, whose clocks differ by hours.
struct Pair {
  void Advance(absl::Duration duration) {
    store_clock.Advance(duration);
    here.clock.Advance(duration);
    there.clock.Advance(duration);
  }
  ManualClock store_clock{absl::UnixEpoch()};
  std::shared_ptr<MemoryLeases> leases = std::make_shared<MemoryLeases>(store_clock);
  Process here{leases, absl::UnixEpoch() + absl::Hours(5)};
  Process there{leases, absl::UnixEpoch() - absl::Hours(5)};
};

TEST(JobLeaseTest, OneProcessRunsItAtATime) {
  Pair pair;
  std::vector<std::string> log;
  std::vector<int64_t> tokens;
  pair.here.Add([&](const JobRun& run) {
    log.emplace_back("here");
    tokens.push_back(run.token);
    const JobInfo info = pair.here.Info();
    EXPECT_EQ(info.lease_name, "job");
    EXPECT_EQ(info.lease->token, run.token);
    EXPECT_THAT(pair.here.scheduler.JobsJson(), testing::HasSubstr("\"leaseOwner\":\""));
    pair.there.scheduler.StartDue();
  });
  pair.there.Add([&](const JobRun& run) {
    log.emplace_back("there");
    tokens.push_back(run.token);
  });
  pair.here.scheduler.StartDue();
  EXPECT_THAT(log, testing::ElementsAre("here"));
  EXPECT_EQ(pair.there.Info().lease_skips, 1u);
  EXPECT_EQ(pair.there.Info().failures, 0u);
  EXPECT_EQ(pair.here.Info().lease, std::nullopt);
  pair.Advance(absl::Minutes(1));
  pair.there.scheduler.StartDue();
  EXPECT_THAT(log, testing::ElementsAre("here", "there"));
  EXPECT_LT(tokens[0], tokens[1]);
}

TEST(JobLeaseTest, AtLeastKeepsTheOthersAwayFromAShortRun) {
  Pair pair;
  int runs = 0;
  pair.here.Add([&] { ++runs; }, absl::Seconds(30));
  pair.there.Add([&] { ++runs; }, absl::Seconds(30));
  pair.here.scheduler.StartDue();
  pair.Advance(absl::Seconds(2));
  pair.there.scheduler.StartDue();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(pair.there.Info().lease_skips, 1u);
}

TEST(JobLeaseTest, ItIsExtendedWhileTheBodyRuns) {
  Pair pair;
  pair.there.Add([] { ADD_FAILURE() << "it is held"; });
  pair.here.Add([&](const JobRun& run) {
    for (int i = 0; i < 20; ++i) {
      pair.Advance(absl::Minutes(4));
      pair.here.scheduler.StartDue();
      pair.there.scheduler.StartDue();
      ASSERT_FALSE(run.stop.IsSet());
    }
  });
  pair.here.scheduler.StartDue();
  EXPECT_EQ(pair.here.Info().leases_lost, 0u);
  EXPECT_GT(pair.there.Info().lease_skips, 10u);
}

TEST(JobLeaseTest, AProcessThatWasPausedIsToldAndTouchesNobodysLease) {
  Pair pair;
  bool is_other_inside = false;
  pair.there.Add([&](const JobRun&) { is_other_inside = true; }, absl::Minutes(5));
  pair.here.Add([&](const JobRun& run) {
    pair.Advance(absl::Minutes(11));  // Nobody looks after the lease.
    pair.there.scheduler.StartDue();
    EXPECT_TRUE(is_other_inside);
    EXPECT_FALSE(run.stop.IsSet());
    pair.here.scheduler.StartDue();
    EXPECT_TRUE(run.stop.IsSet());
  });
  pair.here.scheduler.StartDue();
  EXPECT_EQ(pair.here.Info().leases_lost, 1u);
  // The other one's lasts as long as it wanted it to.
  MemoryLeaseStore store(pair.leases);
  EXPECT_EQ(store.List()->size(), 1u);
}

TEST(JobLeaseTest, AStoreThatFailsIsAFailureAndTheJobStays) {
  Pair pair;
  int runs = 0;
  pair.here.Add([&] { ++runs; });
  pair.here.store.is_down = true;
  for (int i = 0; i < 3; ++i) {
    pair.here.scheduler.StartDue();
    pair.Advance(absl::Minutes(1));
  }
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(pair.here.Info().failures, 3u);
  EXPECT_EQ(pair.here.Info().lease_skips, 0u);
  EXPECT_THAT(pair.here.Info().last_error, testing::HasSubstr("it is down"));
  pair.here.store.is_down = false;
  pair.here.scheduler.StartDue();
  EXPECT_EQ(runs, 1);
}

TEST(JobLeaseTest, AnExtensionIsTriedAgainUntilTheLeaseHasRunOut) {
  for (const bool recovers : {true, false}) {
    Pair pair;
    pair.here.Add([&](const JobRun& run) {
      pair.here.store.is_down = true;
      pair.here.store.calls = 0;
      for (int second = 0; second < 9 * 60; ++second) {
        pair.Advance(absl::Seconds(1));
        pair.here.scheduler.StartDue();
      }
      EXPECT_GE(pair.here.store.calls, 3);
      EXPECT_FALSE(run.stop.IsSet()) << "it is still held";
      pair.here.store.is_down = !recovers;
      for (int second = 0; second < 2 * 60; ++second) {
        pair.Advance(absl::Seconds(1));
        pair.here.scheduler.StartDue();
      }
      EXPECT_EQ(run.stop.IsSet(), !recovers);
    });
    pair.here.scheduler.StartDue();
    EXPECT_EQ(pair.here.Info().leases_lost, recovers ? 0u : 1u);
  }
}

TEST(JobLeaseTest, WithoutAStoreThereIsNone) {
  InlineRunner runner;
  Scheduler scheduler({.runner = &runner, .drive = SchedulerOptions::Drive::kByHand});
  EXPECT_THAT(scheduler.Add({.name = "x", .fixed_rate = 1s, .lease = LeaseTerms{}}, [] {}),
              test::StatusIs(absl::StatusCode::kInvalidArgument));
}

BOBBIN_TEST(JobLeaseTest, ProcessesThatRaceDoNotOverlap) {
  VirtualThreadRunner runner(runtime());
  auto leases = std::make_shared<MemoryLeases>();
  std::vector<std::unique_ptr<MemoryLeaseStore>> stores;
  std::vector<std::unique_ptr<Scheduler>> schedulers;
  std::atomic<int> inside{0};
  std::atomic<int> runs{0};
  std::atomic<int> overlaps{0};
  const int wanted = test::Rounds(200);
  for (int i = 0; i < 3; ++i) {
    stores.push_back(std::make_unique<MemoryLeaseStore>(leases));
    schedulers.push_back(std::make_unique<Scheduler>(
        SchedulerOptions{.runner = &runner, .leases = stores.back().get()}));
    ASSERT_OK(
        schedulers.back()->Add({.name = "job", .fixed_delay = 20us, .lease = LeaseTerms{}}, [&] {
          if (inside.fetch_add(1) != 0) ++overlaps;
          Yield();
          inside.fetch_sub(1);
          ++runs;
        }));
  }
  while (runs.load() < wanted) ASSERT_OK(SleepFor(1ms));
  for (const auto& scheduler : schedulers) ASSERT_OK(scheduler->Stop());
  EXPECT_EQ(overlaps.load(), 0);
  for (const auto& scheduler : schedulers) {
    EXPECT_EQ(scheduler->Jobs()[0].leases_lost, 0u);
    EXPECT_EQ(scheduler->Jobs()[0].failures, 0u);
  }
}

}  // namespace
}  // namespace bobbin::cron
