// SPDX-License-Identifier: Apache-2.0
//
// The waits of a scheduler, one by one, as docs/waits.md lists them.

#include <memory>
#include <optional>

#include "gtest/gtest.h"

#include <bobbin/cron/scheduler.h>

#include "tests/cron/manual_clock.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

// A scheduler with a run that goes on until the test lets it end.
struct Busy {
  Busy() {
    EXPECT_OK(scheduler->Add({.name = "job", .fixed_delay = absl::Hours(1)}, [] {}));
    scheduler->StartDue();
    EXPECT_EQ(runner.held.size(), 1u);
  }

  ManualClock clock{absl::UnixEpoch()};
  HoldingRunner runner;
  std::optional<cron::Scheduler> scheduler{
      std::in_place,
      cron::SchedulerOptions{
          .runner = &runner, .clock = &clock, .drive = cron::SchedulerOptions::Drive::kByHand}};
};

WaitStage Stopping(Runtime&) {
  auto all = std::make_shared<Busy>();
  return {.wait = [all] { return all->scheduler->Stop(); },
          .satisfy = [all] { all->runner.RunOne(); }};
}

WaitStage Destroying(Runtime&) {
  auto all = std::make_shared<Busy>();
  return {.wait =
              [all] {
                all->scheduler.reset();
                return absl::OkStatus();
              },
          .satisfy = [all] { all->runner.RunOne(); }};
}

BOBBIN_FOREIGN_TEST(CronWaitsTest, EachWaitAnswersAsTheTableSays) {
  const WaitStages stages = {{"Scheduler::Stop", Stopping}, {"Scheduler::~Scheduler", Destroying}};
  WalkWaits("cron", stages, runtime());
}

}  // namespace
}  // namespace bobbin::test
