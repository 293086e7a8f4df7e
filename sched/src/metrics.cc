// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "absl/base/thread_annotations.h"
#include <fmt/format.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/texts.h>
#include <bobbin/sched/metrics.h>

#include "sched/src/letters.h"
#include "sched/src/limits.h"

namespace bobbin {

namespace internal {

namespace {

using CountWord = Atomic<uint64_t>;
constexpr size_t kLineWords = 8;

// Which shard the calling thread counts in: a carrier always the same one. It may be another
// carrier's, or the thread may go on on another carrier meanwhile: the words are atomic.
size_t ShardOfHere() noexcept {
  const Thread& here = Current();
  const size_t tag = here.carrier_tag();
  if (tag != 0) return tag % kMetricShards;
  const auto address = reinterpret_cast<uintptr_t>(&here);
  return (address >> 7 ^ address >> 13) % kMetricShards;
}

void AddDouble(CountWord& word, double difference) noexcept {
  // relaxed: a number of its own, which orders nothing.
  uint64_t bits = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_strong(
      bits, std::bit_cast<uint64_t>(std::bit_cast<double>(bits) + difference),
      std::memory_order_relaxed)) {  // relaxed: as above.
  }
}

std::vector<Attribute> Sorted(std::vector<Attribute> attributes) {
  // Of several with one key, the last.
  std::vector<Attribute> sorted;
  std::stable_sort(attributes.begin(), attributes.end(),
                   [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
  for (Attribute& attribute : attributes) {
    if (!sorted.empty() && sorted.back().key == attribute.key) sorted.pop_back();
    sorted.push_back(std::move(attribute));
  }
  return sorted;
}

// A text that two sets of attributes share only if they are equal.
std::string KeyOf(const std::vector<Attribute>& attributes) {
  std::string key;
  for (const Attribute& attribute : attributes) {
    const std::string value = attribute.value.ToString();
    key += fmt::format("{}:{}={}:{}", attribute.key.size(), attribute.key, value.size(), value);
  }
  return key;
}

}  // namespace

// A series: words in which threads count, in shards a cache line apart. A counter has one word in
// each shard; a histogram one for each bucket, and the sum; a gauge has one word in all.
class MetricSeries {
 public:
  MetricSeries(MetricKind kind, std::span<const double> bounds, std::vector<Attribute> attributes)
      : bounds_(bounds),
        attributes_(std::move(attributes)),
        shards_(kind == MetricKind::kGauge ? 1 : kMetricShards),
        used_words_(kind == MetricKind::kHistogram ? bounds.size() + 2 : 1),
        stride_((used_words_ + kLineWords - 1) / kLineWords * kLineWords),
        memory_(std::make_unique<CountWord[]>(shards_ * stride_ + kLineWords)) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    const uintptr_t line = kLineWords * sizeof(CountWord);
    words_ = memory_.get() + (line - address % line) % line / sizeof(CountWord);
  }

  // relaxed: numbers of their own, which order nothing; so below.
  void Count(uint64_t count) noexcept { OfHere()[0].fetch_add(count, std::memory_order_relaxed); }
  void Record(double value) noexcept {
    if (std::isnan(value)) return;
    const size_t bucket = static_cast<size_t>(
        std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
    CountWord* const words = OfHere();
    words[bucket].fetch_add(1, std::memory_order_relaxed);  // relaxed: as Count.
    AddDouble(words[bounds_.size() + 1], value);
  }
  void Set(double value) noexcept {
    words_[0].store(std::bit_cast<uint64_t>(value),
                    std::memory_order_relaxed);  // relaxed: as Count.
  }
  void Change(double difference) noexcept { AddDouble(words_[0], difference); }

  MetricPoint Point(MetricKind kind) const {
    MetricPoint point{.attributes = attributes_};
    // relaxed: the numbers of a snapshot are of slightly different instants.
    const auto read = [](const CountWord& word) { return word.load(std::memory_order_relaxed); };
    if (kind == MetricKind::kGauge) {
      point.value = std::bit_cast<double>(read(words_[0]));
      return point;
    }
    if (kind == MetricKind::kHistogram) point.counts.resize(bounds_.size() + 1);
    uint64_t count = 0;
    for (size_t shard = 0; shard < shards_; ++shard) {
      const CountWord* const words = words_ + shard * stride_;
      if (kind == MetricKind::kCounter) count += read(words[0]);
      for (size_t i = 0; i < point.counts.size(); ++i) point.counts[i] += read(words[i]);
      if (kind == MetricKind::kHistogram) {
        point.value += std::bit_cast<double>(read(words[bounds_.size() + 1]));
      }
    }
    if (kind == MetricKind::kCounter) point.value = static_cast<double>(count);
    return point;
  }

 private:
  CountWord* OfHere() noexcept { return words_ + ShardOfHere() * stride_; }

  // Never change.
  const std::span<const double> bounds_;
  const std::vector<Attribute> attributes_;
  const size_t shards_;
  const size_t used_words_;
  const size_t stride_;
  const std::unique_ptr<CountWord[]> memory_;  // Counted in by everyone; read by snapshots.
  CountWord* words_;                           // The first of them that begins a cache line.
};

class Metric {
 public:
  Metric(MetricOptions options, MetricKind kind, std::vector<double> bounds, size_t series_max)
      : options_(std::move(options)),
        kind_(kind),
        bounds_(std::move(bounds)),
        series_max_(series_max) {}

  const std::string& name() const { return options_.name; }
  MetricKind kind() const { return kind_; }
  bool IsTheSame(const MetricOptions& options, MetricKind kind,
                 const std::vector<double>& bounds) const {
    return kind == kind_ && options.unit == options_.unit && options.help == options_.help &&
           bounds == bounds_;
  }

  MetricSeries& At(std::vector<Attribute> attributes) ABSL_LOCKS_EXCLUDED(mutex_) {
    attributes = Sorted(std::move(attributes));
    const std::string key = KeyOf(attributes);
    MutexLock lock(mutex_);
    if (const auto known = series_.find(key); known != series_.end()) return *known->second;
    if (series_.size() == series_max_) {
      if (overflow_ == nullptr) {
        overflow_ = MakeSeries({{"otel.metric.overflow", true}});
      }
      return *overflow_;
    }
    return *series_.emplace(key, MakeSeries(std::move(attributes))).first->second;
  }
  template <typename Series>
  Series SeriesAt(std::vector<Attribute> attributes) {
    return Series(At(std::move(attributes)));
  }

  void AddTo(MetricsSnapshot& snapshot) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    for (const auto& [key, series] : series_) {
      snapshot.Add(options_, kind_, bounds_, series->Point(kind_));
    }
    if (overflow_ != nullptr) snapshot.Add(options_, kind_, bounds_, overflow_->Point(kind_));
  }

 private:
  std::unique_ptr<MetricSeries> MakeSeries(std::vector<Attribute> attributes) const {
    return std::make_unique<MetricSeries>(kind_, bounds_, std::move(attributes));
  }

  // Never change.
  const MetricOptions options_;
  const MetricKind kind_;
  const std::vector<double> bounds_;
  const size_t series_max_;

  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<MetricSeries>> series_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<MetricSeries> overflow_ ABSL_GUARDED_BY(mutex_);
};

struct MetricsCore {
  explicit MetricsCore(MetricsOptions metrics_options) : options(metrics_options) {}

  const MetricsOptions options;

  Mutex mutex;
  std::map<std::string, std::unique_ptr<Metric>, std::less<>> metrics ABSL_GUARDED_BY(mutex);
  // Of Prometheus, taken by the metrics.
  std::set<std::string, std::less<>> names ABSL_GUARDED_BY(mutex);

  // Held while sources are asked, so that none is gone before it has answered.
  Mutex sources_mutex;
  std::map<uint64_t, absl::AnyInvocable<void(MetricsSnapshot&)>> sources
      ABSL_GUARDED_BY(sources_mutex);
  uint64_t next_source ABSL_GUARDED_BY(sources_mutex) = 1;
};

namespace {

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMetricNameBytesMax && IsLetter(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '-' || c == '/';
         });
}

// Every name of Prometheus that a metric takes.
std::vector<std::string> NamesTakenBy(std::string_view name, MetricKind kind) {
  const std::string base = PrometheusName(name, kind);
  if (kind != MetricKind::kHistogram) return {base};
  return {base, base + "_bucket", base + "_sum", base + "_count"};
}

}  // namespace

}  // namespace internal

void Counter::Add(uint64_t count) const noexcept { series_->Count(count); }
void Gauge::Set(double value) const noexcept { series_->Set(value); }
void Gauge::Add(double difference) const noexcept { series_->Change(difference); }
void Histogram::Record(double value) const noexcept { series_->Record(value); }

template <typename Series>
Series MetricFamily<Series>::At(std::vector<Attribute> attributes) const {
  return metric_->SeriesAt<Series>(std::move(attributes));
}
template class MetricFamily<Counter>;
template class MetricFamily<Gauge>;
template class MetricFamily<Histogram>;

void MetricsSnapshot::Add(const MetricOptions& metric, MetricKind kind,
                          std::span<const double> bounds, MetricPoint point) {
  const auto [known, is_new] = places_.try_emplace(metric.name);
  Place& place = known->second;
  if (is_new) {
    place.metric = metrics_.size();
    metrics_.push_back({.name = metric.name,
                        .help = metric.help,
                        .unit = metric.unit,
                        .kind = kind,
                        .bounds = {bounds.begin(), bounds.end()},
                        .points = {}});
  }
  MetricSnapshot* const family = &metrics_[place.metric];
  if (family->kind != kind ||
      !std::equal(bounds.begin(), bounds.end(), family->bounds.begin(), family->bounds.end())) {
    return;
  }
  point.attributes = internal::Sorted(std::move(point.attributes));
  const auto [at, is_first] =
      place.points.try_emplace(internal::KeyOf(point.attributes), family->points.size());
  if (is_first) {
    family->points.push_back(std::move(point));
    return;
  }
  MetricPoint* const same = &family->points[at->second];
  same->value += point.value;
  for (size_t i = 0; i < point.counts.size(); ++i) same->counts[i] += point.counts[i];
}

double MetricsSnapshot::Value(std::string_view name, std::span<const Attribute> attributes) const {
  const auto metric = places_.find(std::string(name));
  if (metric == places_.end()) return 0;
  const auto& points = metric->second.points;
  const auto point =
      points.find(internal::KeyOf(internal::Sorted({attributes.begin(), attributes.end()})));
  return point == points.end() ? 0 : metrics_[metric->second.metric].points[point->second].value;
}

MetricsSource::~MetricsSource() {
  if (core_ == nullptr) return;
  MutexLock lock(core_->sources_mutex);
  core_->sources.erase(number_);
}

Metrics::Metrics(MetricsOptions options)
    : core_(std::make_shared<internal::MetricsCore>(options)) {}
Metrics::~Metrics() = default;

absl::StatusOr<internal::Metric*> Metrics::Make(MetricOptions options, MetricKind kind,
                                                std::vector<double> bounds) {
  const auto wrong = [&](absl::StatusCode code, std::string_view why) {
    return MakeStatus(code, fmt::format("make metric {}: {}", internal::Quoted(options.name), why));
  };
  if (!internal::IsName(options.name)) {
    return wrong(absl::StatusCode::kInvalidArgument,
                 "a name begins with a letter, and is made of letters, digits and . - / _");
  }
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (!std::isfinite(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1])) {
      return wrong(absl::StatusCode::kInvalidArgument,
                   "each bound is a number above the one before");
    }
  }

  MutexLock lock(core_->mutex);
  if (const auto known = core_->metrics.find(options.name); known != core_->metrics.end()) {
    if (known->second->IsTheSame(options, kind, bounds)) return known->second.get();
    return wrong(absl::StatusCode::kAlreadyExists,
                 "it was made with another kind, unit, help or bounds");
  }
  const std::vector<std::string> names = internal::NamesTakenBy(options.name, kind);
  for (const std::string& name : names) {
    if (core_->names.contains(name)) {
      return wrong(absl::StatusCode::kAlreadyExists,
                   fmt::format("another metric is called {} in Prometheus, too", name));
    }
  }
  core_->names.insert(names.begin(), names.end());
  std::string name = options.name;
  auto metric = std::make_unique<internal::Metric>(std::move(options), kind, std::move(bounds),
                                                   core_->options.series_max);
  return core_->metrics.emplace(std::move(name), std::move(metric)).first->second.get();
}

absl::StatusOr<MetricFamily<Counter>> Metrics::MakeCounter(MetricOptions options) {
  BOBBIN_ASSIGN_OR_RETURN(internal::Metric * metric,
                          Make(std::move(options), MetricKind::kCounter, {}));
  return MetricFamily<Counter>(*metric);
}
absl::StatusOr<MetricFamily<Gauge>> Metrics::MakeGauge(MetricOptions options) {
  BOBBIN_ASSIGN_OR_RETURN(internal::Metric * metric,
                          Make(std::move(options), MetricKind::kGauge, {}));
  return MetricFamily<Gauge>(*metric);
}
absl::StatusOr<MetricFamily<Histogram>> Metrics::MakeHistogram(HistogramOptions options) {
  BOBBIN_ASSIGN_OR_RETURN(internal::Metric * metric,
                          Make({.name = std::move(options.name),
                                .help = std::move(options.help),
                                .unit = std::move(options.unit)},
                               MetricKind::kHistogram, std::move(options.bounds)));
  return MetricFamily<Histogram>(*metric);
}

MetricsSource Metrics::AddSource(absl::AnyInvocable<void(MetricsSnapshot&)> read) {
  MutexLock lock(core_->sources_mutex);
  const uint64_t number = core_->next_source++;
  core_->sources.emplace(number, std::move(read));
  return MetricsSource(core_, number);
}

MetricsSnapshot Metrics::Snapshot() const {
  MetricsSnapshot snapshot;
  {
    MutexLock lock(core_->mutex);
    for (const auto& [name, metric] : core_->metrics) metric->AddTo(snapshot);
  }
  MutexLock lock(core_->sources_mutex);
  for (auto& [number, read] : core_->sources) read(snapshot);
  return snapshot;
}

std::string PrometheusName(std::string_view name, MetricKind kind) {
  std::string result;
  if (!name.empty() && internal::IsDigit(name.front())) result += '_';
  for (char c : name) {
    result += internal::IsLetter(c) || internal::IsDigit(c) || c == '_' ? c : '_';
  }
  constexpr std::string_view kTotal = "_total";
  if (kind == MetricKind::kCounter && !result.ends_with(kTotal)) result += kTotal;
  return result;
}

}  // namespace bobbin
