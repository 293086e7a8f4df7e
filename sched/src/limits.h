// SPDX-License-Identifier: Apache-2.0
//
// Limits: the bounds of sched, each with its reason.

#ifndef BOBBIN_SCHED_SRC_LIMITS_H_
#define BOBBIN_SCHED_SRC_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bobbin::internal {

// A turn runs at most so many switches before the carrier looks at timers, inbox and completions...
inline constexpr uint32_t kTurnSwitches = 64;
// ...and adapts that number so that a turn takes about so long, for threads that run for long.
// Longer turns delay completions; shorter ones pay a look for every few switches.
inline constexpr int64_t kTurnNanoseconds = 100'000;

// One of so many picks of a fresh task takes the oldest instead of the newest.
inline constexpr uint32_t kOldestEvery = 64;

// A carrier wakes a sleeping one to share its fresh tasks when they seem to be so much work: a
// wake takes both sides tens of microseconds. Tuned with SpawnJoin/Batch1000/2 and skynet.
inline constexpr int64_t kShareNanoseconds = 100'000;
// One is not worth a wake: its spawner is about to wait for it, as a rule.
inline constexpr int64_t kShareFromMin = 2;
// It also does when its oldest fresh task has waited so long: that may be the root of much work.
inline constexpr int64_t kShareOldestNanoseconds = 50'000;
// How long a run is thought to take before one has been measured.
inline constexpr int64_t kRunNanosecondsGuess = 50'000;
// How many a thief takes at once at most, besides half of what there is.
inline constexpr size_t kStealMax = 64;

// New threads that run for less are not worth stealing: some cache lines have to come along. Tuned
// with SpawnJoin/Batch3000/2 (30 ns) and Batch1000Computing/2 (170 ns).
inline constexpr uint64_t kStealNanoseconds = 100;
// If there are so many: a tree of spawns, walked depth first, has fewer. Tuned with skynet.
inline constexpr size_t kSparedMin = 256;
// And if their carrier gets on: it is looked at so often. Short beside the wake of a carrier.
inline constexpr int64_t kSpareNanoseconds = 50'000;

// Stacks that were idle for a whole period are cold. Long enough that a load that comes in waves
// keeps its stacks warm; not tuned.
inline constexpr int64_t kTrimPeriodNanoseconds = 5'000'000'000;
// How many cold stacks one turn gives back: about 0.1 ms of work.
inline constexpr size_t kTrimBatch = 128;

// So few idle stacks are not worth a wake to give their pages back.
inline constexpr size_t kStacksKept = 64;

// How long a carrier with new threads but without a stack for them sleeps before it looks again.
inline constexpr int64_t kStackRetryNanoseconds = 1'000'000;

// Sleeps shorter than this go to the heap, which is exact; longer ones to the wheel. Ten ticks.
inline constexpr int64_t kPreciseSleepNanoseconds = 10'000'000;

// Blocks of virtual threads that a runtime has room for, at least: those that live, and those whose
// end has not been heard yet. Only address space, 3 GiB, until they are used.
inline constexpr size_t kTasksMin = 16'000'000;

// How many permits a shutdown adds to the limit of live virtual threads: more than can be waited
// for.
inline constexpr int64_t kLiftedLimit = int64_t{1} << 36;

// Carriers a runtime may have; more than any machine of today has CPUs.
inline constexpr int kCarriersMax = 1024;

// How long an OS thread may take to say what it runs. It answers in microseconds, unless it waits
// for a CPU or cannot be interrupted; a sanitizer puts handlers off.
inline constexpr std::chrono::milliseconds kSamplePatience{20};

// How long a carrier describes its threads in one turn, for a dump: as long as a turn runs others.
inline constexpr int64_t kDumpSliceNanoseconds = 100'000;
// Threads of one kind that a dump of a failed check lists; a process that ends must not spend its
// last seconds on a million of them.
inline constexpr size_t kListedInFailure = 20;

// Names in a report of who is left.
inline constexpr size_t kNamedInReport = 10;

// Of a text from outside, in messages: they go to logs, and the text may be anything.
inline constexpr size_t kTextBytesShown = 120;

// A file of properties; one that is longer is something else.
inline constexpr size_t kPropertiesBytesMax = 1'000'000;

// A value refers to a key whose value refers to a key, and so on: so many times at most.
inline constexpr size_t kPlaceholderDepthMax = 8;

// Of the mistakes in a configuration, so many are told at once.
inline constexpr size_t kMistakesTold = 20;

// What other systems add to a trace: as many as the standard allows.
inline constexpr size_t kTraceStateMembersMax = 32;

// Shards in which the threads count for a metric: carriers beyond that number share one. More make
// a histogram of 2000 series large; not tuned.
inline constexpr size_t kMetricShards = 16;

// The name of a metric; longer ones are some text from outside.
inline constexpr size_t kMetricNameBytesMax = 255;

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_LIMITS_H_
