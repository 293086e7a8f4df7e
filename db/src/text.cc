// SPDX-License-Identifier: Apache-2.0

#include "db/src/text.h"

#include <cmath>

#include <fmt/format.h>

#include "db/src/limits.h"

namespace bobbin::db::internal {

namespace {

// The year before 1 is 1 BC; it has the number 0.
std::string_view EraOf(absl::CivilDay day) { return day.year() > 0 ? "" : " BC"; }
std::string DayWithoutEra(absl::CivilDay day) {
  const absl::civil_year_t year = day.year() > 0 ? day.year() : 1 - day.year();
  return fmt::format("{:04}-{:02}-{:02}", year, day.month(), day.day());
}

}  // namespace

std::string DayText(absl::CivilDay day) {
  return fmt::format("{}{}", DayWithoutEra(day), EraOf(day));
}

std::string TimeText(absl::Time time) {
  if (time == absl::InfiniteFuture()) return "infinity";
  if (time == absl::InfinitePast()) return "-infinity";
  const auto at = absl::UTCTimeZone().At(time);
  const absl::CivilDay day(at.cs);
  return fmt::format("{} {:02}:{:02}:{:02}.{:06}+00{}", DayWithoutEra(day), at.cs.hour(),
                     at.cs.minute(), at.cs.second(), absl::ToInt64Microseconds(at.subsecond),
                     EraOf(day));
}

std::string RealText(double real) {
  if (std::isnan(real)) return "NaN";
  if (std::isinf(real)) return real > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", real);
}

std::string ShownSql(std::string_view sql) {
  const bool is_cut = sql.size() > kSqlBytesShown;
  return fmt::format("{}{}", sql.substr(0, kSqlBytesShown), is_cut ? "..." : "");
}

}  // namespace bobbin::db::internal
