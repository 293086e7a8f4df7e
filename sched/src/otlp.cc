// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/time_left.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/otlp.h>

#include "sched/src/batcher.h"
#include "sched/src/json.h"

namespace bobbin {

namespace {

using internal::Json;

// A 64-bit number is text in protobuf's JSON.
void AddNumber(Json& json, std::string_view key, int64_t number) {
  json.Member(key, std::to_string(number));
}

void AddTime(Json& json, std::string_view key, absl::Time time) {
  AddNumber(json, key, absl::ToUnixNanos(time));
}

void AddAttribute(Json& json, std::string_view key, const AttributeValue& value) {
  json.Open('{');
  json.Member("key", key);
  json.Open("value", '{');
  if (value.text() != nullptr) json.Member("stringValue", *value.text());
  if (value.truth() != nullptr) json.Member("boolValue", *value.truth());
  if (value.integer() != nullptr) AddNumber(json, "intValue", *value.integer());
  if (value.number() != nullptr) json.Member("doubleValue", *value.number());
  json.Close('}');
  json.Close('}');
}

void AddAttributes(Json& json, std::span<const Attribute> attributes) {
  json.Open("attributes", '[');
  for (const Attribute& attribute : attributes) AddAttribute(json, attribute.key, attribute.value);
  json.Close(']');
}

void AddSpan(Json& json, const SpanRecord& span) {
  json.Open('{');
  json.Member("traceId", span.context.trace_id.ToString());
  json.Member("spanId", span.context.span_id.ToString());
  if (span.parent.is_set()) json.Member("parentSpanId", span.parent.ToString());
  if (!span.context.trace_state.empty()) json.Member("traceState", span.context.trace_state);
  json.Member("name", span.name);
  // SPAN_KIND_INTERNAL is 1, and the others follow in the same order.
  json.Member("kind", static_cast<int>(span.kind) + 1);
  AddTime(json, "startTimeUnixNano", span.start);
  AddTime(json, "endTimeUnixNano", span.end);
  AddAttributes(json, span.attributes);
  if (span.dropped_attributes > 0) json.Member("droppedAttributesCount", span.dropped_attributes);
  json.Open("events", '[');
  for (const SpanEvent& event : span.events) {
    json.Open('{');
    AddTime(json, "timeUnixNano", event.time);
    json.Member("name", event.name);
    AddAttributes(json, event.attributes);
    json.Close('}');
  }
  json.Close(']');
  if (span.dropped_events > 0) json.Member("droppedEventsCount", span.dropped_events);
  json.Open("status", '{');
  if (!span.status.ok()) {
    json.Member("message", span.status.ToString());
    json.Member("code", 2);  // STATUS_CODE_ERROR; without one it is not set, as for all others.
  }
  json.Close('}');
  json.Close('}');
}

bool IsWorthAnotherAttempt(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kResourceExhausted ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

}  // namespace

std::string OtlpSpans::BodyOf(std::string_view service_name, std::span<const Attribute> resource,
                              std::span<const SpanRecord> spans) {
  Json json;
  json.Open('{');
  json.Open("resourceSpans", '[');
  json.Open('{');
  json.Open("resource", '{');
  json.Open("attributes", '[');
  AddAttribute(json, "service.name", service_name);
  for (const Attribute& attribute : resource) AddAttribute(json, attribute.key, attribute.value);
  json.Close(']');
  json.Close('}');
  json.Open("scopeSpans", '[');
  json.Open('{');
  json.Open("scope", '{');
  json.Member("name", std::string_view("bobbin"));
  json.Close('}');
  json.Open("spans", '[');
  for (const SpanRecord& span : spans) AddSpan(json, span);
  json.Close(']');
  json.Close('}');
  json.Close(']');
  json.Close('}');
  json.Close(']');
  json.Close('}');
  return std::move(json).Take();
}

struct OtlpSpans::Core {
  explicit Core(OtlpOptions otlp_options)
      : options(std::move(otlp_options)),
        batcher({.name = "otlp",
                 .queue_max = options.queue_max,
                 .batch_max = options.batch_max,
                 .interval = options.interval,
                 .stop_budget = options.stop_budget},
                MakeWrite(options)) {}

  // What the thread uses is its own: it may outlive this.
  static internal::Batcher<SpanRecord>::Write MakeWrite(OtlpOptions& options) {
    return [send = std::move(options.send), service_name = options.service_name,
            resource = options.resource, attempts_max = options.attempts_max,
            attempt_max = options.attempt_max, first_pause = options.first_pause](
               std::vector<SpanRecord>& batch, Event& stop) mutable {
      const std::string body = BodyOf(service_name, resource, batch);
      std::chrono::nanoseconds pause = first_pause;
      for (int attempt = 1;; ++attempt) {
        const bool is_last = attempt == attempts_max || stop.IsSet();
        absl::Status sent;
        {
          const DeadlineScope scope(attempt_max);
          sent = send(body);
        }
        if (sent.ok() || is_last || !IsWorthAnotherAttempt(sent)) return sent;
        stop.WaitUntil(Deadline::After(pause)).IgnoreError();
        pause *= 2;
      }
    };
  }

  OtlpOptions options;
  internal::Batcher<SpanRecord> batcher;
};

std::shared_ptr<OtlpSpans> OtlpSpans::Make(OtlpOptions options) {
  BOBBIN_CHECK(options.send != nullptr, "bodies go somewhere");
  BOBBIN_CHECK(options.attempts_max > 0, "there is a first attempt");
  return std::make_shared<OtlpSpans>(std::make_unique<Core>(std::move(options)));
}

OtlpSpans::OtlpSpans(std::unique_ptr<Core> core) : core_(std::move(core)) {}
OtlpSpans::~OtlpSpans() = default;

void OtlpSpans::Add(SpanRecord span) { core_->batcher.Add(std::move(span)); }
absl::Status OtlpSpans::Flush() { return core_->batcher.Flush(); }
absl::Status OtlpSpans::Stop() { return core_->batcher.Stop(); }
StopHook OtlpSpans::StopWith(Lifecycle& life) {
  return life.OnStop({.phase = StopPhase::kResources, .name = "otlp"},
                     [this] { return core_->batcher.Stop(internal::TimeLeft()); });
}
BatchStatistics OtlpSpans::Statistics() const { return core_->batcher.Statistics(); }

}  // namespace bobbin
