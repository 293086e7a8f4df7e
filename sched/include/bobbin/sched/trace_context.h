// SPDX-License-Identifier: Apache-2.0
//
// SpanContext: which span of which trace something belongs to, as processes tell each other in the
// headers `traceparent` and `tracestate` of W3C Trace Context.
//
//   Called from   any thread: these are values.
//   Suspends      never.
//   Errors        ParseTraceParent, INVALID_ARGUMENT: start a trace of your own then, as the
//                 standard asks; no request is refused for it.
//
// Example:
//   const auto parent = bobbin::ParseTraceParent(header);
//   const bobbin::Span span({.name = "GET /orders",
//                            .kind = bobbin::SpanKind::kServer,
//                            .remote_parent = parent.ok() ? *parent : bobbin::SpanContext()});

#ifndef BOBBIN_SCHED_TRACE_CONTEXT_H_
#define BOBBIN_SCHED_TRACE_CONTEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bobbin {

struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;
  // Zero is no id.
  bool is_set() const { return (high | low) != 0; }
  // 32 hexadecimal digits.
  std::string ToString() const;
  friend bool operator==(const TraceId&, const TraceId&) = default;
};

struct SpanId {
  uint64_t value = 0;
  bool is_set() const { return value != 0; }
  // 16 hexadecimal digits.
  std::string ToString() const;
  friend bool operator==(const SpanId&, const SpanId&) = default;
};

struct SpanContext {
  TraceId trace_id = {};
  SpanId span_id = {};
  // Whether whoever began the trace keeps it.
  bool is_sampled = false;
  // What other systems want to be told again; passed on as it is.
  std::string trace_state = {};

  bool is_set() const { return trace_id.is_set() && span_id.is_set(); }
  friend bool operator==(const SpanContext&, const SpanContext&) = default;
};

// Reads a `traceparent`. Of a version that is newer than 00, what 00 knows; without a trace_state.
absl::StatusOr<SpanContext> ParseTraceParent(std::string_view header);
// Reads both headers. A `tracestate` that is not right is left out; several headers of that name
// are joined with commas before.
absl::StatusOr<SpanContext> ParseTraceContext(std::string_view trace_parent,
                                              std::string_view trace_state);

// The header `traceparent` for a call in `context`. REQUIRES: context.is_set().
std::string TraceParentOf(const SpanContext& context);

}  // namespace bobbin

#endif  // BOBBIN_SCHED_TRACE_CONTEXT_H_
