// SPDX-License-Identifier: Apache-2.0
//
// Measurement: which operations of a trial count, how long they took, and what they cost the
// process.
//
// Only operations that end between two moments count; the warm-up comes before the first of them.
// What the process has used is read near these moments, by the first thread that notices that they
// have passed: one that slept until then would come late where thousands of others want the CPU.
// Since that one, too, may be interrupted, it also reads how many operations have ended by then,
// and costs are divided by those between the two readings.
//
//   Called from   Record, NoteUnitsLeave, Stop: any thread. The others: one thread, in the order
//                 below; Summarise once nobody records any more.
//   Suspends      never.
//   Cost          Record: a few loads and two increments.

#ifndef BOBBIN_BENCH_COMPARE_MEASUREMENT_H_
#define BOBBIN_BENCH_COMPARE_MEASUREMENT_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include <bobbin/core/clock.h>

#include "bench/compare/meter.h"
#include "bench/compare/per_cpu.h"
#include "bench/compare/shared_histogram.h"
#include "bench/compare/trial.h"

namespace bobbin::compare {

class Measurement {
 public:
  explicit Measurement(const Trial& trial) : trial_(trial) {}
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // What is resident now is no unit's. Called by the first thread of the kind, so that what such a
  // thread has the process set up is not counted for the others.
  void NoteBeforeUnits() { resident_before_ = ReadProcessFigures().resident_bytes; }

  // All units are there: begins the warm-up.
  void Begin();

  // An operation has ended `now`, which took `latency`. Returns false once the time is over.
  bool Record(MonotonicTime now, std::chrono::nanoseconds latency) {
    // relaxed, all of them: counts, and moments of which it does not matter who notices them first.
    operations_.Here().fetch_add(1, std::memory_order_relaxed);
    const int64_t time = now.time_since_epoch().count();
    if (time < counts_from_.load(std::memory_order_relaxed)) return !is_stopped();
    if (!has_begun_.load(std::memory_order_relaxed)) ReadOnce(has_begun_, at_begin_);
    if (time < counts_to_.load(std::memory_order_relaxed)) {
      latencies_.Add(static_cast<uint64_t>(std::max<int64_t>(0, latency.count())));
      return !is_stopped();
    }
    if (!has_ended_.load(std::memory_order_relaxed)) ReadOnce(has_ended_, at_end_);
    return false;
  }

  // The units are leaving by themselves, the first of them now: what comes next is no longer the
  // work. May be called by each of them.
  void NoteUnitsLeave() {
    if (!has_ended_.load(std::memory_order_relaxed)) ReadOnce(has_ended_, at_end_);
  }

  // Ends it before its time.
  void Stop() { is_stopped_.store(true, std::memory_order_relaxed); }  // relaxed: only a hint.
  bool is_stopped() const { return is_stopped_.load(std::memory_order_relaxed); }

  Figures Summarise();

 private:
  struct Reading {
    ProcessFigures process;
    uint64_t operations = 0;
  };

  Reading Read() const;
  void ReadOnce(std::atomic<bool>& has_been_read, Reading& reading) const;

  const Trial& trial_;
  uint64_t resident_before_ = 0;

  // Counted up by the threads on each CPU, from the warm-up on. They order nothing.
  PerCpu<std::atomic<uint64_t>> operations_;
  SharedHistogram latencies_;

  // Set by Begin, read by all who record. They order nothing: who sees one too late counts later.
  std::atomic<int64_t> counts_from_{std::numeric_limits<int64_t>::max()};
  std::atomic<int64_t> counts_to_{std::numeric_limits<int64_t>::max()};

  // Each set by the one thread that then makes the reading beside it. The threads' end orders that
  // before Summarise.
  std::atomic<bool> has_begun_{false};
  std::atomic<bool> has_ended_{false};
  Reading at_start_;  // Of the warm-up.
  Reading at_begin_;
  Reading at_end_;

  // Set by Stop, read by all who record. It orders nothing.
  std::atomic<bool> is_stopped_{false};
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_MEASUREMENT_H_
