// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <bobbin/core/status.h>
#include <bobbin/sched/json_lines.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/run_blocking.h>

#include "sched/src/batcher.h"
#include "sched/src/json.h"

namespace bobbin {

namespace {

std::string_view KindName(SpanKind kind) {
  switch (kind) {
    case SpanKind::kInternal:
      return "internal";
    case SpanKind::kServer:
      return "server";
    case SpanKind::kClient:
      return "client";
    case SpanKind::kProducer:
      return "producer";
    case SpanKind::kConsumer:
      return "consumer";
  }
  return "?";
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

// Of several attributes with one key, the last.
void AddAttributes(internal::Json& json, std::string_view name,
                   const std::vector<Attribute>& attributes) {
  if (attributes.empty()) return;
  json.Open(name, '{');
  for (auto at = attributes.begin(); at != attributes.end(); ++at) {
    const bool is_last = std::none_of(at + 1, attributes.end(),
                                      [&](const Attribute& later) { return later.key == at->key; });
    if (!is_last) continue;
    const AttributeValue& value = at->value;
    if (value.text() != nullptr) json.Member(at->key, *value.text());
    if (value.truth() != nullptr) json.Member(at->key, *value.truth());
    if (value.integer() != nullptr) json.Member(at->key, *value.integer());
    if (value.number() != nullptr) json.Member(at->key, *value.number());
  }
  json.Close('}');
}

using Line = std::variant<SpanRecord, LogRecord>;

class FileWriter {
 public:
  // Takes it over; null is standard error.
  explicit FileWriter(std::FILE* file) : file_(file) {}
  FileWriter(FileWriter&& other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter() {
    if (file_ != nullptr) std::fclose(file_);
  }

  absl::Status operator()(std::string_view lines) {
    std::FILE* const file = file_ == nullptr ? stderr : file_;
    const bool is_written = std::fwrite(lines.data(), 1, lines.size(), file) == lines.size();
    if (!is_written || std::fflush(file) != 0) {
      std::clearerr(file);
      return MakeStatus(absl::StatusCode::kUnavailable, "write lines: they could not be written");
    }
    return absl::OkStatus();
  }

 private:
  std::FILE* file_;
};

}  // namespace

struct JsonLines::Core {
  explicit Core(JsonLinesOptions options)
      : batcher({.name = std::move(options.name),
                 .queue_max = options.queue_max,
                 .batch_max = options.batch_max,
                 .interval = options.interval,
                 .stop_budget = options.stop_budget},
                [write = std::move(options.write)](std::vector<Line>& batch, Event&) mutable {
                  std::string lines;
                  for (const Line& line : batch) {
                    lines += std::visit([](const auto& record) { return LineOf(record); }, line);
                    lines += '\n';
                  }
                  return write(lines);
                }) {}

  internal::Batcher<Line> batcher;
};

absl::StatusOr<std::shared_ptr<JsonLines>> JsonLines::Open(JsonLinesOptions options) {
  if (options.write == nullptr) {
    std::FILE* file = nullptr;
    if (!options.path.empty()) {
      BOBBIN_ASSIGN_OR_RETURN(file, RunBlocking([&]() -> absl::StatusOr<std::FILE*> {
                                std::FILE* const opened = std::fopen(options.path.c_str(), "ae");
                                if (opened == nullptr)
                                  return ErrnoStatus(errno, "open " + options.path);
                                return opened;
                              }));
    }
    options.write = FileWriter(file);
  }
  return std::make_shared<JsonLines>(std::make_unique<Core>(std::move(options)));
}

JsonLines::JsonLines(std::unique_ptr<Core> core) : core_(std::move(core)) {}
JsonLines::~JsonLines() = default;

void JsonLines::Add(SpanRecord span) { core_->batcher.Add(std::move(span)); }
void JsonLines::Add(const LogRecord& record) { core_->batcher.Add(record); }
absl::Status JsonLines::Flush() { return core_->batcher.Flush(); }
absl::Status JsonLines::Stop() { return core_->batcher.Stop(); }
StopHook JsonLines::FlushWith(Lifecycle& life) {
  return life.OnStop({.phase = StopPhase::kResources, .name = "json lines"}, [this] {
    const absl::Status flushed = Flush();
    return flushed.ok() ? flushed : core_->batcher.Stop(std::chrono::nanoseconds::zero());
  });
}
BatchStatistics JsonLines::Statistics() const { return core_->batcher.Statistics(); }

std::string JsonLines::LineOf(const SpanRecord& span) {
  internal::Json json;
  json.Open('{');
  json.Member("type", std::string_view("span"));
  json.Member("name", span.name);
  json.Member("trace", span.context.trace_id.ToString());
  json.Member("span", span.context.span_id.ToString());
  if (span.parent.is_set()) json.Member("parent", span.parent.ToString());
  json.Member("kind", KindName(span.kind));
  json.Member("start", TimeText(span.start));
  json.Member("nanoseconds", absl::ToInt64Nanoseconds(span.end - span.start));
  json.Member("ok", span.status.ok());
  if (!span.status.ok()) json.Member("error", span.status.ToString());
  AddAttributes(json, "attributes", span.attributes);
  if (!span.events.empty()) {
    json.Open("events", '[');
    for (const SpanEvent& event : span.events) {
      json.Open('{');
      json.Member("name", event.name);
      json.Member("time", TimeText(event.time));
      AddAttributes(json, "attributes", event.attributes);
      json.Close('}');
    }
    json.Close(']');
  }
  if (span.dropped_attributes > 0) json.Member("droppedAttributes", span.dropped_attributes);
  if (span.dropped_events > 0) json.Member("droppedEvents", span.dropped_events);
  json.Close('}');
  return std::move(json).Take();
}

std::string JsonLines::LineOf(const LogRecord& record) {
  internal::Json json;
  json.Open('{');
  json.Member("type", std::string_view("log"));
  json.Member("time", TimeText(record.time));
  json.Member("level", LogLevelName(record.level));
  json.Member("text", record.text);
  if (record.span.is_set()) {
    json.Member("trace", record.span.trace_id.ToString());
    json.Member("span", record.span.span_id.ToString());
  }
  AddAttributes(json, "fields", record.fields);
  json.Close('}');
  return std::move(json).Take();
}

}  // namespace bobbin
