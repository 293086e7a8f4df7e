// SPDX-License-Identifier: Apache-2.0
//
// Cron: expressions that the compiler checks, time zones, and the runs of a schedule.

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "fmt/format.h"

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/expression.h>
#include <bobbin/cron/schedule.h>
#include <bobbin/cron/zone.h>
#include <bobbin/sched/runtime.h>

namespace {

// [literal]
using bobbin::cron::operator""_cron;

constexpr bobbin::cron::Expression kNightly = "0 30 2 * * MON-FRI"_cron;

static_assert(*"0 0 0 29 2 *"_cron.Next(absl::CivilSecond(2023, 3, 1)) ==
              absl::CivilSecond(2024, 2, 29));
// [/literal]

// [parse]
absl::StatusOr<bobbin::cron::Schedule> ReadSchedule(std::string_view when, std::string_view where) {
  BOBBIN_ASSIGN_OR_RETURN(const auto expression, bobbin::cron::Expression::Parse(when));
  BOBBIN_ASSIGN_OR_RETURN(const absl::TimeZone zone, bobbin::cron::FindZone(where));
  return bobbin::cron::Schedule({.expression = expression, .zone = zone});
}
// [/parse]

// [mistake]
std::string Underlined(std::string_view text) {
  const std::optional<bobbin::cron::Mistake> mistake = bobbin::cron::FindMistake(text);
  if (!mistake) return {};
  return fmt::format("{}\n{}{}\n{}\n", text, std::string(mistake->column - 1, ' '),
                     std::string(mistake->length, '^'), mistake->Text(text));
}
// [/mistake]

// [walk]
void PrintWeek(const bobbin::cron::Schedule& schedule, absl::Time from) {
  for (const bobbin::cron::Occurrence& run : schedule.Between(from, from + absl::Hours(7 * 24))) {
    fmt::print("{}\n", absl::FormatTime(run.time, schedule.zone()));
  }
}
// [/walk]

// [clocks]
bobbin::cron::Schedule EveryHalfHour(absl::TimeZone zone) {
  return bobbin::cron::Schedule({.expression = "0 */30 * * * *"_cron,
                                 .zone = zone,
                                 .repeated = bobbin::cron::Repeated::kIntervalsInBoth});
}
// [/clocks]

absl::Status Main() {
  fmt::print("{}\n", kNightly.Describe());
  BOBBIN_CHECK(kNightly.Describe() == "at 02:30, Monday to Friday", "as the guide says");

  BOBBIN_ASSIGN_OR_RETURN(const bobbin::cron::Schedule nightly,
                          ReadSchedule("0 30 2 * * MON-FRI", "Europe/Berlin"));
  const absl::Time monday = absl::FromCivil(absl::CivilDay(2026, 11, 30), nightly.zone());
  PrintWeek(nightly, monday);
  BOBBIN_CHECK(nightly.Next(monday)->local == absl::CivilSecond(2026, 11, 30, 2, 30, 0),
               "as the guide says");

  fmt::print("{}", Underlined("0 0 22-2 * * *"));
  BOBBIN_CHECK(Underlined("0 0 22-2 * * *").starts_with("0 0 22-2 * * *\n    ^^^^\nhour, column 5"),
               "as the guide says");

  BOBBIN_ASSIGN_OR_RETURN(const absl::TimeZone new_york,
                          bobbin::cron::FindZone("America/New_York"));
  const auto night = EveryHalfHour(new_york).Between(
      absl::FromCivil(absl::CivilSecond(2026, 11, 1, 1, 0, 0), new_york),
      absl::FromCivil(absl::CivilSecond(2026, 11, 1, 2, 0, 0), new_york));
  int runs = 0;
  for (const bobbin::cron::Occurrence& run : night) {
    ++runs;
    fmt::print("{}\n", absl::FormatTime(run.time, new_york));
  }
  BOBBIN_CHECK(runs == 4, "two in each pass");
  return absl::OkStatus();
}

}  // namespace

int main() { return bobbin::Run(Main); }
