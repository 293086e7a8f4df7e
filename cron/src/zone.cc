// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/cron/zone.h>
#include <bobbin/sched/internal/texts.h>
#include <bobbin/sched/run_blocking.h>

#include "cron/src/limits.h"
#include "cron/src/quoted.h"

namespace bobbin::cron {

namespace {

namespace fs = std::filesystem;

using bobbin::internal::EditsBetween;
using bobbin::internal::LowerCase;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpperCase(char c) { return c >= 'A' && c <= 'Z'; }

// Letters, digits, and what else is in the database's names: neither a dot nor the end of a text.
bool IsOfName(char c) {
  return IsUpperCase(c) || (c >= 'a' && c <= 'z') || IsDigit(c) || c == '/' || c == '_' ||
         c == '-' || c == '+';
}

template <typename... T>
absl::Status NoZone(std::string_view text, fmt::format_string<T...> format, T&&... parts) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format("find time zone {}: {}", internal::Quoted(text),
                                fmt::format(format, std::forward<T>(parts)...)));
}

absl::StatusOr<absl::TimeZone> ParseOffset(std::string_view text) {
  const bool has_form = text.size() == 6 && IsDigit(text[1]) && IsDigit(text[2]) &&
                        text[3] == ':' && IsDigit(text[4]) && IsDigit(text[5]);
  if (!has_form) return NoZone(text, "an offset is written as +05:30");
  const int hours = (text[1] - '0') * 10 + (text[2] - '0');
  const int minutes = (text[4] - '0') * 10 + (text[5] - '0');
  if (hours > 18 || minutes > 59) {
    return NoZone(text, "an offset has at most 18 hours, and less than 60 minutes");
  }
  const int seconds = hours * 3600 + minutes * 60;
  return absl::FixedTimeZone(text[0] == '-' ? -seconds : seconds);
}

fs::path DatabaseFolder() {
  const char* const folder = std::getenv("TZDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/usr/share/zoneinfo";
}

// Every name in the database. Beside the zones lie tables, whose names have a dot or a small letter
// first, and the same zones again, counted with leap seconds.
std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().lexically_relative(folder).generic_string();
    if (!IsUpperCase(name.front())) {
      entry.disable_recursion_pending();
    } else if (!entry->is_directory(error) && name.find('.') == name.npos) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

// The names that were probably meant, the likeliest first: few letters differ, or the city is
// right.
std::vector<std::string> NamesNear(std::string_view text, const std::vector<std::string>& names) {
  const std::string wanted = LowerCase(text);
  const std::string wanted_city = wanted.substr(wanted.rfind('/') + 1);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& name : names) {
    const std::string lower = LowerCase(name);
    const size_t whole = EditsBetween(wanted, lower);
    const size_t city =
        EditsBetween(wanted_city, std::string_view(lower).substr(lower.rfind('/') + 1));
    // A right city in a wrong place counts like one wrong letter.
    const size_t edits = std::min(whole, city + 1);
    if (edits <= 1 + wanted.size() / 6) near.emplace_back(edits, name);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> nearest;
  for (auto& [edits, name] : near) {
    // Those that are clearly less like it would only distract.
    if (nearest.size() == internal::kNearNamesMax || edits > near.front().first + 1) break;
    nearest.push_back(std::move(name));
  }
  return nearest;
}

absl::StatusOr<absl::TimeZone> Load(const std::string& name) {
  const fs::path folder = DatabaseFolder();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return NoZone(name, "there is no database of time zones in {}", folder.string());
  }
  // Nothing but a file of the database: neither the library's own names, nor a path out of it.
  const bool is_name = IsUpperCase(name.front()) && std::all_of(name.begin(), name.end(), IsOfName);
  absl::TimeZone zone;
  if (is_name && fs::is_regular_file(folder / name, error) && absl::LoadTimeZone(name, &zone)) {
    return zone;
  }
  const std::vector<std::string> near = name.size() > internal::kZoneNameBytesMax
                                            ? std::vector<std::string>()
                                            : NamesNear(name, NamesIn(folder));
  if (near.empty()) return NoZone(name, "{} has no such name", folder.string());
  return NoZone(name, "{} has no such name; is it {}?", folder.string(), fmt::join(near, " or "));
}

}  // namespace

absl::StatusOr<absl::TimeZone> FindZone(std::string_view text) {
  if (text.empty() || text == "UTC" || text == "Z" || text == "GMT") return absl::UTCTimeZone();
  if (text.front() == '+' || text.front() == '-') return ParseOffset(text);
  return RunBlocking([&] { return Load(std::string(text)); });
}

}  // namespace bobbin::cron
