// SPDX-License-Identifier: Apache-2.0
//
// Bit runs: how the members of a set lie: next to each other, or evenly spread.
//
//   Called from   any thread.

#ifndef BOBBIN_CRON_SRC_BIT_RUNS_H_
#define BOBBIN_CRON_SRC_BIT_RUNS_H_

#include <bit>
#include <cstdint>
#include <vector>

#include <bobbin/cron/internal/field_sets.h>

namespace bobbin::cron::internal {

// Neighbours, from `first` to `last`.
struct Run {
  int first;
  int last;
  int size() const { return last - first + 1; }
};

inline std::vector<Run> RunsOf(uint64_t set) {
  std::vector<Run> runs;
  while (set != 0) {
    const int first = First(set);
    const int last = first + std::countr_one(set >> first) - 1;
    runs.push_back({first, last});
    set = Above(set, last);
  }
  return runs;
}

// The distance between members that are all equally far apart; 0 if they are not, or if there are
// fewer than two.
inline int StepOf(uint64_t set) {
  if (std::popcount(set) < 2) return 0;
  const int first = First(set);
  const int step = First(Above(set, first)) - first;
  uint64_t spread = 0;
  for (int member = first; member <= Last(set); member += step) spread |= uint64_t{1} << member;
  return spread == set ? step : 0;
}

// The members from Monday, 1, to Sunday, 7.
inline uint64_t FromMonday(uint64_t week) { return (week & 0x7e) | (week & 1) << 7; }

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_BIT_RUNS_H_
