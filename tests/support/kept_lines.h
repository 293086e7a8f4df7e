// SPDX-License-Identifier: Apache-2.0
//
// KeptLines: has the lines of the log kept, as long as it lives, for tests that look at them.
//
//   Called from   any thread. One at a time.
//   Suspends      never for long: it has a mutex.

#ifndef BOBBIN_TESTS_SUPPORT_KEPT_LINES_H_
#define BOBBIN_TESTS_SUPPORT_KEPT_LINES_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/mutex.h>
#include <bobbin/sched/log.h>

namespace bobbin::test {

class KeptLines {
 public:
  explicit KeptLines(LogLevel level = LogLevel::kInfo) {
    SetLogging({.sink = kept_, .level = level});
  }
  KeptLines(const KeptLines&) = delete;
  KeptLines& operator=(const KeptLines&) = delete;
  ~KeptLines() { SetLogging({}); }

  // Those that have `part` in their text.
  std::vector<LogRecord> With(std::string_view part) const {
    MutexLock lock(kept_->mutex);
    std::vector<LogRecord> found;
    for (const LogRecord& record : kept_->records) {
      if (record.text.find(part) != record.text.npos) found.push_back(record);
    }
    return found;
  }

 private:
  struct Sink final : LogSink {
    void Add(const LogRecord& record) override {
      MutexLock lock(mutex);
      records.push_back(record);
    }
    Mutex mutex;
    std::vector<LogRecord> records ABSL_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Sink> kept_ = std::make_shared<Sink>();
};

// The value of a field; empty if it has none.
inline std::string FieldOf(const LogRecord& record, std::string_view key) {
  for (const Attribute& field : record.fields) {
    if (field.key == key) return field.value.ToString();
  }
  return {};
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_KEPT_LINES_H_
