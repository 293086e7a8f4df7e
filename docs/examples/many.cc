// SPDX-License-Identifier: Apache-2.0
//
// Many: ten thousand threads that wait at the same time.

#include <chrono>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

using namespace std::chrono_literals;

namespace {

// [sleepers]
absl::Status SleepTogether() {
  bobbin::TaskGroup sleepers;
  for (int i = 0; i < 10'000; ++i) {
    sleepers.Spawn([] { return bobbin::SleepFor(200ms); });
  }
  return sleepers.Wait();  // 200 ms later, not 2000 seconds.
}
// [/sleepers]

absl::Status Main() {
  const bobbin::MonotonicTime begun = bobbin::MonotonicNow();
  BOBBIN_RETURN_IF_ERROR(SleepTogether());
  const std::chrono::duration<double> seconds = bobbin::MonotonicNow() - begun;
  fmt::print("10,000 sleeps of 200 ms took {:.2f} s\n", seconds.count());
  return absl::OkStatus();
}

}  // namespace

int main() { return bobbin::Run(Main); }
