// SPDX-License-Identifier: Apache-2.0

#include "tests/support/bobbin_test.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <bobbin/core/clock.h>

#include "tests/support/leak_check.h"
#include "tests/support/seed.h"
#include "tests/support/watchdog.h"

namespace bobbin::test {

namespace {

constexpr int kCarrierCounts[] = {1, 2, 4};

// Descriptors that are opened once and kept for the life of the process are no leak: the first
// runtime opens them.
void OpenWhatStaysOpen() {
  static const bool is_open = [] {
    Runtime warm_up({.carriers = 1});
    EXPECT_OK(warm_up.Spawn([] {}).Join());
    return true;
  }();
  static_cast<void>(is_open);
}

// Whoever counts wrong once has something left here for ever: a thread that parked and was never
// counted as woken, one that is ready twice.
bool IsAtRest(const RuntimeStatistics& now) {
  return now.live() == 0 && now.fresh == 0 && now.ready == 0 && now.running == 0 &&
         now.parked == 0 && now.timers == 0 && now.in_flight == 0;
}

// Carriers publish their gauges when they go to sleep, which may be a moment after the last thread
// ended.
void ExpectNothingLeft(const Runtime& runtime) {
  const MonotonicTime give_up = MonotonicNow() + std::chrono::seconds(5);
  RuntimeStatistics now = runtime.Statistics();
  while (!IsAtRest(now) && MonotonicNow() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = runtime.Statistics();
  }
  EXPECT_TRUE(IsAtRest(now)) << now.Text() << runtime.Dump();
}

}  // namespace

void WithRuntime(RuntimeOptions options, const std::function<void(Runtime&)>& body) {
  OpenWhatStaysOpen();
  const size_t descriptors = OpenDescriptors();
  {
    Runtime runtime(std::move(options));
    const Watchdog watchdog([&runtime] {
      const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
      return std::string(test == nullptr ? "?" : test->test_suite_name()) + "." +
             (test == nullptr ? "?" : test->name()) +
             ", BOBBIN_TEST_SEED=" + std::to_string(Seed()) + "\n" + runtime.Dump();
    });
    body(runtime);
    EXPECT_OK(runtime.AwaitIdle());
    ExpectNothingLeft(runtime);
    EXPECT_OK(runtime.Shutdown());
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

void RuntimeTest::TestBody() {
  random_ = Random(Seed() + static_cast<uint64_t>(carriers_));
  WithRuntime({.carriers = carriers_}, [this](Runtime& runtime) {
    runtime_ = &runtime;
    if (is_foreign_) {
      Body();
    } else {
      EXPECT_OK(runtime.Spawn({.name = "test"}, [this] { Body(); }).Join());
    }
  });
}

bool RegisterRuntimeTest(const char* suite, const char* name, const char* file, int line,
                         RuntimeTest* (*make)()) {
  for (const int carriers : kCarrierCounts) {
    const std::string number = std::to_string(carriers);
    testing::RegisterTest(suite, (std::string(name) + "/" + number).c_str(), nullptr,
                          number.c_str(), file, line, [make, carriers]() -> testing::Test* {
                            RuntimeTest* const test = make();
                            test->set_carriers(carriers);
                            return test;
                          });
  }
  return true;
}

}  // namespace bobbin::test
