// SPDX-License-Identifier: Apache-2.0

#include <cstdio>

#include "absl/status/status.h"

#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

int main() {
  return bobbin::Run([]() -> absl::Status {
    auto greeter = bobbin::Spawn({.name = "greeter"}, [] { std::puts("hello"); });
    return greeter.Join();
  });
}
