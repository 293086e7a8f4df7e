// SPDX-License-Identifier: Apache-2.0
//
// ProcessFigures: what the process has used so far, as the system counts it.
//
//   Called from   any thread; reads /proc, which may take a carrier some 50 us.
//   Suspends      never.

#ifndef BOBBIN_BENCH_COMPARE_METER_H_
#define BOBBIN_BENCH_COMPARE_METER_H_

#include <cstdint>

namespace bobbin::compare {

struct ProcessFigures {
  double cpu_seconds = 0;  // User and system time of all threads, also of those that have ended.
  uint64_t voluntary_switches = 0;
  uint64_t involuntary_switches = 0;
  uint64_t resident_bytes = 0;
  uint64_t os_threads = 0;  // That exist now.
};

ProcessFigures ReadProcessFigures();

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_METER_H_
