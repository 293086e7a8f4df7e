// SPDX-License-Identifier: Apache-2.0
//
// Migrating: computations of unequal length, which even out over the carriers.

#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

namespace {

uint64_t StepsToOne(uint64_t number) {
  uint64_t steps = 0;
  for (; number != 1; ++steps) number = number % 2 == 0 ? number / 2 : 3 * number + 1;
  return steps;
}

// [migrating]
absl::Status CountSteps(std::vector<uint64_t>& sums) {
  bobbin::TaskGroup group;
  for (size_t i = 0; i < sums.size(); ++i) {
    group.Spawn({.name = "count", .migrates = true}, [&sum = sums[i], i] {
      for (uint64_t number = 1; number <= 1000 * i; ++number) {
        sum += StepsToOne(number);
        bobbin::YieldIfDue();  // Whoever is ready here may go on on an idle carrier.
      }
    });
  }
  return group.Wait();
}
// [/migrating]

absl::Status Main() {
  std::vector<uint64_t> sums(20, 0);
  BOBBIN_RETURN_IF_ERROR(CountSteps(sums));
  fmt::print("{} steps\n", std::accumulate(sums.begin(), sums.end(), uint64_t{0}));
  BOBBIN_CHECK(sums[0] == 0 && sums[1] == 59'542, "the steps of the first thousand numbers");
  return absl::OkStatus();
}

}  // namespace

int main() { return bobbin::Run(Main); }
