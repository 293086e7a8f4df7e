// SPDX-License-Identifier: Apache-2.0
//
// In the place of tests/support/bobbin_test.cc: BOBBIN_TEST makes its body a simulation of many
// seeds.

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include <bobbin/core/internal/simulator.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/testing/simulate.h>

#include "tests/support/bobbin_test.h"

namespace bobbin::test {

namespace {

constexpr int kCarrierCounts[] = {1, 2, 3};
constexpr int kSeeds = 200;

void ExpectNothingLeft(const Runtime& runtime) {
  RuntimeStatistics now = runtime.Statistics();
  for (int looks = 0; looks < 100 && (now.live() != 0 || now.timers != 0); ++looks) {
    EXPECT_OK(SleepFor(std::chrono::milliseconds(1)));
    now = runtime.Statistics();
  }
  EXPECT_EQ(now.live(), 0) << runtime.Dump();
  EXPECT_EQ(now.timers, 0);
}

}  // namespace

void WithRuntime(RuntimeOptions options, const std::function<void(Runtime&)>& body) {
  Runtime runtime(std::move(options));
  bobbin::internal::Simulator& simulator = *bobbin::internal::Simulator::Active();
  simulator.set_describe([&runtime] { return runtime.Dump(); });
  body(runtime);
  EXPECT_OK(runtime.AwaitIdle());
  ExpectNothingLeft(runtime);
  EXPECT_OK(runtime.Shutdown());
  simulator.set_describe(nullptr);
}

void RuntimeTest::TestBody() {
  const testing::SimulationReport report = testing::Simulate(
      {.seeds = kSeeds,
       .carriers = 0,
       .has_delays = false,  // These tests were written for machines that are quick, as a rule.
       .has_failed = &::testing::Test::HasFailure},
      [this] {
        random_ = Random(testing::PresentRun());
        WithRuntime({.carriers = carriers_}, [this](Runtime& runtime) {
          runtime_ = &runtime;
          if (is_foreign_) {
            Body();
          } else {
            EXPECT_OK(runtime.Spawn({.name = "test"}, [this] { Body(); }).Join());
          }
        });
      });
  EXPECT_TRUE(report.ok()) << "BOBBIN_SIM_SEED=" << report.seed;
}

bool RegisterRuntimeTest(const char* suite, const char* name, const char* file, int line,
                         RuntimeTest* (*make)()) {
  for (const int carriers : kCarrierCounts) {
    const std::string number = std::to_string(carriers);
    ::testing::RegisterTest(suite, (std::string(name) + "/" + number).c_str(), nullptr,
                            number.c_str(), file, line, [make, carriers]() -> ::testing::Test* {
                              RuntimeTest* const test = make();
                              test->set_carriers(carriers);
                              return test;
                            });
  }
  return true;
}

}  // namespace bobbin::test
