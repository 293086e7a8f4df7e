// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: what many virtual threads cost that are all there at once.
//
//   park     all wait for one Event at once, then go on and end
//   queue    all are spawned before any runs, then run and end
//   sleep    all sleep for one second
//   skynet   a tree of task groups, ten children each; every leaf is a virtual thread that returns
//            its number, every inner node one that adds up its children's
//   dump     all wait for one Event, one more keeps yielding, and a dump is made of them
//
// Each is repeated: the first round meets cold memory, the later ones reuse it.
//
//   Called from   RunScenario: the main thread. It starts a runtime and ends it.

#ifndef BOBBIN_BENCH_SCALE_SCENARIO_H_
#define BOBBIN_BENCH_SCALE_SCENARIO_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include <bobbin/sched/runtime.h>

namespace bobbin::bench {

struct ScenarioOptions {
  std::string scenario;
  // In skynet: the leaves; a power of ten.
  size_t threads = 0;
  size_t rounds = 3;
  int carriers = 1;
  size_t stack_bytes = RuntimeOptions{}.stack_bytes;
};

struct RoundResult {
  // To bring all there, for each thread. park: spawned and parked. sleep: spawned and asleep.
  // skynet: the whole round.
  double spawn_ns = 0;
  // To end all, for each thread. sleep: beyond the second that the last one slept. skynet: nothing.
  double release_ns = 0;
  // Of the whole round, all carriers together.
  double wall_ms = 0;
  double cpu_ms = 0;
  // dump: how long it took, as text with one line for each thread, and the longest time between two
  // turns of the one that yields, in a second before the dump and during it.
  double dump_ms = 0;
  double gap_before_ms = 0;
  double gap_during_ms = 0;
};

struct ScenarioResult {
  // What the process had grown by when all were there (skynet: at the end), for each thread:
  // resident memory, which includes the descriptors, and page tables. The most of all rounds.
  double bytes_per_thread = 0;
  // How many came with the threads, and how many there were in all: most of those are the program's
  // and its libraries'. The most of all rounds.
  size_t mappings = 0;
  size_t mappings_total = 0;
  size_t peak_resident_bytes = 0;
  std::vector<RoundResult> rounds;
};

// Fails when the runtime cannot start, or a scenario's result is wrong.
absl::StatusOr<ScenarioResult> RunScenario(const ScenarioOptions& options);

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_SCALE_SCENARIO_H_
