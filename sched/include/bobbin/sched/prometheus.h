// SPDX-License-Identifier: Apache-2.0
//
// PrometheusText: metrics as Prometheus reads them. PrometheusCollector: the same as families of
// prometheus-cpp, for a program that has an Exposer or a registry of that library.
//
// In the library bobbin::prometheus, which stands on prometheus-cpp's core.
//
//   Called from   any thread, except carriers' own stacks.
//   Suspends      as Metrics::Snapshot.
//   Lifetime      Metrics must outlive a collector.
//   Cost          A snapshot, and some allocations for each series.
//
// Names and labels: every letter but those of the alphabet, digits and "_" becomes "_", and the
// name of a counter ends with _total. Of two metrics that come to the same name then the later one
// is left out; of two attributes that come to the same label the values are joined with ";".
//
// Example:
//   return Answer(200, bobbin::kPrometheusContentType, bobbin::PrometheusText(metrics.Snapshot()));

#ifndef BOBBIN_SCHED_PROMETHEUS_H_
#define BOBBIN_SCHED_PROMETHEUS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

#include <bobbin/sched/metrics.h>

namespace bobbin {

// What a server says that the text is.
inline constexpr std::string_view kPrometheusContentType = "text/plain; version=0.0.4";

std::string PrometheusText(const MetricsSnapshot& snapshot);
std::vector<prometheus::MetricFamily> PrometheusFamilies(const MetricsSnapshot& snapshot);

class PrometheusCollector final : public prometheus::Collectable {
 public:
  explicit PrometheusCollector(const Metrics& metrics) : metrics_(metrics) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    return PrometheusFamilies(metrics_.Snapshot());
  }

 private:
  const Metrics& metrics_;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_PROMETHEUS_H_
