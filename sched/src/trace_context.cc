// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/trace_context.h>

#include "sched/src/letters.h"
#include "sched/src/limits.h"

namespace bobbin {

namespace {

using internal::IsDigit;
using internal::IsLowerCase;

// Lower-case digits only, as the standard has it.
std::optional<uint64_t> ParseHex(std::string_view text) {
  uint64_t number = 0;
  for (char c : text) {
    if (!IsDigit(c) && !(c >= 'a' && c <= 'f')) return std::nullopt;
    number = number << 4 | static_cast<uint64_t>(IsDigit(c) ? c - '0' : c - 'a' + 10);
  }
  return number;
}

absl::Status WrongParent(std::string_view why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, fmt::format("parse traceparent: {}", why));
}

std::string_view WithoutSpace(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

bool IsKeyPart(std::string_view part, size_t length_max) {
  return !part.empty() && part.size() <= length_max && (IsLowerCase(part[0]) || IsDigit(part[0])) &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return IsLowerCase(c) || IsDigit(c) || c == '_' || c == '-' || c == '*' || c == '/';
         });
}

// vendor, or tenant@vendor.
bool IsKey(std::string_view key) {
  const size_t at = key.find('@');
  if (at == key.npos) return IsKeyPart(key, 256);
  return IsKeyPart(key.substr(0, at), 241) && IsKeyPart(key.substr(at + 1), 14);
}

bool IsValue(std::string_view value) {
  return !value.empty() && value.size() <= 256 && value.back() != ' ' &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

// What of a tracestate is passed on: all of it, or nothing if something in it is wrong.
std::string PassedOn(std::string_view header) {
  std::set<std::string_view> keys;
  std::string passed;
  while (!header.empty()) {
    const size_t comma = std::min(header.find(','), header.size());
    const std::string_view member = WithoutSpace(header.substr(0, comma));
    header.remove_prefix(std::min(comma + 1, header.size()));
    if (member.empty()) continue;
    const size_t equals = member.find('=');
    if (equals == member.npos) return {};
    const std::string_view key = member.substr(0, equals);
    const bool is_right = IsKey(key) && IsValue(member.substr(equals + 1));
    if (!is_right || !keys.insert(key).second) return {};
    if (keys.size() > internal::kTraceStateMembersMax) return {};
    if (!passed.empty()) passed += ',';
    passed += member;
  }
  return passed;
}

}  // namespace

std::string TraceId::ToString() const { return fmt::format("{:016x}{:016x}", high, low); }
std::string SpanId::ToString() const { return fmt::format("{:016x}", value); }

absl::StatusOr<SpanContext> ParseTraceParent(std::string_view header) {
  // vv-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff
  constexpr size_t kLength = 55;
  const std::string_view text = WithoutSpace(header);
  if (text.size() < kLength) return WrongParent("it is too short");
  if (text[2] != '-' || text[35] != '-' || text[52] != '-') return WrongParent("a dash is missing");
  const std::optional<uint64_t> version = ParseHex(text.substr(0, 2));
  const std::optional<uint64_t> high = ParseHex(text.substr(3, 16));
  const std::optional<uint64_t> low = ParseHex(text.substr(19, 16));
  const std::optional<uint64_t> span = ParseHex(text.substr(36, 16));
  const std::optional<uint64_t> flags = ParseHex(text.substr(53, 2));
  if (!version || !high || !low || !span || !flags) {
    return WrongParent("a digit is not one of 0 to 9 and a to f");
  }
  if (*version == 0xff) return WrongParent("there is no version ff");
  if (text.size() > kLength && (*version == 0 || text[kLength] != '-')) {
    return WrongParent("it is too long");
  }
  const SpanContext context{.trace_id = {*high, *low},
                            .span_id = {*span},
                            .is_sampled = (*flags & 1) != 0,
                            .trace_state = {}};
  if (!context.is_set()) return WrongParent("an id is zero");
  return context;
}

absl::StatusOr<SpanContext> ParseTraceContext(std::string_view trace_parent,
                                              std::string_view trace_state) {
  BOBBIN_ASSIGN_OR_RETURN(SpanContext context, ParseTraceParent(trace_parent));
  context.trace_state = PassedOn(trace_state);
  return context;
}

std::string TraceParentOf(const SpanContext& context) {
  BOBBIN_CHECK(context.is_set(), "a call belongs to a span");
  return fmt::format("00-{}-{}-{:02x}", context.trace_id.ToString(), context.span_id.ToString(),
                     context.is_sampled ? 1 : 0);
}

}  // namespace bobbin
