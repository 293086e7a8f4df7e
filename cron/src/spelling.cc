// SPDX-License-Identifier: Apache-2.0

#include "cron/src/spelling.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <bobbin/cron/internal/parser.h>

#include "cron/src/bit_runs.h"

namespace bobbin::cron::internal {

namespace {

using Parts = std::vector<std::string>;

// A time field that was written with plain numbers.
std::string SpellNumbers(uint64_t set) {
  Parts parts;
  for (; set != 0; set &= set - 1) parts.push_back(fmt::to_string(First(set)));
  return fmt::to_string(fmt::join(parts, ","));
}

// A time field that was written with *, a range or a step, and therefore has to have one.
std::string SpellInterval(uint64_t set, int most) {
  const int first = First(set);
  const int last = Last(set);
  const int step = first == last ? 1 : StepOf(set);
  if (step == 1) {
    return first == 0 && last == most ? "*" : fmt::format("{}-{}", first, last);
  }
  if (step > 1) {
    if (last + step <= most) return fmt::format("{}-{}/{}", first, last, step);
    return first == 0 ? fmt::format("*/{}", step) : fmt::format("{}/{}", first, step);
  }
  Parts parts;
  bool has_range = false;
  for (const Run& run : RunsOf(set)) {
    has_range |= run.size() > 1;
    parts.push_back(run.size() > 1 ? fmt::format("{}-{}", run.first, run.last)
                                   : fmt::to_string(run.first));
  }
  if (!has_range) parts[0] = fmt::format("{0}-{0}", first);
  return fmt::to_string(fmt::join(parts, ","));
}

std::string SpellTime(const FieldSets& sets, Field field, uint64_t set, int most) {
  return Has(sets.intervals, static_cast<int>(field)) ? SpellInterval(set, most)
                                                      : SpellNumbers(set);
}

// A field of days or months: the parts of its plain set.
template <typename Name>
Parts SpellPlain(uint64_t set, int least, int most, Name name) {
  if (set == 0) return {};
  if (First(set) == least && Last(set) == most && StepOf(set) == 1) return {"*"};
  if (const int step = StepOf(set);
      step > 1 && First(set) + 2 * step <= Last(set) && Last(set) + step > most) {
    return {First(set) == least ? fmt::format("*/{}", step)
                                : fmt::format("{}/{}", name(First(set)), step)};
  }
  Parts parts;
  for (const Run& run : RunsOf(set)) {
    if (run.size() > 2) {
      parts.push_back(fmt::format("{}-{}", name(run.first), name(run.last)));
      continue;
    }
    for (int member = run.first; member <= run.last; ++member) {
      parts.push_back(fmt::to_string(name(member)));
    }
  }
  return parts;
}

std::string_view WeekdaySpelling(int weekday) { return kWeekdayNames[weekday % 7]; }

std::string SpellDays(const FieldSets& sets) {
  Parts parts = SpellPlain(sets.days, 1, 31, [](int day) { return day; });
  for (uint32_t rest = sets.days_nearest & ~uint32_t{1}; rest != 0; rest &= rest - 1) {
    parts.push_back(fmt::format("{}W", First(rest)));
  }
  for (int offset = 30; offset > 0; --offset) {
    if (Has(sets.days_before_last, 31 - offset)) parts.push_back(fmt::format("L-{}", offset));
  }
  if (Has(sets.days_nearest, 0)) parts.emplace_back("LW");
  if (Has(sets.days_before_last, 31)) parts.emplace_back("L");
  return fmt::to_string(fmt::join(parts, ","));
}

std::string SpellDaysOfWeek(const FieldSets& sets) {
  Parts parts = SpellPlain(FromMonday(sets.days_of_week), 1, 7, WeekdaySpelling);
  for (uint64_t rest = sets.nth_days_of_week; rest != 0; rest &= rest - 1) {
    parts.push_back(fmt::format("{}#{}", WeekdaySpelling(First(rest)), First(rest) / 7 + 1));
  }
  for (uint64_t rest = FromMonday(sets.last_days_of_week); rest != 0; rest &= rest - 1) {
    parts.push_back(fmt::format("{}L", WeekdaySpelling(First(rest))));
  }
  return fmt::to_string(fmt::join(parts, ","));
}

}  // namespace

std::string Spell(const FieldSets& sets) {
  return fmt::format(
      "{} {} {} {} {} {}", SpellTime(sets, Field::kSecond, sets.seconds, 59),
      SpellTime(sets, Field::kMinute, sets.minutes, 59),
      SpellTime(sets, Field::kHour, sets.hours, 23), SpellDays(sets),
      fmt::join(SpellPlain(sets.months, 1, 12, [](int month) { return kMonthNames[month - 1]; }),
                ","),
      SpellDaysOfWeek(sets));
}

}  // namespace bobbin::cron::internal
