// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/sched/internal/texts.h>

#include "sched/src/letters.h"
#include "sched/src/limits.h"

namespace bobbin::internal {

namespace {

bool IsOfKey(char c) { return IsDigit(c) || IsLetter(c) || c == '.' || c == '-' || c == '_'; }

template <typename... T>
absl::Status Wrong(fmt::format_string<T...> format, T&&... parts) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format(format, std::forward<T>(parts)...));
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

std::string Quoted(std::string_view text) {
  const std::string_view shown = text.substr(0, kTextBytesShown);
  return "\"" + absl::CHexEscape(absl::string_view(shown.data(), shown.size())) +
         (shown.size() < text.size() ? "..." : "") + "\"";
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (IsUpperCase(c)) c = static_cast<char>(c + 32);
  }
  return lower;
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
  return Wrong("{} is no length of time: write 10s, 1h30m, PT1M, or a number of milliseconds",
               Quoted(text));
}

std::string EnvironmentName(std::string_view key) {
  std::string name(key);
  for (char& c : name) {
    if (c == '.' || c == '-') c = '_';
    if (IsLowerCase(c)) c = static_cast<char>(c - 32);
  }
  return name;
}

std::optional<std::string> FromEnvironment(std::string_view key) {
  const char* const value = std::getenv(EnvironmentName(key).c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

absl::StatusOr<std::string> ReplacePlaceholders(std::string_view text, PropertyLookup lookup) {
  std::string result;
  size_t at = 0;
  while (true) {
    const size_t begin = text.find("${", at);
    result += text.substr(at, begin == text.npos ? text.npos : begin - at);
    if (begin == text.npos) return result;
    const size_t column = begin + 1;
    const size_t end = text.find('}', begin);
    if (end == text.npos) return Wrong("the placeholder at column {} is not closed", column);
    const std::string_view inside = text.substr(begin + 2, end - begin - 2);
    const size_t colon = inside.find(':');
    const std::string_view key = inside.substr(0, colon);
    if (key.empty() || !std::all_of(key.begin(), key.end(), IsOfKey)) {
      return Wrong("the placeholder at column {} has no key: write ${{key}} or ${{key:fallback}}",
                   column);
    }
    const bool has_fallback = colon != inside.npos;
    const std::string_view fallback = has_fallback ? inside.substr(colon + 1) : "";
    if (fallback.find("${") != fallback.npos) {
      return Wrong("the fallback of ${{{}}} holds a placeholder, which it may not", key);
    }

    BOBBIN_ASSIGN_OR_RETURN(const std::optional<std::string> value, lookup(key));
    if (!value && !has_fallback) {
      return Wrong("the property \"{}\" has no value; set it, or write a fallback: \"${{{}:...}}\"",
                   key, key);
    }
    result += value ? std::string_view(*value) : fallback;
    at = end + 1;
  }
}

size_t EditsBetween(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace bobbin::internal
