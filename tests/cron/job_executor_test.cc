// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/log.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::cron {
namespace {

using std::chrono::hours;
using test::AwaitTrue;
using test::Log;
using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

BOBBIN_TEST(JobExecutorTest, AJobRunsOnTheExecutorThatItNames) {
  Log<std::string> log;
  const auto note = [&log](const JobRun& run) {
    log.Add(std::string(run.name) + " " + std::string(RoleName(CurrentRole())));
  };
  Scheduler scheduler;
  ASSERT_OK(scheduler.Add({.name = "plain", .fixed_delay = hours(1)}, note));
  ASSERT_OK(scheduler.Add(
      {.name = "virtual", .fixed_delay = hours(1), .thread = ThreadKind::kVirtual}, note));
  ASSERT_OK(scheduler.Add({.name = "named",
                           .fixed_delay = hours(1),
                           .thread = ThreadKind::kVirtual,
                           .executor = "reports"},
                          note));
  ASSERT_OK(scheduler.Add({.name = "again", .fixed_delay = hours(1), .executor = "reports"}, note));
  AwaitTrue([&] { return log.size() == 4; });
  EXPECT_THAT(log.Take(), UnorderedElementsAre("plain platform", "virtual virtual", "named virtual",
                                               "again virtual"));
  std::string runners;
  for (const JobInfo& job : scheduler.Jobs()) runners += job.name + "=" + job.runner + " ";
  EXPECT_EQ(runners, "again=reports named=reports plain=scheduling virtual=scheduling-virtual ");
  ASSERT_OK(scheduler.Stop());
}

BOBBIN_TEST(JobExecutorTest, AnExecutorOfAnotherKindIsRefused) {
  ASSERT_OK(runtime().executors().Find("reports", ThreadKind::kVirtual).status());
  Scheduler scheduler;
  const absl::Status refused = scheduler.Add({.name = "nightly",
                                              .fixed_delay = hours(1),
                                              .thread = ThreadKind::kPlatform,
                                              .executor = "reports"},
                                             [] {});
  EXPECT_THAT(refused, test::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(MessageOf(refused)), AllOf(HasSubstr("nightly"), HasSubstr("reports"),
                                                     HasSubstr("virtual"), HasSubstr("platform")));
}

BOBBIN_TEST(JobExecutorTest, ARunIsAskedToStopOnItsVirtualThread) {
  Event has_begun;
  std::atomic<bool> was_cancelled = false;
  Scheduler scheduler;
  ASSERT_OK(scheduler.Add(
      {.name = "waits", .fixed_delay = hours(1), .thread = ThreadKind::kVirtual}, [&] {
        has_begun.Set();
        Event never;
        const absl::Status waited = never.Wait();
        was_cancelled = absl::IsCancelled(waited);
        return waited;
      }));
  ASSERT_OK(has_begun.Wait());
  ASSERT_OK(scheduler.Stop());
  EXPECT_TRUE(was_cancelled);
}

TEST(JobExecutorLifecycleTest, TheSchedulerStopsInItsPhase) {
  Runtime runtime({.carriers = 2});
  std::atomic<bool> has_run = false;
  Scheduler scheduler({.runtime = &runtime});
  ASSERT_OK(scheduler.Add({.name = "first", .fixed_delay = hours(1)}, [&] { has_run = true; }));
  AwaitTrue([&] { return has_run.load(); });
  EXPECT_OK(runtime.lifecycle().Stop());
  EXPECT_FALSE(scheduler.RunNow("first").ok());
}

}  // namespace
}  // namespace bobbin::cron
