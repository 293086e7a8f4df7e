// SPDX-License-Identifier: Apache-2.0
//
// Metrics: the numbers that a program tells about itself: counters, gauges and histograms of its
// own, and what others add when they are asked. prometheus.h writes them out.
//
// A metric has a name, and a series for each set of attributes. Get a series once and keep it: it
// is a pointer. Each carrier counts in memory of its own, and a snapshot adds up.
//
// A metric has at most MetricsOptions::series_max series; whatever has other attributes then is
// counted in one that says otel.metric.overflow=true, so that a number which comes from outside,
// such as a path, does not take the memory.
//
//   Called from   any thread, except carriers' own stacks; Counter, Gauge and Histogram: there,
//                 too.
//   Suspends      Make..., At, AddSource and Snapshot, while another thread is in one; the end of a
//                 MetricsSource, while its source is asked. Counting never.
//   Cancellation  ignored.
//   Errors        INVALID_ARGUMENT: a name or bounds that cannot be. ALREADY_EXISTS: the name is
//                 that of another metric, or comes to the same in Prometheus, where every letter
//                 but those of the alphabet becomes "_".
//   Lifetime      Metrics must outlive its metrics, series and sources.
//   Cost          Add, Record: one or three atomic operations, in memory that the calling carrier
//                 shares with one of 16 others at most. At: a lock and a search.
//
// Example:
//   bobbin::Metrics metrics;
//   BOBBIN_ASSIGN_OR_RETURN(auto orders, metrics.MakeCounter({.name = "shop.orders"}));
//   const bobbin::Counter express = orders.At({{"kind", "express"}});
//   express.Add();

#ifndef BOBBIN_SCHED_METRICS_H_
#define BOBBIN_SCHED_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include <bobbin/sched/attribute.h>

namespace bobbin {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

namespace internal {
class Metric;
class MetricSeries;
struct MetricsCore;
}  // namespace internal

// Something that only grows.
class Counter {
 public:
  void Add(uint64_t count = 1) const noexcept;

 private:
  friend class internal::Metric;
  explicit Counter(internal::MetricSeries& series) : series_(&series) {}
  internal::MetricSeries* series_;
};

// Something that goes up and down. It is one for all carriers.
class Gauge {
 public:
  void Set(double value) const noexcept;
  void Add(double difference) const noexcept;

 private:
  friend class internal::Metric;
  explicit Gauge(internal::MetricSeries& series) : series_(&series) {}
  internal::MetricSeries* series_;
};

// How often something was how much.
class Histogram {
 public:
  // What is not a number is not counted.
  void Record(double value) const noexcept;

 private:
  friend class internal::Metric;
  explicit Histogram(internal::MetricSeries& series) : series_(&series) {}
  internal::MetricSeries* series_;
};

// The series of a metric: Counters, Gauges or Histograms.
template <typename Series>
class MetricFamily {
 public:
  // The series with these attributes; the same for the same ones, in whichever order.
  Series At(std::vector<Attribute> attributes = {}) const;

 private:
  friend class Metrics;
  explicit MetricFamily(internal::Metric& metric) : metric_(&metric) {}
  internal::Metric* metric_;
};

// What a snapshot says of a metric.
struct MetricPoint {
  std::vector<Attribute> attributes;
  double value = 0;  // Of a histogram, the sum of what was recorded.
  // Of a histogram: how many values there were up to each bound, but above the one before; the last
  // one is for those above them all.
  std::vector<uint64_t> counts = {};
};

struct MetricSnapshot {
  std::string name;
  std::string help;
  std::string unit;
  MetricKind kind = MetricKind::kCounter;
  std::vector<double> bounds;
  std::vector<MetricPoint> points;
};

struct MetricOptions {
  // Words and dots: "shop.orders". Prometheus adds _total to a counter's.
  std::string name;
  std::string help = {};
  // "ms", "By", "{order}"
  std::string unit = {};
};

class MetricsSnapshot {
 public:
  // Adds a series of a metric; in constant time, as a rule. Several sources may know one: what they
  // say is added up. A metric whose name is taken by one of another kind is left out.
  void AddCounter(const MetricOptions& metric, double value,
                  std::vector<Attribute> attributes = {}) {
    Add(metric, MetricKind::kCounter, {}, {std::move(attributes), value});
  }
  void AddGauge(const MetricOptions& metric, double value, std::vector<Attribute> attributes = {}) {
    Add(metric, MetricKind::kGauge, {}, {std::move(attributes), value});
  }
  void Add(const MetricOptions& metric, MetricKind kind, std::span<const double> bounds,
           MetricPoint point);

  // In the order in which they were added.
  const std::vector<MetricSnapshot>& metrics() const { return metrics_; }
  // The value of a series, for tests and limits; 0 if there is none.
  double Value(std::string_view name, std::span<const Attribute> attributes = {}) const;

 private:
  // Where a metric stands, and each of its series, by what only that has for attributes.
  struct Place {
    size_t metric = 0;
    std::unordered_map<std::string, size_t> points = {};
  };

  std::vector<MetricSnapshot> metrics_;
  std::unordered_map<std::string, Place> places_;
};

// Whoever has numbers of its own, and adds them when they are asked for; until this ends.
class [[nodiscard]] MetricsSource {
 public:
  MetricsSource() = default;
  MetricsSource(MetricsSource&& other) noexcept : MetricsSource() { *this = std::move(other); }
  MetricsSource& operator=(MetricsSource&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~MetricsSource();

 private:
  friend class Metrics;
  MetricsSource(std::shared_ptr<internal::MetricsCore> core, uint64_t number)
      : core_(std::move(core)), number_(number) {}

  std::shared_ptr<internal::MetricsCore> core_;
  uint64_t number_ = 0;
};

struct MetricsOptions {
  // Series of one metric.
  size_t series_max = 2000;
};

struct HistogramOptions {
  std::string name;
  std::string help = {};
  std::string unit = {};
  // Upper bounds, included, each above the one before; made for milliseconds.
  std::vector<double> bounds = {0,   5,   10,   25,   50,   75,   100,  250,
                                500, 750, 1000, 2500, 5000, 7500, 10000};
};

class Metrics {
 public:
  explicit Metrics(MetricsOptions options = {});
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  // A metric of that name; asked again in the same words, the same one.
  absl::StatusOr<MetricFamily<Counter>> MakeCounter(MetricOptions options);
  absl::StatusOr<MetricFamily<Gauge>> MakeGauge(MetricOptions options);
  absl::StatusOr<MetricFamily<Histogram>> MakeHistogram(HistogramOptions options);

  // Has `read` asked for each snapshot, one snapshot at a time; it must not use these Metrics.
  MetricsSource AddSource(absl::AnyInvocable<void(MetricsSnapshot&)> read);

  // What the metrics say now; those that were made first, by name, then the sources in the order in
  // which they came. While threads count, the numbers are of slightly different instants.
  MetricsSnapshot Snapshot() const;

 private:
  absl::StatusOr<internal::Metric*> Make(MetricOptions options, MetricKind kind,
                                         std::vector<double> bounds);

  std::shared_ptr<internal::MetricsCore> core_;
};

// What a metric is called in Prometheus: every letter but those of the alphabet, digits and "_" is
// "_", and a counter ends with _total.
std::string PrometheusName(std::string_view name, MetricKind kind);

}  // namespace bobbin

#endif  // BOBBIN_SCHED_METRICS_H_
