// SPDX-License-Identifier: Apache-2.0
//
// Measurement: which operations of a trial count, how long they took, and what they cost the
// process.
//
// Only operations that end between two moments count; the warm-up comes before the first of them.
// The process's figures are read at these moments by the first thread that notices that they have
// passed. A thread that slept until then would come late where thousands of others want the CPU.
//
//   Called from   Record, Stop: any thread. Begin: one thread, once. Summarise: once nobody records
//                 any more.
//   Suspends      never.
//   Cost          Record: a few loads and the histogram's increment.

#ifndef BOBBIN_BENCH_COMPARE_MEASUREMENT_H_
#define BOBBIN_BENCH_COMPARE_MEASUREMENT_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include <bobbin/core/clock.h>

#include "bench/compare/meter.h"
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
  void NoteResidentBefore() { resident_before_ = ReadProcessFigures().resident_bytes; }

  // Begins the warm-up.
  void Begin();

  // An operation has ended `now`, which took `latency`. Returns false once the time is over.
  bool Record(MonotonicTime now, std::chrono::nanoseconds latency) {
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

  // Ends it before its time.
  void Stop() { is_stopped_.store(true, std::memory_order_relaxed); }
  bool is_stopped() const { return is_stopped_.load(std::memory_order_relaxed); }

  // The figures.
  Figures Summarise();

 private:
  static void ReadOnce(std::atomic<bool>& has_been_read, ProcessFigures& figures);

  const Trial& trial_;
  uint64_t resident_before_ = 0;
  SharedHistogram latencies_;

  // Set by Begin, read by all who record. They order nothing: who sees one too late counts later.
  std::atomic<int64_t> counts_from_{std::numeric_limits<int64_t>::max()};
  std::atomic<int64_t> counts_to_{std::numeric_limits<int64_t>::max()};

  // Each set by the one thread that then reads the figures beside it. The threads' end orders that
  // before Summarise.
  std::atomic<bool> has_begun_{false};
  std::atomic<bool> has_ended_{false};
  ProcessFigures at_begin_;
  ProcessFigures at_end_;

  // Set by Stop, read by all who record. It orders nothing.
  std::atomic<bool> is_stopped_{false};
};

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_MEASUREMENT_H_
