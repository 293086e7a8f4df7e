// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/measurement.h"

#include <algorithm>

namespace bobbin::compare {
namespace {

double PerUnit(uint64_t total, uint64_t units) {
  return units == 0 ? 0 : static_cast<double>(total) / static_cast<double>(units);
}

}  // namespace

void Measurement::Begin() {
  const int64_t from = MonotonicNow().time_since_epoch().count() +
                       static_cast<int64_t>(trial_.warmup_seconds() * 1e9);
  counts_to_.store(from + static_cast<int64_t>(trial_.seconds * 1e9), std::memory_order_relaxed);
  counts_from_.store(from, std::memory_order_relaxed);
}

void Measurement::ReadOnce(std::atomic<bool>& has_been_read, ProcessFigures& figures) {
  if (!has_been_read.exchange(true)) figures = ReadProcessFigures();
}

Figures Measurement::Summarise() {
  // Where the last operations of all ended before the time did, nobody has noticed its end.
  ReadOnce(has_begun_, at_begin_);
  ReadOnce(has_ended_, at_end_);

  Figures figures;
  figures.operations = latencies_.count();
  figures.operations_per_second = static_cast<double>(figures.operations) / trial_.seconds;
  figures.latency_p50_us = static_cast<double>(latencies_.Quantile(0.5)) / 1000;
  figures.latency_p99_us = static_cast<double>(latencies_.Quantile(0.99)) / 1000;
  figures.latency_p999_us = static_cast<double>(latencies_.Quantile(0.999)) / 1000;

  figures.os_threads_peak = std::max(at_begin_.os_threads, at_end_.os_threads);
  const uint64_t resident = std::max(at_end_.resident_bytes, resident_before_);
  figures.resident_bytes_per_unit = PerUnit(resident - resident_before_, trial_.concurrency);
  figures.voluntary_switches_per_operation =
      PerUnit(at_end_.voluntary_switches - at_begin_.voluntary_switches, figures.operations);
  figures.involuntary_switches_per_operation =
      PerUnit(at_end_.involuntary_switches - at_begin_.involuntary_switches, figures.operations);
  if (figures.operations > 0) {
    figures.cpu_us_per_operation = (at_end_.cpu_seconds - at_begin_.cpu_seconds) * 1e6 /
                                   static_cast<double>(figures.operations);
  }
  return figures;
}

}  // namespace bobbin::compare
