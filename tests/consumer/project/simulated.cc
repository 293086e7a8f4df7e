// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/event.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/testing/simulate.h>

int main() {
  const auto report = bobbin::testing::Simulate({.seeds = 20}, []() -> absl::Status {
    bobbin::Event event;
    auto setter = bobbin::Spawn([&] { event.Set(); });
    const absl::Status status = event.Wait();
    return status.ok() ? setter.Join() : status;
  });
  return report.ok() ? 0 : 1;
}
