// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/sched/span.h>

namespace bobbin {

namespace internal {

// What the spans of one Tracing share.
class Tracer {
 public:
  explicit Tracer(TracingOptions options)
      : sink_(std::move(options.sink)),
        sample_ratio_(options.sample_ratio),
        state_(uint64_t{std::random_device()()} << 32 | std::random_device()()) {}

  SpanSink& sink() const { return *sink_; }
  SpanId NewSpanId() const { return {.value = Random()}; }
  TraceId NewTraceId() const { return {.high = Random(), .low = Random()}; }
  // Decides by the id, so that whoever else decides by it comes to the same end.
  bool Keeps(const TraceId& id) const {
    constexpr double kUnit = 1.0 / (uint64_t{1} << 53);
    return static_cast<double>(id.low >> 11) * kUnit < sample_ratio_;
  }

 private:
  // SplitMix64; never zero, which is no id.
  uint64_t Random() const {
    constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
    while (true) {
      // relaxed: each caller gets another number, whatever the order.
      uint64_t mixed = state_.fetch_add(kStep, std::memory_order_relaxed);
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
      mixed ^= mixed >> 31;
      if (mixed != 0) return mixed;
    }
  }

  const std::shared_ptr<SpanSink> sink_;
  const double sample_ratio_;
  mutable Atomic<uint64_t> state_;  // Moved on by every span that begins.
};

struct CurrentSpan {
  SpanContext context;                   // Not set in an UntracedScope.
  std::shared_ptr<const Tracer> tracer;  // Null if the trace only passes through.

  bool is_untraced() const { return !context.is_set(); }
};

// Written by Tracing with the lock, read by whoever may begin a span; it orders nothing.
constinit Atomic<bool> tracing_is_on{false};

}  // namespace internal

namespace {

constinit const ContextValue<internal::CurrentSpan> current_span;

// The Tracing of the process. Never destroyed: spans may begin to the very end.
struct TracerOfProcess {
  internal::SpinLock lock;
  std::shared_ptr<const internal::Tracer> tracer ABSL_GUARDED_BY(lock);

  static TracerOfProcess& Get() {
    static TracerOfProcess& tracer = *std::make_unique<TracerOfProcess>().release();
    return tracer;
  }
  static std::shared_ptr<const internal::Tracer> Tracer() {
    if (!Tracing::IsOn()) return nullptr;
    TracerOfProcess& process = Get();
    internal::SpinLockHolder hold(process.lock);
    return process.tracer;
  }
};

void SetIn(std::vector<Attribute>& attributes, std::string_view key, AttributeValue value,
           size_t& dropped) {
  const auto same = std::find_if(attributes.begin(), attributes.end(),
                                 [&](const Attribute& attribute) { return attribute.key == key; });
  if (same != attributes.end()) {
    same->value = std::move(value);
  } else if (attributes.size() < Span::kAttributesMax) {
    attributes.push_back({.key = std::string(key), .value = std::move(value)});
  } else {
    ++dropped;
  }
}

}  // namespace

Tracing::Tracing(TracingOptions options) {
  BOBBIN_CHECK(options.sink != nullptr, "spans go somewhere");
  auto tracer = std::make_shared<const internal::Tracer>(std::move(options));
  TracerOfProcess& process = TracerOfProcess::Get();
  internal::SpinLockHolder hold(process.lock);
  BOBBIN_CHECK(process.tracer == nullptr, "there is one Tracing at a time");
  process.tracer = std::move(tracer);
  internal::tracing_is_on.store(true);
}

Tracing::~Tracing() {
  std::shared_ptr<const internal::Tracer> ends_without_the_lock;
  TracerOfProcess& process = TracerOfProcess::Get();
  internal::SpinLockHolder hold(process.lock);
  internal::tracing_is_on.store(false);
  ends_without_the_lock.swap(process.tracer);
}

Span::Span(SpanOptions options) {
  const internal::CurrentSpan* const outer = current_span.Get();
  if (outer != nullptr && outer->is_untraced()) return;
  const bool is_remote = options.remote_parent.is_set();
  if (is_remote) {
    context_ = std::move(options.remote_parent);
  } else if (outer != nullptr) {
    context_ = outer->context;
  }
  tracer_ =
      outer != nullptr && outer->tracer != nullptr ? outer->tracer : TracerOfProcess::Tracer();

  // A trace that is not kept here is passed on as it came.
  const bool is_first = !context_.is_set();
  if (is_first && tracer_ == nullptr) return;
  if (is_first) {
    context_.trace_id = tracer_->NewTraceId();
    context_.is_sampled = tracer_->Keeps(context_.trace_id);
  }
  const SpanId parent = context_.span_id;
  if (tracer_ == nullptr || (!is_first && !context_.is_sampled)) {
    if (is_remote) scope_.emplace(current_span, internal::CurrentSpan{context_, tracer_});
    return;
  }
  context_.span_id = tracer_->NewSpanId();
  scope_.emplace(current_span, internal::CurrentSpan{context_, tracer_});
  if (!context_.is_sampled) return;

  record_ = std::make_unique<SpanRecord>();
  record_->context = context_;
  record_->parent = parent;
  record_->name = std::move(options.name);
  record_->kind = options.kind;
  for (Attribute& attribute : options.attributes) Set(attribute.key, std::move(attribute.value));
  exceptions_ = std::uncaught_exceptions();
  begun_ = MonotonicNow();
  record_->start = absl::Now();
}

Span::~Span() {
  if (record_ == nullptr) return;
  // The wall clock may be set meanwhile; the length is right all the same.
  record_->end = record_->start + absl::FromChrono(MonotonicNow() - begun_);
  if (std::uncaught_exceptions() > exceptions_) {
    SetStatus(absl::UnknownError("it ended with an exception"));
  }
  tracer_->sink().Add(std::move(*record_));
}

void Span::Rename(std::string_view name) {
  if (record_ != nullptr) record_->name = name;
}

void Span::Set(std::string_view key, AttributeValue value) {
  if (record_ == nullptr) return;
  SetIn(record_->attributes, key, std::move(value), record_->dropped_attributes);
}

void Span::AddEvent(std::string_view name, std::vector<Attribute> attributes) {
  if (record_ == nullptr) return;
  if (record_->events.size() == kEventsMax) {
    ++record_->dropped_events;
    return;
  }
  SpanEvent event{.time = record_->start + absl::FromChrono(MonotonicNow() - begun_),
                  .name = std::string(name),
                  .attributes = {}};
  for (Attribute& attribute : attributes) {
    SetIn(event.attributes, attribute.key, std::move(attribute.value), record_->dropped_attributes);
  }
  record_->events.push_back(std::move(event));
}

void Span::SetStatus(const absl::Status& status) {
  if (record_ != nullptr) record_->status.Update(status);
}

const SpanContext* Span::Current() {
  const internal::CurrentSpan* const current = current_span.Get();
  return current == nullptr || current->is_untraced() ? nullptr : &current->context;
}

bool Span::MayBeKept() {
  if (!Tracing::IsOn()) return false;
  const internal::CurrentSpan* const outer = current_span.Get();
  // A trace that begins here is decided on by its span.
  return outer == nullptr || outer->context.is_sampled;
}

UntracedScope::UntracedScope() : scope_(current_span, internal::CurrentSpan{}) {}

}  // namespace bobbin
