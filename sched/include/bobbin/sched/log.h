// SPDX-License-Identifier: Apache-2.0
//
// Log: a line of the program's log, with fields. LogFields: fields of every line that is written in
// a scope, and by what is started there. LogSink: where the lines go.
//
// A line has a level, a text, its own fields, those in force, and the ids of the span it was
// written in. Until SetLogging says otherwise, lines from kInfo on go to standard error, as text.
//
// Where the program has set a sink, what the libraries have to say - a failure that nobody hears
// of, a carrier that is held, accepting that stands still, the phases of a stop - are lines, too.
// Else it goes to standard error, after "bobbin: ". docs/observability.md has the list.
//
//   Called from   Log: any thread; a sink is called on the same one, which may be the libraries'
//                 own. LogFields: as ContextScope.
//   Suspends      as the sink does; standard error blocks while it is full. See JsonLines for one
//                 that does not.
//   Memory        Fields do not change, so that threads share them.
//   Lifetime      A sink lives as long as it is set, and until the calls in it have ended.
//   Cost          A line below the level: a load. LogFields: a copy of the fields around it.
//
// Example:
//   const bobbin::LogFields fields({{"order", order.id}});
//   group.Spawn([&] { Charge(order); });   // Its lines, too, say which order.
//   bobbin::Log(bobbin::LogLevel::kInfo, "accepted", {{"items", order.items.size()}});

#ifndef BOBBIN_SCHED_LOG_H_
#define BOBBIN_SCHED_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

#include <bobbin/core/context_value.h>
#include <bobbin/sched/attribute.h>
#include <bobbin/sched/trace_context.h>

namespace bobbin {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
// "INFO"
std::string_view LogLevelName(LogLevel level);

struct LogRecord {
  absl::Time time;
  LogLevel level = LogLevel::kInfo;
  std::string text;
  // Those in force, the outermost first, then the line's own. Of several with one key, the last.
  std::vector<Attribute> fields;
  // The span it was written in; not set outside of any.
  SpanContext span;

  // "2026-11-30T21:05:00.123Z INFO accepted order=17 trace=0af7..."
  std::string ToString() const;
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  // Called by several threads at once. It may wait, and holds up whoever logs as long.
  virtual void Add(const LogRecord& record) = 0;
};

struct LogOptions {
  // Null is standard error.
  std::shared_ptr<LogSink> sink = nullptr;
  LogLevel level = LogLevel::kInfo;
};

// Where lines go from now on, in the whole process.
void SetLogging(LogOptions options);

void Log(LogLevel level, std::string_view text, std::vector<Attribute> fields = {});

class [[nodiscard]] LogFields {
 public:
  explicit LogFields(std::vector<Attribute> fields);
  LogFields(const LogFields&) = delete;
  LogFields& operator=(const LogFields&) = delete;

  // Those in force for the calling thread, the outermost first.
  static std::vector<Attribute> Current();

 private:
  const ContextScope<std::vector<Attribute>> scope_;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_LOG_H_
