// SPDX-License-Identifier: Apache-2.0
//
// ProcessFigures: what this process has used so far, as the system counts it. CpuBalance: how much
// of the CPUs other programs took meanwhile.
//
//   Called from   any thread; reads /proc, which may take a carrier some 50 us.
//   Suspends      never.

#ifndef BOBBIN_BENCH_COMPARE_METER_H_
#define BOBBIN_BENCH_COMPARE_METER_H_

#include <cstdint>

#include <bobbin/core/clock.h>

namespace bobbin::compare {

struct ProcessFigures {
  double cpu_seconds = 0;  // User and system time of all threads, also of those that have ended.
  uint64_t voluntary_switches = 0;
  uint64_t involuntary_switches = 0;
  uint64_t resident_bytes = 0;
  uint64_t os_threads = 0;  // That exist now.
};

ProcessFigures ReadProcessFigures();

// From its construction on.
class CpuBalance {
 public:
  CpuBalance();

  // The share of all CPUs, from 0 to 1, that neither idled nor worked for this process or for those
  // of its children that have ended.
  double ShareOfOthers() const;

 private:
  MonotonicTime begun_;
  double busy_seconds_;
  double own_seconds_;
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_METER_H_
