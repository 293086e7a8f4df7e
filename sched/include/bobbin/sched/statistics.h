// SPDX-License-Identifier: Apache-2.0
//
// RuntimeStatistics: what a runtime is doing and has done, in numbers. StackUsage: what its stacks
// take of memory.
//
// Nobody counts for somebody else: each carrier counts what happens on it, in plain stores to its
// own memory, and a snapshot adds that up. What is there now is what has come less what has gone,
// so that no gauge drifts: at rest they are exact, and `live() == fresh + ready + running +
// parked`. While the carriers run, the numbers of one snapshot are of slightly different instants.
//
//   Called from   any thread; Runtime::Statistics makes one, Runtime::MeasureStacks the other.
//   Suspends      never.
//   Cost          A snapshot: about two dozen loads for each carrier. A StackUsage: some 1.5 us for
//                 each stack of 256 KiB, most of it in the kernel. Text: allocates.
//
// Example:
//   fmt::print("{}", runtime.Statistics().Text());

#ifndef BOBBIN_SCHED_STATISTICS_H_
#define BOBBIN_SCHED_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/poller.h>

namespace bobbin {

struct RuntimeStatistics {
  // Virtual threads, now.
  uint64_t fresh = 0;    // Have not begun.
  uint64_t ready = 0;    // Have run, and wait for their turn to go on.
  uint64_t running = 0;  // Are on a carrier.
  uint64_t parked = 0;   // Wait for something, or for the news that it has come.
  uint64_t live() const { return spawned - ended; }

  // Virtual threads, ever.
  uint64_t spawned = 0;       // Launched.
  uint64_t started = 0;       // Begun to run.
  uint64_t ended = 0;         // Returned from their body.
  uint64_t switches = 0;      // Begun or gone on; what a carrier does all day.
  uint64_t parks = 0;         // Waits that have left the carrier to others.
  uint64_t wakes = 0;         // Such waits that were ended.
  uint64_t remote_wakes = 0;  // Those of them that were ended from another OS thread.
  uint64_t yields = 0;
  uint64_t stolen = 0;    // Taken, before they began, by another carrier than that of their spawn.
  uint64_t migrated = 0;  // Taken, when they were ready, by another carrier than the last one.

  uint64_t limited = 0;  // Spawns that had to wait, or were refused, at a limit.
  uint64_t waiting_for_limit = 0;  // Spawners that wait now, because so many threads live.

  // Carriers, ever.
  uint64_t turns = 0;          // Rounds of their loops.
  uint64_t sleeps = 0;         // Times one had nothing to do...
  uint64_t carrier_wakes = 0;  // ...and times another thread ended that; the rest, its poller did.

  // Virtual threads that kept a carrier for too long, ever; see WatchdogOptions.
  uint64_t computing_holds = 0;
  uint64_t blocking_holds = 0;
  // Carriers that such a thread keeps now; Runtime::HeldCarriers tells which.
  uint64_t held_carriers = 0;
  // Times when nobody was left who could wake any; see DeadlockOptions.
  uint64_t deadlocks = 0;

  // Now.
  uint64_t timers = 0;     // Armed.
  uint64_t in_flight = 0;  // Operations in the kernel's hands.

  // What the pollers of all carriers did for want of something.
  PollerStatistics poller;

  // Stacks that have ever been in use at once, and the address space of each, but of those
  // with a size of their own. They are reused: one
  // is a live thread's, or waits for the next.
  uint64_t stacks = 0;
  uint64_t sized_stacks = 0;   // Of them, those of sizes that threads have asked for.
  uint64_t without_stack = 0;  // Fresh threads that wait for one, because the system gives no more.
  size_t stack_bytes = 0;

  // Of the runtime's own pools: the one that the free function RunBlocking and the files use, and
  // the one where files are synced. Pools of your own have their own.
  PlatformPoolStatistics blocking;
  PlatformPoolStatistics syncing;

  // For people; a handful of lines.
  std::string Text() const;
};

struct StackUsage {
  uint64_t reserved_bytes = 0;  // Address space of all stacks, guards included.
  uint64_t resident_bytes = 0;  // Of that, pages that are there.
  // What the deepest thread has used of its stack, in whole pages. Pages that were given back after
  // a while without use are forgotten. Compare with RuntimeOptions::stack_bytes.
  size_t deepest_bytes = 0;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_STATISTICS_H_
