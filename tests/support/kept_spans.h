// SPDX-License-Identifier: Apache-2.0
//
// KeptSpans: a sink that keeps what it is given, for tests that look at it.
//
//   Called from   any thread.
//   Suspends      never for long: it has a mutex.

#ifndef BOBBIN_TESTS_SUPPORT_KEPT_SPANS_H_
#define BOBBIN_TESTS_SUPPORT_KEPT_SPANS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/mutex.h>
#include <bobbin/sched/span.h>

namespace bobbin::test {

class KeptSpans final : public SpanSink {
 public:
  void Add(SpanRecord span) override {
    MutexLock lock(mutex_);
    spans_.push_back(std::move(span));
  }
  std::vector<SpanRecord> Take() {
    MutexLock lock(mutex_);
    return std::exchange(spans_, {});
  }
  size_t size() {
    MutexLock lock(mutex_);
    return spans_.size();
  }

 private:
  Mutex mutex_;
  std::vector<SpanRecord> spans_ ABSL_GUARDED_BY(mutex_);
};

// The first one of that name; one without a name if there is none.
inline SpanRecord SpanNamed(const std::vector<SpanRecord>& spans, std::string_view name) {
  for (const SpanRecord& span : spans) {
    if (span.name == name) return span;
  }
  return {};
}

// What is said about it; empty if nothing is.
inline std::string SaidOf(const SpanRecord& span, std::string_view key) {
  for (const Attribute& attribute : span.attributes) {
    if (attribute.key == key) return attribute.value.ToString();
  }
  return {};
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_KEPT_SPANS_H_
