// SPDX-License-Identifier: Apache-2.0

#include "io/src/management/management_pages.h"

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/io/http/response.h>
#include <bobbin/sched/prometheus.h>
#include <bobbin/sched/runtime_metrics.h>

namespace bobbin::io::internal {

namespace {

using http::internal::Refusal;

constexpr std::string_view kIndex =
    "/health        whether carriers turn, and whether work should be sent here\n"
    "/health/live   whether carriers turn\n"
    "/health/ready  whether work should be sent here\n"
    "/metrics       numbers, for Prometheus\n"
    "/dump          what every virtual thread does\n"
    "/dump.json     the same as JSON\n";

std::string_view WhyRefused(Refusal refusal) {
  switch (refusal) {
    case Refusal::kHeaderTooLarge:
      return "the header has too many fields";
    case Refusal::kTargetTooLong:
      return "the target is too long";
    case Refusal::kVersion:
      return "this is not HTTP/1.0 or HTTP/1.1";
    case Refusal::kNotImplemented:
      return "there is an encoding of bodies that is not known here";
    default:
      return "this is not a request of HTTP/1.1";
  }
}

}  // namespace

std::string ManagementAnswer::Text() const {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      status, http::StatusText(status), content_type, body.size(),
      status == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (!is_head) text += body;
  return text;
}

ManagementAnswer ManagementRefusal(int status, std::string_view why) {
  return {.status = status, .body = fmt::format("{}\n", why)};
}

ManagementAnswer ManagementPages::Answer(std::string_view bytes) const {
  http::internal::RequestHead head;
  const Refusal refusal = http::internal::ParseRequestHead(bytes, head);
  if (refusal != Refusal::kNone) {
    return ManagementRefusal(static_cast<int>(refusal), WhyRefused(refusal));
  }
  if (head.method != "GET" && head.method != "HEAD") {
    return ManagementRefusal(405, "only GET and HEAD are answered here");
  }
  ManagementAnswer answer;
  // A source of metrics is the program's: what it throws must not end the only window.
  const std::exception_ptr thrown =
      bobbin::internal::CaptureException([&] { answer = AnswerPage(head); });
  if (thrown != nullptr) {
    const bobbin::internal::Outcome outcome{.status = absl::OkStatus(), .exception = thrown};
    answer = ManagementRefusal(500, fmt::format("the page cannot be made: {}", outcome.Describe()));
  }
  answer.is_head = head.method == "HEAD";
  return answer;
}

ManagementAnswer ManagementPages::AnswerPage(const http::internal::RequestHead& head) const {
  const std::string_view path = head.target.substr(0, head.target.find('?'));
  if (path == "/") return {.body = std::string(kIndex)};
  if (path == "/metrics") {
    return {.body = MetricsText(), .content_type = kPrometheusContentType};
  }
  if (path == "/dump.json") return Dump(DumpFormat::kJson);
  if (path == "/dump") {
    const std::string_view accept = head.Find("accept").value_or("");
    return Dump(accept.find("application/json") != accept.npos ? DumpFormat::kJson
                                                               : DumpFormat::kText);
  }
  const bool is_live_page = path == "/health" || path == "/health/live";
  const bool is_ready_page = path == "/health" || path == "/health/ready";
  if (!is_live_page && !is_ready_page) {
    return ManagementRefusal(404, "there is no such page; / tells which there are");
  }
  ManagementAnswer answer;
  bool is_well = true;
  if (is_live_page) is_well &= AddLive(answer.body);
  if (is_ready_page) is_well &= AddReady(answer.body);
  answer.status = is_well ? 200 : 503;
  return answer;
}

bool ManagementPages::AddLive(std::string& text) const {
  bool is_live = true;
  for (const HeldCarrier& held : runtime_.HeldCarriers()) {
    if (held.held < options_.stuck_after) continue;
    is_live = false;
    const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(held.held);
    text += fmt::format("live: no, carrier {} of {} is stuck for {} ms\n", held.carrier,
                        runtime_.carriers(), milliseconds.count());
  }
  if (is_live) text += "live: yes\n";
  return is_live;
}

bool ManagementPages::AddReady(std::string& text) const {
  if (runtime_.lifecycle().stopping().IsSet()) {
    text += "ready: no, the runtime stops\n";
    return false;
  }
  if (const uint64_t waiting = runtime_.Statistics().waiting_for_limit; waiting != 0) {
    text += fmt::format("ready: no, {} spawners wait at the limit of virtual threads\n", waiting);
    return false;
  }
  text += "ready: yes\n";
  return true;
}

ManagementAnswer ManagementPages::Dump(DumpFormat format) const {
  std::string text = runtime_.Dump({.format = format, .budget = options_.dump_budget});
  // So it says, in either format, when it had to give up.
  if (text.starts_with("no dump")) return {.status = 503, .body = std::move(text)};
  if (format == DumpFormat::kText) return {.body = std::move(text)};
  return {.body = std::move(text), .content_type = "application/json"};
}

std::string ManagementPages::MetricsText() const {
  if (options_.metrics != nullptr) return PrometheusText(options_.metrics->Snapshot());
  MetricsSnapshot snapshot;
  AddStatistics(snapshot, runtime_.Statistics());
  return PrometheusText(snapshot);
}

}  // namespace bobbin::io::internal
