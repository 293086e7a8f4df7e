// SPDX-License-Identifier: Apache-2.0

#include "cron/src/texts.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "absl/strings/string_view.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "cron/src/quoted.h"

namespace bobbin::cron::internal {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

absl::Status Wrong(std::string_view message) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, message);
}

// The part of ISO 8601 behind the P: days, then T and hours, minutes, seconds. In each place abseil
// reads the number.
std::optional<absl::Duration> ParseIsoPeriod(std::string_view text) {
  absl::Duration sum;
  std::string_view units = "DTHMS";
  bool has_number = false;
  while (!text.empty()) {
    if (text.front() == 'T') {
      const size_t at = units.find('T');
      if (at == units.npos || text.size() == 1) return std::nullopt;
      units.remove_prefix(at + 1);
      text.remove_prefix(1);
      continue;
    }
    const size_t end = text.find_first_not_of("0123456789.");
    if (end == 0 || end == text.npos) return std::nullopt;
    const size_t unit = units.find(text[end]);
    // A number belongs to the units that are left; those of the day are left until the T.
    if (unit == units.npos || text[end] == 'T') return std::nullopt;
    if (units.front() == 'D' && text[end] != 'D') return std::nullopt;
    const std::string number(text.substr(0, end));
    const std::string in_hours = text[end] == 'D'   ? "h"
                                 : text[end] == 'H' ? "h"
                                 : text[end] == 'M' ? "m"
                                                    : "s";
    absl::Duration part;
    if (!absl::ParseDuration(number + in_hours, &part)) return std::nullopt;
    sum += text[end] == 'D' ? part * 24 : part;
    has_number = true;
    units.remove_prefix(text[end] == 'D' ? 1 : unit + 1);
    text.remove_prefix(end + 1);
  }
  if (!has_number) return std::nullopt;
  return sum;
}

}  // namespace

absl::StatusOr<std::string> ReplaceProperties(std::string_view text, Property property) {
  std::string result;
  while (true) {
    const size_t begin = text.find("${");
    result += text.substr(0, begin);
    if (begin == text.npos) return result;
    const size_t end = text.find('}', begin);
    if (end == text.npos) return Wrong(fmt::format("{} is not closed", Quoted(text.substr(begin))));
    const std::string_view inside = text.substr(begin + 2, end - begin - 2);
    const size_t colon = inside.find(':');
    const std::string_view key = inside.substr(0, colon);
    if (std::optional<std::string> value = property(key)) {
      result += *value;
    } else if (colon != inside.npos) {
      result += inside.substr(colon + 1);
    } else {
      return Wrong(fmt::format("the property {} has no value; set it, or write a fallback: {}",
                               Quoted(key), Quoted(fmt::format("${{{}:...}}", key))));
    }
    text.remove_prefix(end + 1);
  }
}

std::optional<std::string> PropertyFromEnvironment(std::string_view key) {
  std::string name(key);
  for (char& c : name) {
    if (c == '.' || c == '-') c = '_';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

absl::StatusOr<absl::Duration> ParsePeriod(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsDigit)) {
    int64_t milliseconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
    if (error == std::errc()) return absl::Milliseconds(milliseconds);
  } else if (text.starts_with('P')) {
    if (const auto period = ParseIsoPeriod(text.substr(1))) return *period;
  } else if (absl::Duration period;
             absl::ParseDuration(absl::string_view(text.data(), text.size()), &period)) {
    return period;
  }
  return Wrong(
      fmt::format("{} is no length of time: write 10s, 1h30m, PT1M, or a number of milliseconds",
                  Quoted(text)));
}

}  // namespace bobbin::cron::internal
