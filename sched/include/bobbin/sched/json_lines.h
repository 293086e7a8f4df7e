// SPDX-License-Identifier: Apache-2.0
//
// JsonLines: a sink that writes spans and log lines to a file or to standard error, each as a line
// of JSON.
//
// A platform thread of its own writes them, some at a time, so that no carrier waits for a disk or
// a pipe. What does not fit into the queue is dropped and counted.
//
//   Called from   any thread, except carriers' own stacks; Add and Statistics: there, too.
//   Suspends      Open; Flush, until what came before it is written; Stop and the destructor, until
//                 all is written or the budget is spent. Add never.
//   Cancellation  Open and Flush obey it.
//   Errors        Open: the file cannot be opened. Stop, DEADLINE_EXCEEDED: the budget is spent,
//                 and what was left is dropped.
//   Lifetime      Shared: hold a reference, and it stops when the last one goes.
//   Cost          Add: the record is moved, under a spin lock. Some 2 us for each on the thread.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto lines, bobbin::JsonLines::Open({.path = "trace.jsonl"}));
//   bobbin::SetLogging({.sink = lines});
//   const bobbin::Tracing tracing({.sink = lines});

#ifndef BOBBIN_SCHED_JSON_LINES_H_
#define BOBBIN_SCHED_JSON_LINES_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/sched/batch_statistics.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/span.h>

namespace bobbin {

struct JsonLinesOptions {
  // The file to append to; empty is standard error.
  std::string path = {};
  // In the place of a file: gets several lines at once, each with its end, on the sink's thread.
  absl::AnyInvocable<absl::Status(std::string_view lines)> write = {};
  // The name of the thread.
  std::string name = "json-lines";
  size_t queue_max = 8192;
  size_t batch_max = 512;
  // So long a line waits for others at most.
  std::chrono::nanoseconds interval = std::chrono::milliseconds(200);
  // For Stop and the destructor.
  std::chrono::nanoseconds stop_budget = std::chrono::seconds(5);
};

class JsonLines final : public SpanSink, public LogSink {
 private:
  struct Core;

 public:
  static absl::StatusOr<std::shared_ptr<JsonLines>> Open(JsonLinesOptions options);
  explicit JsonLines(std::unique_ptr<Core> core);  // For Open.
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;
  ~JsonLines() override;

  void Add(SpanRecord span) override;
  void Add(const LogRecord& record) override;

  // Waits until what was added before is written.
  absl::Status Flush();
  // Writes what is there; what comes later is dropped.
  absl::Status Stop();
  // Has what is there written when the program stops, among the resources, and again by the
  // destructor: what others have to say of their end comes later. Where that does not end in time
  // it stops, and what is left is dropped. The hook must go before this does.
  StopHook FlushWith(Lifecycle& life);
  BatchStatistics Statistics() const;

  // The lines, without their ends.
  static std::string LineOf(const SpanRecord& span);
  static std::string LineOf(const LogRecord& record);

 private:
  const std::unique_ptr<Core> core_;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_JSON_LINES_H_
