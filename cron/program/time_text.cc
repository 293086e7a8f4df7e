// SPDX-License-Identifier: Apache-2.0

#include "cron/program/time_text.h"

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "cron/src/quoted.h"

namespace bobbin::cron::program {

absl::StatusOr<absl::Time> ParseInstant(std::string_view text, absl::TimeZone zone) {
  if (text == "now") return absl::Now();
  std::string normal(text);
  if (const size_t blank = normal.find(' '); blank != normal.npos) normal[blank] = 'T';
  // A date alone is its beginning. With an offset the zone is not asked.
  const absl::string_view formats[] = {absl::RFC3339_full, "%Y-%m-%dT%H:%M%Ez",
                                       absl::RFC3339_sec,  "%Y-%m-%dT%H:%M:%E*S",
                                       "%Y-%m-%dT%H:%M",   "%Y-%m-%d"};
  absl::Time time;
  for (absl::string_view format : formats) {
    std::string error;
    if (absl::ParseTime(format, normal, zone, &time, &error) && time > absl::InfinitePast() &&
        time < absl::InfiniteFuture()) {
      return time;
    }
  }
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format("{} is no time: write now, 2026-11-30, 2026-11-30T02:30, "
                                "2026-11-30T02:30:00 or 2026-11-30T02:30:00+01:00",
                                internal::Quoted(text)));
}

std::string FormatInstant(absl::Time time, absl::TimeZone zone) {
  // Before there were time zones, clocks differed by seconds, too.
  const bool has_seconds = zone.At(time).offset % 60 != 0;
  return absl::FormatTime(has_seconds ? "%Y-%m-%dT%H:%M:%S%E*z" : "%Y-%m-%dT%H:%M:%S%Ez", time,
                          zone);
}

}  // namespace bobbin::cron::program
