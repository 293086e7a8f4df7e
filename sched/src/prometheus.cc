// SPDX-License-Identifier: Apache-2.0

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include <bobbin/sched/prometheus.h>

namespace bobbin {

namespace {

using prometheus::ClientMetric;

prometheus::MetricType TypeOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

// Prometheus keeps le for the bounds of histograms, and names with two dashes for itself.
std::string LabelName(std::string_view key) {
  std::string name = PrometheusName(key, MetricKind::kGauge);
  if (name.empty() || name.starts_with("__") || name == "le") name = "attribute_" + name;
  return name;
}

std::vector<ClientMetric::Label> LabelsOf(const std::vector<Attribute>& attributes) {
  std::vector<ClientMetric::Label> labels;
  for (const Attribute& attribute : attributes) {
    const std::string name = LabelName(attribute.key);
    const auto same = std::find_if(labels.begin(), labels.end(),
                                   [&](const auto& label) { return label.name == name; });
    if (same == labels.end()) {
      labels.push_back({.name = name, .value = attribute.value.ToString()});
    } else {
      same->value += ";" + attribute.value.ToString();
    }
  }
  return labels;
}

ClientMetric MetricOf(const MetricSnapshot& metric, const MetricPoint& point) {
  ClientMetric result;
  result.label = LabelsOf(point.attributes);
  switch (metric.kind) {
    case MetricKind::kCounter:
      result.counter.value = point.value;
      break;
    case MetricKind::kGauge:
      result.gauge.value = point.value;
      break;
    case MetricKind::kHistogram:
      result.histogram.sample_sum = point.value;
      for (size_t i = 0; i < point.counts.size(); ++i) {
        result.histogram.sample_count += point.counts[i];
        result.histogram.bucket.push_back(
            {.cumulative_count = result.histogram.sample_count,
             .upper_bound = i < metric.bounds.size() ? metric.bounds[i]
                                                     : std::numeric_limits<double>::infinity()});
      }
      break;
  }
  return result;
}

// The text format has one line for it.
std::string HelpOf(const MetricSnapshot& metric) {
  std::string help = metric.help;
  if (!metric.unit.empty()) help += (help.empty() ? "[" : " [") + metric.unit + "]";
  std::replace_if(
      help.begin(), help.end(), [](char c) { return c == '\n' || c == '\\'; }, ' ');
  return help;
}

}  // namespace

std::vector<prometheus::MetricFamily> PrometheusFamilies(const MetricsSnapshot& snapshot) {
  std::vector<prometheus::MetricFamily> families;
  std::set<std::string> taken;
  for (const MetricSnapshot& metric : snapshot.metrics()) {
    const std::string name = PrometheusName(metric.name, metric.kind);
    std::vector<std::string> names = {name};
    if (metric.kind == MetricKind::kHistogram) {
      for (const char* suffix : {"_bucket", "_sum", "_count"}) names.push_back(name + suffix);
    }
    const bool is_clash = std::any_of(names.begin(), names.end(),
                                      [&](const auto& other) { return taken.contains(other); });
    if (is_clash) continue;
    taken.insert(names.begin(), names.end());

    prometheus::MetricFamily family;
    family.name = name;
    family.help = HelpOf(metric);
    family.type = TypeOf(metric.kind);
    for (const MetricPoint& point : metric.points) family.metric.push_back(MetricOf(metric, point));
    families.push_back(std::move(family));
  }
  return families;
}

std::string PrometheusText(const MetricsSnapshot& snapshot) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, PrometheusFamilies(snapshot));
  return std::move(text).str();
}

}  // namespace bobbin
