// SPDX-License-Identifier: Apache-2.0

#include "io/src/http/spans.h"

#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/io/host_port.h>
#include <bobbin/sched/trace_context.h>

#include "io/src/http/ascii.h"
#include "io/src/http/output.h"

namespace bobbin::io::http::internal {

namespace {

constexpr std::string_view kTraceParent = "traceparent";
constexpr std::string_view kTraceState = "tracestate";

// As the conventions want it: a method that nobody knows is no name for a series.
std::string_view NameOf(std::string_view method) {
  return IsKnownMethod(method) ? method : std::string_view("_OTHER");
}

// Who the request says is its caller; not set if it says nothing, or nothing that is right.
SpanContext CallerOf(const RequestHead& head) {
  const std::optional<std::string_view> parent = head.Find(kTraceParent);
  if (!parent.has_value()) return {};
  std::string state;
  for (const FieldView& field : head.fields) {
    if (!IsSame(field.name, kTraceState)) continue;
    if (!state.empty()) state += ',';
    state += field.value;
  }
  absl::StatusOr<SpanContext> caller = ParseTraceContext(*parent, state);
  return caller.ok() ? *std::move(caller) : SpanContext();
}

std::string Digits(int status) { return fmt::format("{}", status); }

}  // namespace

// --- ServerSpan

ServerSpan::ServerSpan(const RequestHead& head, std::string_view scheme, std::string_view path,
                       const absl::StatusOr<SocketAddress>& peer)
    : span_({.name = std::string(head.method),
             .kind = SpanKind::kServer,
             .remote_parent = CallerOf(head)}) {
  if (!span_.is_kept()) return;
  span_.Set("http.request.method", NameOf(head.method));
  if (NameOf(head.method) != head.method) {
    span_.Set("http.request.method_original", head.method);
  }
  span_.Set("url.scheme", scheme);
  span_.Set("url.path", path);
  span_.Set("network.protocol.version", head.minor_version == 0 ? "1.0" : "1.1");
  if (const auto host = head.Find("Host")) {
    if (const auto parts = HostPort::Split(*host); parts.ok()) {
      span_.Set("server.address", parts->host);
      span_.Set("server.port", parts->port);
    } else {
      span_.Set("server.address", *host);
    }
  }
  if (const auto agent = head.Find("User-Agent")) span_.Set("user_agent.original", *agent);
  if (peer.ok()) {
    const std::string address = peer->HostToString();
    span_.Set("client.address", address);
    span_.Set("network.peer.address", address);
    span_.Set("network.peer.port", peer->port());
  }
}

void ServerSpan::End(std::string_view method, std::string_view route, int status,
                     const absl::Status& sent) {
  if (!span_.is_kept()) return;
  const std::string_view name = IsKnownMethod(method) ? method : std::string_view("HTTP");
  if (route.empty()) {
    span_.Rename(name);
  } else {
    span_.Rename(fmt::format("{} {}", name, route));
    span_.Set("http.route", route);
  }
  span_.Set("http.response.status_code", status);
  if (!sent.ok()) {
    span_.Set("error.type", absl::StatusCodeToString(sent.code()));
    span_.SetStatus(sent);
  } else if (status >= 500) {
    span_.Set("error.type", Digits(status));
    span_.SetStatus(MakeStatus(absl::StatusCode::kInternal, fmt::format("answered {}", status)));
  }
}

// --- ClientSpan

ClientSpan::ClientSpan(std::string_view method, const Url& url, int resends)
    : span_({.name = std::string(IsKnownMethod(method) ? method : std::string_view("HTTP")),
             .kind = SpanKind::kClient}) {
  if (!span_.is_kept()) return;
  span_.Set("http.request.method", NameOf(method));
  if (NameOf(method) != method) span_.Set("http.request.method_original", method);
  span_.Set("server.address", url.host);
  span_.Set("server.port", url.port);
  span_.Set("url.full", fmt::format("{}://{}{}", url.scheme(), url.authority,
                                    std::string_view(url.target).substr(0, url.target.find('?'))));
  if (resends > 0) span_.Set("http.request.resend_count", resends);
}

void ClientSpan::End(int status) {
  if (!span_.is_kept()) return;
  span_.Set("http.response.status_code", status);
  if (status < 400) return;
  span_.Set("error.type", Digits(status));
  span_.SetStatus(
      MakeStatus(absl::StatusCode::kUnknown, fmt::format("the server says {}", status)));
}

void ClientSpan::End(const absl::Status& failure) {
  if (!span_.is_kept()) return;
  span_.Set("error.type", absl::StatusCodeToString(failure.code()));
  span_.SetStatus(failure);
}

void AppendTrace(const Fields& fields, std::string& text) {
  const SpanContext* const span = Span::Current();
  if (span == nullptr || fields.Find(kTraceParent).has_value()) return;
  AppendField(kTraceParent, TraceParentOf(*span), text);
  if (!span->trace_state.empty() && IsFieldValue(span->trace_state)) {
    AppendField(kTraceState, span->trace_state, text);
  }
}

}  // namespace bobbin::io::http::internal
