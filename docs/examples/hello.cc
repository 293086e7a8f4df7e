// SPDX-License-Identifier: Apache-2.0
//
// Hello: a whole program on virtual threads.

// [program]
#include <fmt/format.h>

#include <bobbin/core/role.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

void Greet() { fmt::print("hello from {}\n", bobbin::DescribeCurrentThread()); }

absl::Status Main() {
  bobbin::VirtualThread greeter = bobbin::Spawn({.name = "greeter"}, Greet);
  return greeter.Join();
}

int main() { return bobbin::Run(Main); }
// [/program]
