// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/measurement.h"

namespace bobbin::compare {
namespace {

double Ratio(double total, uint64_t parts) {
  return parts == 0 ? 0 : total / static_cast<double>(parts);
}

double Microseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

}  // namespace

void Measurement::Begin() {
  at_start_ = Read();
  const int64_t from = MonotonicNow().time_since_epoch().count() +
                       static_cast<int64_t>(trial_.warmup_seconds() * 1e9);
  const int64_t to = from + static_cast<int64_t>(trial_.seconds * 1e9);
  counts_to_.store(to, std::memory_order_relaxed);  // relaxed: see the fields.
  counts_from_.store(from, std::memory_order_relaxed);
}

Measurement::Reading Measurement::Read() const {
  const uint64_t operations = operations_.Sum([](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);  // relaxed: a count.
  });
  return {.process = ReadProcessFigures(), .operations = operations};
}

void Measurement::ReadOnce(std::atomic<bool>& has_been_read, Reading& reading) const {
  if (!has_been_read.exchange(true)) reading = Read();
}

Figures Measurement::Summarise() {
  // Where all were too slow to notice a moment, costs are counted from one before it, or to now.
  if (!has_begun_.load()) at_begin_ = at_start_;
  ReadOnce(has_ended_, at_end_);
  const ProcessFigures& start = at_start_.process;
  const ProcessFigures& begin = at_begin_.process;
  const ProcessFigures& end = at_end_.process;
  const uint64_t operations = at_end_.operations - at_begin_.operations;

  Figures figures;
  figures.operations = latencies_.count();
  figures.operations_per_second = static_cast<double>(figures.operations) / trial_.seconds;
  figures.latency_p50_us = Microseconds(latencies_.Quantile(0.5));
  figures.latency_p99_us = Microseconds(latencies_.Quantile(0.99));
  figures.latency_p999_us = Microseconds(latencies_.Quantile(0.999));

  figures.os_threads_peak = std::max({start.os_threads, begin.os_threads, end.os_threads});
  const uint64_t resident =
      std::max({resident_before_, start.resident_bytes, begin.resident_bytes, end.resident_bytes});
  figures.resident_bytes_per_unit =
      Ratio(static_cast<double>(resident - resident_before_), trial_.concurrency);
  figures.voluntary_switches_per_operation =
      Ratio(static_cast<double>(end.voluntary_switches - begin.voluntary_switches), operations);
  figures.involuntary_switches_per_operation =
      Ratio(static_cast<double>(end.involuntary_switches - begin.involuntary_switches), operations);
  figures.cpu_us_per_operation = Ratio((end.cpu_seconds - begin.cpu_seconds) * 1e6, operations);
  return figures;
}

}  // namespace bobbin::compare
