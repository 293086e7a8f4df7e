// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/cron/memory_lease_store.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/span.h>

#include "tests/cron/manual_clock.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/kept_spans.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::cron {
namespace {

using namespace std::chrono_literals;
using test::AwaitTrue;
using test::InlineRunner;
using test::KeptSpans;
using test::ManualClock;
using test::SaidOf;
using test::SpanNamed;
using testing::SizeIs;

const absl::Time kBegin = absl::FromUnixSeconds(1'800'000'000);

TEST(JobSpanTest, EachRunHasOneWithItsOutcome) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  ManualClock clock(kBegin);
  InlineRunner runner;
  const auto leases = std::make_shared<MemoryLeases>();
  MemoryLeaseStore ours(leases);
  MemoryLeaseStore theirs(leases);
  ASSERT_OK(theirs.Claim({.name = "taken", .at_most = absl::Minutes(10)}).status());
  Scheduler scheduler({.runner = &runner,
                       .clock = &clock,
                       .leases = &ours,
                       .drive = SchedulerOptions::Drive::kByHand});
  ASSERT_OK(scheduler.Add({.name = "good", .fixed_rate = 1h},
                          [] { const Span inner({.name = "inner"}); }));
  ASSERT_OK(scheduler.Add({.name = "bad", .fixed_rate = 1h},
                          [] { return absl::InternalError("broken"); }));
  ASSERT_OK(
      scheduler.Add({.name = "worse", .fixed_rate = 1h}, [] { throw std::runtime_error("torn"); }));
  ASSERT_OK(scheduler.Add({.name = "taken", .fixed_rate = 1h, .lease = LeaseTerms()}, [] {}));
  scheduler.StartDue();

  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(5));
  const SpanRecord good = SpanNamed(spans, "good");
  EXPECT_FALSE(good.parent.is_set());
  EXPECT_EQ(SaidOf(good, "bobbin.job"), "good");
  EXPECT_EQ(SaidOf(good, "bobbin.job.scheduled"), "2027-01-15T08:00:00+00:00");
  EXPECT_EQ(SaidOf(good, "bobbin.outcome"), "success");
  EXPECT_EQ(SpanNamed(spans, "inner").parent, good.context.span_id);
  const SpanRecord bad = SpanNamed(spans, "bad");
  EXPECT_NE(bad.context.trace_id, good.context.trace_id);
  EXPECT_EQ(SaidOf(bad, "bobbin.outcome"), "failure");
  EXPECT_THAT(bad.status, test::StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(SpanNamed(spans, "worse").status, test::StatusIs(absl::StatusCode::kUnknown));
  const SpanRecord taken = SpanNamed(spans, "taken");
  EXPECT_EQ(SaidOf(taken, "bobbin.outcome"), "skipped");
  EXPECT_TRUE(taken.status.ok());
}

BOBBIN_TEST(JobSpanTest, OnAnExecutorARunHasOneAndNothingOfWhoMadeTheScheduler) {
  const auto kept = std::make_shared<KeptSpans>();
  const Tracing tracing({.sink = kept});
  {
    const Span mine({.name = "mine"});
    const LogFields fields({{"mine", true}});
    Scheduler scheduler;
    std::atomic<bool> has_fields = false;
    ASSERT_OK(scheduler.Add({.name = "job", .fixed_delay = 1h},
                            [&] { has_fields = !LogFields::Current().empty(); }));
    AwaitTrue([&] { return scheduler.Jobs().front().runs == 1; });
    EXPECT_FALSE(has_fields);
    ASSERT_OK(scheduler.Stop());
  }
  const std::vector<SpanRecord> spans = kept->Take();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_FALSE(SpanNamed(spans, "job").parent.is_set());
  EXPECT_FALSE(SpanNamed(spans, "mine").parent.is_set());
}

}  // namespace
}  // namespace bobbin::cron
