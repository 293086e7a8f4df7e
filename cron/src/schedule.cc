// SPDX-License-Identifier: Apache-2.0
//
// An expression knows the wall clock, a schedule instants. Between the two stands the zone, which
// says of a time of the wall clock whether it comes once, never, or twice.
//
// Times that come once or twice, each taken at its first pass, are in the same order as their
// instants. So is a skipped time, taken as the instant of the change. The next run is therefore
// found by asking the expression for the next time of the wall clock, over and over, until one of
// them is an instant that counts and lies ahead; what a change of the clocks rules out, an hour of
// seconds maybe, is passed over at once. Second passes are a sequence of their own. One that comes
// before the run that was found repeats a time that lies behind: so it is not far, and it is looked
// for only around the changes that are less than the longest overlap away.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

#include <bobbin/cron/schedule.h>

namespace bobbin::cron {

namespace {

using absl::CivilSecond;
using absl::TimeZone;
using Pass = Occurrence::Pass;

// No clock was ever put back by more: it was a whole day where the date line was moved.
constexpr absl::Duration kOverlapMax = absl::Hours(25);

// Some 950 million years, which an expression searches. Beyond, and at infinity, nothing is due.
bool IsSearched(absl::Time time) {
  constexpr absl::Duration kFarthest = absl::Seconds(30'000'000'000'000'000);
  return absl::AbsDuration(time - absl::UnixEpoch()) <= kFarthest;
}

absl::Time FloorToSecond(absl::Time time) {
  return absl::FromUnixSeconds(absl::ToUnixSeconds(time));
}
absl::Time CeilToSecond(absl::Time time) {
  const absl::Time floor = FloorToSecond(time);
  return floor < time ? floor + absl::Seconds(1) : floor;
}

// What a clock shows that was at zero at the epoch, `seconds` later. The library's addition does
// the same in five times as long (36 ns; bench/cron/schedule_bench.cc).
CivilSecond LocalAt(int64_t seconds) {
  constexpr int64_t kDaySeconds = 86'400;
  constexpr int64_t kCycleDays = 146'097;  // 400 years.
  int64_t days = seconds / kDaySeconds;
  auto second = static_cast<int>(seconds % kDaySeconds);
  if (second < 0) {
    second += kDaySeconds;
    --days;
  }

  // Years are counted from March, so that a leap day is the last of its year, and in cycles.
  days += 719'468;  // Since the first of March of the year 0.
  int64_t cycle = days / kCycleDays;
  auto day = static_cast<int>(days % kCycleDays);
  if (day < 0) {
    day += kCycleDays;
    --cycle;
  }
  const int year = (day - day / 1460 + day / 36'524 - day / 146'096) / 365;
  const int day_of_year = day - (365 * year + year / 4 - year / 100);
  const int month = (5 * day_of_year + 2) / 153;  // From March, which is 0.
  const int day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
  return CivilSecond(cycle * 400 + year + (month > 9 ? 1 : 0), month > 9 ? month - 9 : month + 3,
                     day_of_month, second / 3600, second / 60 % 60, second % 60);
}

// Where the wall clock arrives when it is put forward or back, and where it left off. REQUIRES:
// `info` is of a time that is skipped or repeated.
CivilSecond LocalAfterChange(TimeZone zone, const TimeZone::TimeInfo& info) {
  return zone.At(info.trans).cs;
}
CivilSecond LocalBeforeChange(TimeZone zone, const TimeZone::TimeInfo& info) {
  return zone.At(info.trans - absl::Seconds(1)).cs + 1;
}

// A change of the clocks.
struct Change {
  absl::Time time;
  CivilSecond from;  // What the wall clock would have shown.
  CivilSecond to;    // What it shows.

  bool IsBack() const { return to < from; }
};

std::optional<Change> NextChange(TimeZone zone, absl::Time after) {
  TimeZone::CivilTransition transition;
  if (!zone.NextTransition(after, &transition)) return std::nullopt;
  return Change{zone.At(transition.to).trans, transition.from, transition.to};
}
std::optional<Change> PreviousChange(TimeZone zone, absl::Time before) {
  TimeZone::CivilTransition transition;
  if (!zone.PrevTransition(before, &transition)) return std::nullopt;
  return Change{zone.At(transition.to).trans, transition.from, transition.to};
}

// The offset of a zone whose clocks never change.
std::optional<int> FixedOffsetOf(TimeZone zone) {
  TimeZone::CivilTransition transition;
  if (zone.NextTransition(absl::InfinitePast(), &transition)) return std::nullopt;
  return zone.At(absl::UnixEpoch()).offset;
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options)
    : options_(options), fixed_offset_(FixedOffsetOf(options.zone)) {}

std::optional<Occurrence> Schedule::Next(absl::Time after) const {
  if (!IsSearched(after)) return std::nullopt;
  if (fixed_offset_) return NextFixed(after);
  const std::optional<Occurrence> first = NextFirst(after);
  if (!first || !RunsInBothPasses()) return first;
  const std::optional<Occurrence> second = NextSecond(after, *first);
  return second ? second : first;
}

std::optional<Occurrence> Schedule::Previous(absl::Time before) const {
  if (!IsSearched(before)) return std::nullopt;
  const std::optional<Occurrence> first = PreviousFirst(before);
  if (!first || !RunsInBothPasses()) return first;
  const std::optional<Occurrence> second = PreviousSecond(before, *first);
  return second ? second : first;
}

bool Schedule::Matches(absl::Time time) const {
  const absl::Time second = FloorToSecond(time);
  const std::optional<Occurrence> run = Next(second - absl::Nanoseconds(1));
  return run && run->time == second;
}

std::optional<Occurrence> Schedule::NextFixed(absl::Time after) const {
  const std::optional<CivilSecond> local =
      options_.expression.Next(LocalAt(absl::ToUnixSeconds(after) + *fixed_offset_));
  if (!local) return std::nullopt;
  return Occurrence{absl::FromUnixSeconds(*local - CivilSecond() - *fixed_offset_), *local,
                    Pass::kOnly};
}

std::optional<Occurrence> Schedule::NextFirst(absl::Time after) const {
  const TimeZone zone = options_.zone;
  CivilSecond from = zone.At(after).cs;
  const absl::civil_year_t last_year = from.year() + internal::kYearsInCycle;
  while (true) {
    const std::optional<CivilSecond> local = options_.expression.Next(from);
    if (!local || local->year() > last_year) return std::nullopt;
    const TimeZone::TimeInfo info = zone.At(*local);
    switch (info.kind) {
      case TimeZone::TimeInfo::UNIQUE:
        if (info.pre > after) return Occurrence{info.pre, *local, Pass::kOnly};
        from = *local;
        break;
      case TimeZone::TimeInfo::REPEATED:
        if (info.pre > after) return Occurrence{info.pre, *local, Pass::kFirst};
        // `after` is in the second pass: all that it repeats is spent.
        from = LocalBeforeChange(zone, info) - 1;
        break;
      case TimeZone::TimeInfo::SKIPPED: {
        const CivilSecond end = LocalAfterChange(zone, info);
        if (options_.skipped == Skipped::kFirstInstantAfter && info.trans > after) {
          return Occurrence{info.trans, end,
                            options_.expression.Matches(end) ? Pass::kOnly : Pass::kAfterGap};
        }
        from = end - 1;
        break;
      }
    }
  }
}

std::optional<Occurrence> Schedule::PreviousFirst(absl::Time before) const {
  const TimeZone zone = options_.zone;
  const absl::Time whole = CeilToSecond(before);
  CivilSecond to = zone.At(whole).cs;
  const TimeZone::TimeInfo at_start = zone.At(to);
  if (at_start.kind == TimeZone::TimeInfo::REPEATED && whole >= at_start.trans) {
    // In the second pass all first ones lie behind.
    to = LocalBeforeChange(zone, at_start);
  }
  const absl::civil_year_t first_year = to.year() - internal::kYearsInCycle;
  while (true) {
    const std::optional<CivilSecond> local = options_.expression.Previous(to);
    if (!local || local->year() < first_year) return std::nullopt;
    const TimeZone::TimeInfo info = zone.At(*local);
    switch (info.kind) {
      case TimeZone::TimeInfo::UNIQUE:
        if (info.pre < before) return Occurrence{info.pre, *local, Pass::kOnly};
        to = *local;
        break;
      case TimeZone::TimeInfo::REPEATED:
        if (info.pre < before) return Occurrence{info.pre, *local, Pass::kFirst};
        to = *local;
        break;
      case TimeZone::TimeInfo::SKIPPED:
        if (options_.skipped == Skipped::kFirstInstantAfter && info.trans < before) {
          return Occurrence{info.trans, LocalAfterChange(zone, info), Pass::kAfterGap};
        }
        to = LocalBeforeChange(zone, info);
        break;
    }
  }
}

std::optional<Occurrence> Schedule::NextSecond(absl::Time after, const Occurrence& first) const {
  const TimeZone zone = options_.zone;
  const absl::Time end = first.time;
  // What is repeated before `first` was there for the first time before `after`.
  for (std::optional<Change> change = NextChange(zone, after - kOverlapMax);
       change && change->time < end && change->time <= after + kOverlapMax;
       change = NextChange(zone, change->time)) {
    if (!change->IsBack()) continue;
    CivilSecond from = change->to - 1;
    if (after >= change->time) {
      from = change->to + absl::ToInt64Seconds(FloorToSecond(after) - change->time);
    }
    const std::optional<CivilSecond> local = options_.expression.Next(from);
    if (!local || *local >= change->from) continue;
    const absl::Time time = change->time + absl::Seconds(*local - change->to);
    if (time >= end) return std::nullopt;
    return Occurrence{time, *local, Pass::kSecond};
  }
  return std::nullopt;
}

std::optional<Occurrence> Schedule::PreviousSecond(absl::Time before,
                                                   const Occurrence& first) const {
  const TimeZone zone = options_.zone;
  const absl::Time begin = first.time;
  // What is repeated after `first` was there for the first time before it, or is `first` itself.
  const absl::Time whole = std::min(CeilToSecond(before), begin + kOverlapMax);
  for (std::optional<Change> change = PreviousChange(zone, whole);
       change && change->time + kOverlapMax > begin; change = PreviousChange(zone, change->time)) {
    if (!change->IsBack()) continue;
    CivilSecond to = change->to + absl::ToInt64Seconds(whole - change->time);
    if (to > change->from) to = change->from;
    const std::optional<CivilSecond> local = options_.expression.Previous(to);
    if (!local || *local < change->to) continue;
    const absl::Time time = change->time + absl::Seconds(*local - change->to);
    if (time <= begin) return std::nullopt;
    return Occurrence{time, *local, Pass::kSecond};
  }
  return std::nullopt;
}

}  // namespace bobbin::cron
