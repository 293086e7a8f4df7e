// SPDX-License-Identifier: Apache-2.0
//
// Machine: where figures come from. Without it they mean little.

#ifndef BOBBIN_BENCH_COMPARE_MACHINE_H_
#define BOBBIN_BENCH_COMPARE_MACHINE_H_

#include <cstdint>
#include <string>

namespace bobbin::compare {

struct Machine {
  std::string cpu = {};  // "AMD EPYC 7B13".
  int cpus = 0;          // That this process may use.
  uint64_t memory_bytes = 0;
  std::string kernel = {};    // "Linux 6.18.1".
  std::string io = {};        // "io_uring", or why there is none.
  std::string compiler = {};  // "GCC 12.2.0".
  bool is_optimised = false;
  std::string version = {};  // Of bobbin.
};

Machine DescribeMachine();

// The above in one or two lines, for people.
std::string MachineText(const Machine& machine);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_MACHINE_H_
