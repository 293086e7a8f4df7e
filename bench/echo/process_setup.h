// SPDX-License-Identifier: Apache-2.0
//
// CheckCpu, PinToCpu, RaiseFileLimit: what a benchmark asks of the system before it starts.

#ifndef BOBBIN_BENCH_ECHO_PROCESS_SETUP_H_
#define BOBBIN_BENCH_ECHO_PROCESS_SETUP_H_

#include <cstddef>
#include <string>

namespace bobbin::bench {

// Returns what is wrong with `cpu` as the one CPU to run on; empty if nothing is. -1 stands for
// any.
std::string CheckCpu(int cpu);

// Keeps the calling thread, and those it starts later, on `cpu`; -1 does nothing. Returns the error
// text, empty if it worked. REQUIRES: CheckCpu(cpu) is empty.
std::string PinToCpu(int cpu);

// Raises the limit of open files as far as this process may and returns it.
size_t RaiseFileLimit();

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_PROCESS_SETUP_H_
