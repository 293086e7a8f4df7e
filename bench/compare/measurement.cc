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
  os_threads_at_start_ = ReadProcessFigures().os_threads;
  const int64_t from = MonotonicNow().time_since_epoch().count() +
                       static_cast<int64_t>(trial_.warmup_seconds() * 1e9);
  const int64_t to = from + static_cast<int64_t>(trial_.seconds * 1e9);
  counts_to_.store(to, std::memory_order_relaxed);  // relaxed: see the fields.
  counts_from_.store(from, std::memory_order_relaxed);
}

void Measurement::ReadOnce(std::atomic<bool>& has_been_read, Reading& reading) {
  if (has_been_read.exchange(true)) return;
  reading.operations = operations_.Sum([](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);  // relaxed: a count.
  });
  reading.process = ReadProcessFigures();
}

Figures Measurement::Summarise() {
  // Where the last operations of all ended before the time did, nobody has noticed its end.
  ReadOnce(has_begun_, at_begin_);
  ReadOnce(has_ended_, at_end_);
  const ProcessFigures& begin = at_begin_.process;
  const ProcessFigures& end = at_end_.process;
  const uint64_t operations = at_end_.operations - at_begin_.operations;

  Figures figures;
  figures.operations = latencies_.count();
  figures.operations_per_second = static_cast<double>(figures.operations) / trial_.seconds;
  figures.latency_p50_us = Microseconds(latencies_.Quantile(0.5));
  figures.latency_p99_us = Microseconds(latencies_.Quantile(0.99));
  figures.latency_p999_us = Microseconds(latencies_.Quantile(0.999));

  figures.os_threads_peak = std::max({os_threads_at_start_, begin.os_threads, end.os_threads});
  const uint64_t resident = std::max(end.resident_bytes, resident_before_);
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
