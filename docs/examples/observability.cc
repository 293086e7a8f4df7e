// SPDX-License-Identifier: Apache-2.0
//
// Observability: log lines with fields, and the spans of a request.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/json_lines.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/otlp.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/prometheus.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/runtime_metrics.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/task_group.h>
#include <bobbin/sched/trace_context.h>

using namespace std::chrono_literals;

namespace {

// [fields]
void Accept(int64_t order) {
  const bobbin::LogFields fields({{"order", order}});
  bobbin::Log(bobbin::LogLevel::kInfo, "accepted", {{"items", 3}});
  bobbin::TaskGroup group;
  group.Spawn([] { bobbin::Log(bobbin::LogLevel::kInfo, "reserved"); });  // Says which order, too.
}
// [/fields]

// [span]
absl::Status Charge(int64_t order) {
  bobbin::Span span(
      {.name = "charge", .kind = bobbin::SpanKind::kClient, .attributes = {{"order", order}}});
  const absl::Status charged = bobbin::RunBlocking([] {
    const bobbin::Span inner({.name = "sign"});  // Its parent is "charge".
    return absl::OkStatus();
  });
  span.SetStatus(charged);
  return charged;
}
// [/span]

// [server]
absl::Status Serve(std::string_view trace_parent, std::string_view trace_state) {
  const auto caller = bobbin::ParseTraceContext(trace_parent, trace_state);
  const bobbin::Span span({.name = "POST /orders",
                           .kind = bobbin::SpanKind::kServer,
                           .remote_parent = caller.ok() ? *caller : bobbin::SpanContext()});
  Accept(17);
  return Charge(17);
}
// [/server]

// [client]
std::string HeaderForTheNextProcess() {
  const bobbin::SpanContext* const span = bobbin::Span::Current();
  return span == nullptr ? "" : bobbin::TraceParentOf(*span);
}
// [/client]

// [metrics]
absl::Status Count(bobbin::Metrics& metrics) {
  BOBBIN_ASSIGN_OR_RETURN(const auto orders,
                          metrics.MakeCounter({.name = "shop.orders", .unit = "{order}"}));
  BOBBIN_ASSIGN_OR_RETURN(const auto sizes, metrics.MakeHistogram({.name = "shop.order.items",
                                                                   .bounds = {1, 2, 5, 10}}));
  const bobbin::Counter express = orders.At({{"kind", "express"}});  // Once, and kept.
  const bobbin::Histogram items = sizes.At();
  express.Add();
  items.Record(3);
  return absl::OkStatus();
}
// [/metrics]

// [prometheus]
std::string Scrape(bobbin::Metrics& metrics, const bobbin::PlatformPool& reports) {
  const bobbin::MetricsSource pool = bobbin::MeasurePool(metrics, reports);
  return bobbin::PrometheusText(metrics.Snapshot());
}
// [/prometheus]

absl::Status PostToCollector(std::string_view body) {
  fmt::print("{} bytes for the collector\n", body.size());
  return absl::OkStatus();
}

absl::Status Export() {
  // [otlp]
  const std::shared_ptr<bobbin::OtlpSpans> spans =
      bobbin::OtlpSpans::Make({.send = PostToCollector, .service_name = "shop", .stop_budget = 2s});
  const bobbin::Tracing tracing({.sink = spans, .sample_ratio = 0.1});
  // [/otlp]
  for (int i = 0; i < 100; ++i) BOBBIN_RETURN_IF_ERROR(Charge(i));
  return spans->Stop();
}

absl::Status Measure() {
  bobbin::Metrics metrics;
  const bobbin::PlatformPool reports({.name = "reports"});
  BOBBIN_RETURN_IF_ERROR(Count(metrics));
  const std::string text = Scrape(metrics, reports);
  fmt::print("{}", text);
  const bool is_there =
      text.find("shop_orders_total{kind=\"express\"} 1") != text.npos &&
      text.find("bobbin_task_queue_depth{bobbin_executor=\"reports\"} 0") != text.npos;
  return is_there ? absl::OkStatus() : absl::InternalError("not all is there");
}

absl::Status Main() {
  // [sink]
  BOBBIN_ASSIGN_OR_RETURN(const std::shared_ptr<bobbin::JsonLines> lines,
                          bobbin::JsonLines::Open({}));  // Standard error.
  bobbin::SetLogging({.sink = lines});
  // [/sink]
  {
    // [tracing]
    const bobbin::Tracing tracing({.sink = lines});
    // [/tracing]
    const bobbin::Span span({.name = "main"});
    BOBBIN_RETURN_IF_ERROR(Serve(HeaderForTheNextProcess(), ""));
  }
  bobbin::SetLogging({});
  BOBBIN_RETURN_IF_ERROR(lines->Stop());
  const bobbin::BatchStatistics written = lines->Statistics();
  if (written.written != 6 || written.dropped != 0) return absl::InternalError("not six lines");
  BOBBIN_RETURN_IF_ERROR(Export());
  return Measure();
}

}  // namespace

int main() { return bobbin::Run(Main); }
