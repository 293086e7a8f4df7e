// SPDX-License-Identifier: Apache-2.0
//
// Span: a piece of work with a beginning and an end, in a trace of such pieces: which request it
// belongs to, what caused it, how long it took, how it went. Tracing: what becomes of them.
//
// A span begins with its scope and ends with it. Its parent is the span in force where it begins:
// that of the scope around it, or that of whoever started the thread by Spawn, a TaskGroup,
// RunBlocking, Submit or Then. So the spans of a request form a tree however many threads work for
// it. Between processes the parent is told by headers (trace_context.h).
//
// Tasks of executors, requests to an http::Server and those of an http::Client have spans by
// themselves (docs/observability.md).
//
// Whether a trace is kept is decided where it begins: the spans inside follow, those of other
// processes, too. Without Tracing, or in a trace that is not kept, a span does nothing but pass the
// trace on.
//
//   Called from   as ContextScope: a span ends on the thread that began it, innermost first. Its
//                 methods: that thread only.
//   Suspends      never, if its sink does not.
//   Lifetime      Spans share the sink: one that ends after its Tracing is handed to the sink all
//                 the same.
//   Cost          One that is kept: two clock reads, three allocations and what the sink does. One
//                 that is not: an allocation. Without Tracing and without a parent: a load, as for
//                 Tracing::IsOn.
//
// Example:
//   bobbin::Span span({.name = "charge", .attributes = {{"order", order.id}}});
//   const absl::Status charged = Charge(order);
//   span.SetStatus(charged);

#ifndef BOBBIN_SCHED_SPAN_H_
#define BOBBIN_SCHED_SPAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/context_value.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/sched/attribute.h>
#include <bobbin/sched/trace_context.h>

namespace bobbin {

enum class SpanKind : uint8_t { kInternal, kServer, kClient, kProducer, kConsumer };

struct SpanEvent {
  absl::Time time;
  std::string name;
  std::vector<Attribute> attributes;
};

// A span that has ended.
struct SpanRecord {
  SpanContext context;
  SpanId parent;  // Not set for the first one of a trace.
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  absl::Time start;
  absl::Time end;
  std::vector<Attribute> attributes;
  std::vector<SpanEvent> events;
  // Those that did not fit in.
  size_t dropped_attributes = 0;
  size_t dropped_events = 0;
  absl::Status status;
};

// Takes spans that have ended.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  // Called by several threads at once, carriers' among them: it must not block.
  virtual void Add(SpanRecord span) = 0;
};

struct TracingOptions {
  std::shared_ptr<SpanSink> sink = nullptr;
  // The part of the traces that begin here which is kept, from 0 to 1.
  double sample_ratio = 1;
};

namespace internal {
class Tracer;
struct CurrentSpan;

// Whether there is a Tracing: written by it, read wherever a span may begin.
extern constinit Atomic<bool> tracing_is_on;
}  // namespace internal

// Has the spans of the process kept, for a scope. There is one at a time; make it before what has
// spans, in main.
class [[nodiscard]] Tracing {
 public:
  // REQUIRES: a sink; no other Tracing.
  explicit Tracing(TracingOptions options);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing();

  // Whether there is one: for who would rather not prepare what nobody keeps.
  static bool IsOn() noexcept {
    // relaxed: who just misses it begins no span.
    return internal::tracing_is_on.load(std::memory_order_relaxed);
  }
};

struct SpanOptions {
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  std::vector<Attribute> attributes = {};
  // The caller in another process; if it is set, it is the parent.
  SpanContext remote_parent = {};
};

class [[nodiscard]] Span {
 public:
  // So many attributes, and so many events, have room in a span; and in an event.
  static constexpr size_t kAttributesMax = 128;
  static constexpr size_t kEventsMax = 128;

  explicit Span(SpanOptions options);
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  // Ends it. If an exception goes through the scope, that is its status.
  ~Span();

  // Whether what is said about it is kept.
  bool is_kept() const { return record_ != nullptr; }
  // Which one it is, to be told to others; not set without Tracing and without a parent.
  const SpanContext& context() const { return context_; }

  // Another name, for what is found out while it goes on.
  void Rename(std::string_view name);
  // Says something about it; of two with one key, the later one.
  void Set(std::string_view key, AttributeValue value);
  // Something has happened, now.
  void AddEvent(std::string_view name, std::vector<Attribute> attributes = {});
  // How it went; the first status that is not OK stays.
  void SetStatus(const absl::Status& status);

  // The span in force for the calling thread; null outside of any. It is good until its scope ends,
  // or the body that has inherited it.
  static const SpanContext* Current();
  // Whether one that the calling thread begins might be kept: not without Tracing, nor in a trace
  // that is not kept.
  static bool MayBeKept();

 private:
  SpanContext context_;
  std::shared_ptr<const internal::Tracer> tracer_;
  std::unique_ptr<SpanRecord> record_;
  MonotonicTime begun_;
  int exceptions_ = 0;  // In flight when it began.
  std::optional<ContextScope<internal::CurrentSpan>> scope_;
};

// What is done in its scope, and what is started there, has no spans and belongs to no trace: for
// what sends the spans away, whose own would never come to an end. The threads of JsonLines and
// OtlpSpans work in one.
class [[nodiscard]] UntracedScope {
 public:
  UntracedScope();
  UntracedScope(const UntracedScope&) = delete;
  UntracedScope& operator=(const UntracedScope&) = delete;

 private:
  const ContextScope<internal::CurrentSpan> scope_;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_SPAN_H_
