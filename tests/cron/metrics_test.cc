// SPDX-License-Identifier: Apache-2.0
//
// What jobs say of themselves as metrics.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/cron/memory_lease_store.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/sched/metrics.h>

#include "tests/cron/manual_clock.h"
#include "tests/support/bobbin_test.h"

namespace bobbin::cron {
namespace {

using namespace std::chrono_literals;
using test::HoldingRunner;
using test::ManualClock;
using testing::ElementsAre;

const absl::Time kBegin = absl::FromCivil(absl::CivilSecond(2026, 1, 1), absl::UTCTimeZone());

std::vector<uint64_t> CountsOf(const MetricsSnapshot& snapshot, std::string_view job,
                               std::string_view outcome) {
  for (const MetricSnapshot& metric : snapshot.metrics()) {
    if (metric.name != "bobbin.scheduler.run.duration") continue;
    EXPECT_EQ(metric.unit, "ms");
    EXPECT_EQ(metric.kind, MetricKind::kHistogram);
    for (const MetricPoint& point : metric.points) {
      if (point.attributes ==
          std::vector<Attribute>{{"bobbin.job", job}, {"bobbin.outcome", outcome}}) {
        return point.counts;
      }
    }
  }
  return {};
}

double NumberOf(const MetricsSnapshot& snapshot, const std::string& name, std::string_view job) {
  const std::vector<Attribute> attributes = {{"bobbin.job", job}};
  return snapshot.Value("bobbin.scheduler." + name, attributes);
}

TEST(SchedulerMetricsTest, OnlyBodiesThatWereExecutedHaveADuration) {
  Metrics metrics;
  ManualClock clock(kBegin);
  HoldingRunner runner;
  const auto leases = std::make_shared<MemoryLeases>();
  MemoryLeaseStore ours(leases);
  MemoryLeaseStore theirs(leases);
  Scheduler scheduler({.runner = &runner,
                       .clock = &clock,
                       .leases = &ours,
                       .metrics = &metrics,
                       .drive = SchedulerOptions::Drive::kByHand});
  absl::Status answer;
  ASSERT_OK(scheduler.Add(
      {.name = "job", .fixed_rate = 1min, .lease = LeaseTerms{.at_most = absl::Minutes(10)}}, [&] {
        clock.Advance(absl::Milliseconds(60));
        return answer;
      }));
  ASSERT_OK(scheduler.Add({.name = "throws", .fixed_rate = 1h},
                          [&]() -> absl::Status { throw std::runtime_error("x"); }));

  // A success of 60 ms, with a due time that finds it going; a failure; an exception.
  scheduler.StartDue();
  clock.Advance(absl::Minutes(1));
  scheduler.StartDue();
  while (!runner.held.empty()) runner.RunOne();
  answer = absl::InternalError("no");
  clock.Advance(absl::Minutes(1));
  scheduler.StartDue();
  while (!runner.held.empty()) runner.RunOne();
  // Another one holds the lease, a runner that refuses, a run that is dropped.
  ASSERT_OK(theirs.Claim({.name = "job", .at_most = absl::Minutes(10)}));
  clock.Advance(absl::Minutes(1));
  scheduler.StartDue();
  while (!runner.held.empty()) runner.RunOne();
  runner.refuses = true;
  clock.Advance(absl::Minutes(1));
  scheduler.StartDue();
  runner.refuses = false;
  clock.Advance(absl::Minutes(1));
  scheduler.StartDue();
  runner.held.clear();

  const MetricsSnapshot snapshot = metrics.Snapshot();
  // Bounds are 0, 5, 10, 25, 50, 75, ...
  EXPECT_THAT(CountsOf(snapshot, "job", "success"),
              ElementsAre(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(CountsOf(snapshot, "job", "failure"),
              ElementsAre(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(CountsOf(snapshot, "throws", "failure"),
              ElementsAre(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(NumberOf(snapshot, "runs", "job"), 2);
  EXPECT_EQ(NumberOf(snapshot, "failures", "job"), 3);
  EXPECT_EQ(NumberOf(snapshot, "overlap_skips", "job"), 1);
  EXPECT_EQ(NumberOf(snapshot, "lease_skips", "job"), 1);
  EXPECT_EQ(NumberOf(snapshot, "running", "job"), 0);
  ASSERT_OK(scheduler.Stop());
}

TEST(SchedulerMetricsTest, TheNumbersGoWithTheScheduler) {
  Metrics metrics;
  for (int i = 0; i < 2; ++i) {
    ManualClock clock(kBegin);
    test::InlineRunner runner;
    Scheduler scheduler({.runner = &runner,
                         .clock = &clock,
                         .metrics = &metrics,
                         .drive = SchedulerOptions::Drive::kByHand});
    ASSERT_OK(scheduler.Add({.name = "job", .fixed_rate = 1min}, [] {}));
    scheduler.StartDue();
    EXPECT_EQ(NumberOf(metrics.Snapshot(), "runs", "job"), 1);
  }
  EXPECT_EQ(NumberOf(metrics.Snapshot(), "runs", "job"), 0);
  EXPECT_EQ(CountsOf(metrics.Snapshot(), "job", "success").at(0), 2u);  // That is a history.
}

}  // namespace
}  // namespace bobbin::cron
