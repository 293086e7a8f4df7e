// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/span.h>

namespace bobbin {

namespace {

constinit const ContextValue<std::vector<Attribute>> fields_in_force;

class StandardError final : public LogSink {
 public:
  void Add(const LogRecord& record) override { fmt::print(stderr, "{}\n", record.ToString()); }
};

// Where the lines of the process go. Never destroyed: threads may log to the very end.
struct Logging {
  // Read for each line; written by SetLogging. A line that just sees the other one is no harm.
  internal::Atomic<LogLevel> level{LogLevel::kInfo};

  internal::SpinLock lock;
  std::shared_ptr<LogSink> sink ABSL_GUARDED_BY(lock) = std::make_shared<StandardError>();
  bool is_programs_own ABSL_GUARDED_BY(lock) = false;  // The sink.

  static Logging& Get() {
    static Logging& logging = *std::make_unique<Logging>().release();
    return logging;
  }
};

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
  }
  return "?";
}

std::string LogRecord::ToString() const {
  std::string line =
      fmt::format("{} {} {}", absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", time, absl::UTCTimeZone()),
                  LogLevelName(level), text);
  for (const Attribute& field : fields) {
    line += fmt::format(" {}={}", field.key, field.value.ToString());
  }
  if (span.is_set()) line += fmt::format(" trace={}", span.trace_id.ToString());
  return line;
}

void SetLogging(LogOptions options) {
  const bool is_programs_own = options.sink != nullptr;
  if (!is_programs_own) options.sink = std::make_shared<StandardError>();
  Logging& logging = Logging::Get();
  logging.level.store(options.level);
  {
    internal::SpinLockHolder hold(logging.lock);
    logging.sink.swap(options.sink);
    logging.is_programs_own = is_programs_own;
  }
  // The old sink ends here, without the lock: what it does then takes a while.
}

void Log(LogLevel level, std::string_view text, std::vector<Attribute> fields) {
  Logging& logging = Logging::Get();
  if (level < logging.level.load()) return;
  LogRecord record{.time = absl::Now(),
                   .level = level,
                   .text = std::string(text),
                   .fields = LogFields::Current(),
                   .span = {}};
  for (Attribute& field : fields) record.fields.push_back(std::move(field));
  if (const SpanContext* const span = Span::Current()) record.span = *span;

  std::shared_ptr<LogSink> sink;
  {
    internal::SpinLockHolder hold(logging.lock);
    sink = logging.sink;
  }
  sink->Add(record);
}

namespace internal {

void Tell(Notice notice) {
  Logging& logging = Logging::Get();
  bool is_line;
  {
    SpinLockHolder hold(logging.lock);
    is_line = logging.is_programs_own;
  }
  if (is_line) {
    if (!notice.stack.empty()) notice.fields.push_back({"stack", notice.stack});
    Log(notice.level, notice.text, std::move(notice.fields));
    return;
  }
  // At once, so that nothing comes in between.
  const std::string text = fmt::format("bobbin: {}\n{}", notice.text, notice.stack);
  std::fputs(text.c_str(), stderr);
}

}  // namespace internal

LogFields::LogFields(std::vector<Attribute> fields)
    : scope_(fields_in_force, [&] {
        std::vector<Attribute> all = Current();
        for (Attribute& field : fields) all.push_back(std::move(field));
        return all;
      }()) {}

std::vector<Attribute> LogFields::Current() {
  const std::vector<Attribute>* const fields = fields_in_force.Get();
  return fields == nullptr ? std::vector<Attribute>() : *fields;
}

}  // namespace bobbin
