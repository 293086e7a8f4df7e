// SPDX-License-Identifier: Apache-2.0
//
// What a program pays for telling about itself: counters, histograms, spans and log lines, wanted
// and not. One iteration is one of them. The baselines are what they cannot do without: an addition
// to a word that others may read, an allocation, a text with a number in it.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "fmt/format.h"

#include <bobbin/core/check.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/span.h>

#include "bench/support/on_virtual_thread.h"

namespace bobbin::bench {
namespace {

// Takes everything, and keeps nothing.
class Nowhere final : public SpanSink, public LogSink {
 public:
  void Add(SpanRecord span) override { benchmark::DoNotOptimize(span.name.data()); }
  void Add(const LogRecord& record) override { benchmark::DoNotOptimize(record.text.data()); }
};

template <typename Body>
void Repeat(benchmark::State& state, Body body) {
  OnVirtualThread([&] {
    for ([[maybe_unused]] auto _ : state) body();
  });
}

// --- Metrics.

void AtomicAdd(benchmark::State& state) {
  alignas(64) static std::atomic<uint64_t> word{0};
  Repeat(state, [] { word.fetch_add(1, std::memory_order_relaxed); });  // relaxed: a baseline.
}
BENCHMARK(AtomicAdd)->Name("Metrics/AtomicAdd");

void CounterAdd(benchmark::State& state) {
  Metrics metrics;
  const auto counters = metrics.MakeCounter({.name = "orders"});
  BOBBIN_CHECK(counters.ok(), "its name is one");
  Repeat(state, [counter = counters->At()] { counter.Add(); });
}
BENCHMARK(CounterAdd)->Name("Metrics/CounterAdd");

void HistogramRecord(benchmark::State& state) {
  Metrics metrics;
  const auto histograms = metrics.MakeHistogram({.name = "durations"});
  BOBBIN_CHECK(histograms.ok(), "its name is one");
  Repeat(state, [histogram = histograms->At(), value = 0.0]() mutable {
    value = value > 12'000 ? 0 : value + 37;
    histogram.Record(value);
  });
}
BENCHMARK(HistogramRecord)->Name("Metrics/HistogramRecord");

// A series of a metric of `range` series that is added to a snapshot.
void SnapshotAdd(benchmark::State& state) {
  const int64_t series = state.range(0);
  for ([[maybe_unused]] auto _ : state) {
    MetricsSnapshot snapshot;
    for (int64_t i = 0; i < series; ++i) {
      snapshot.AddCounter({.name = "orders"}, 1, {{"shop", i}});
    }
    benchmark::DoNotOptimize(snapshot.metrics().data());
  }
  state.SetItemsProcessed(state.iterations() * series);
}
BENCHMARK(SnapshotAdd)->Name("Metrics/SnapshotAdd")->Arg(10)->Arg(100)->Arg(2000);

// --- Spans.

void Allocation(benchmark::State& state) {
  Repeat(state, [] { benchmark::DoNotOptimize(std::make_unique<std::array<char, 128>>()); });
}
BENCHMARK(Allocation)->Name("Span/Allocation");

void SpanOff(benchmark::State& state) {
  Repeat(state, [] { const Span span({.name = "charge"}); });
}
BENCHMARK(SpanOff)->Name("Span/Off");

void SpanNotKept(benchmark::State& state) {
  const Tracing tracing({.sink = std::make_shared<Nowhere>(), .sample_ratio = 0});
  Repeat(state, [] { const Span span({.name = "charge"}); });
}
BENCHMARK(SpanNotKept)->Name("Span/FirstNotKept");

void SpanInsideNotKept(benchmark::State& state) {
  const Tracing tracing({.sink = std::make_shared<Nowhere>(), .sample_ratio = 0});
  OnVirtualThread([&] {
    const Span first({.name = "request"});
    for ([[maybe_unused]] auto _ : state) const Span span({.name = "charge"});
  });
}
BENCHMARK(SpanInsideNotKept)->Name("Span/InsideNotKept");

void SpanKept(benchmark::State& state) {
  const Tracing tracing({.sink = std::make_shared<Nowhere>()});
  Repeat(state, [] { const Span span({.name = "charge"}); });
}
BENCHMARK(SpanKept)->Name("Span/Kept");

// --- Log lines.

void Format(benchmark::State& state) {
  Repeat(state, [number = 0]() mutable {
    benchmark::DoNotOptimize(fmt::format("{} INFO accepted order={}", "21:05:00", ++number));
  });
}
BENCHMARK(Format)->Name("Log/Format");

void LogOff(benchmark::State& state) {
  SetLogging({.sink = std::make_shared<Nowhere>()});
  Repeat(state, [] { Log(LogLevel::kDebug, "accepted"); });
  SetLogging({});
}
BENCHMARK(LogOff)->Name("Log/Off");

void LogOn(benchmark::State& state) {
  SetLogging({.sink = std::make_shared<Nowhere>()});
  Repeat(state, [number = 0]() mutable {
    Log(LogLevel::kInfo, "accepted", {{"order", ++number}});
  });
  SetLogging({});
}
BENCHMARK(LogOn)->Name("Log/On");

}  // namespace
}  // namespace bobbin::bench
