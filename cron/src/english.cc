// SPDX-License-Identifier: Apache-2.0

#include "cron/src/english.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cron/src/bit_runs.h"
#include "cron/src/limits.h"

namespace bobbin::cron::internal {

namespace {

using Parts = std::vector<std::string>;

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 5> kOrdinals = {"first", "second", "third", "fourth",
                                                       "fifth"};

std::string MonthName(int month) { return std::string(kMonths[static_cast<size_t>(month - 1)]); }
std::string WeekdayName(int weekday) {
  return std::string(kWeekdays[static_cast<size_t>(weekday % 7)]);
}
std::string NumberName(int number) { return fmt::to_string(number); }

// "a", "a and b", "a, b and c"
std::string Join(const Parts& parts, std::string_view last_word) {
  if (parts.size() < 2) return parts.empty() ? std::string() : parts.front();
  return fmt::format("{} {} {}", fmt::join(parts.begin(), parts.end() - 1, ", "), last_word,
                     parts.back());
}

// "Monday to Friday", "1 to 7 and 15"
template <typename Name>
Parts Listed(uint64_t set, Name name) {
  Parts parts;
  for (const Run& run : RunsOf(set)) {
    if (run.size() > 2) {
      parts.push_back(fmt::format("{} to {}", name(run.first), name(run.last)));
      continue;
    }
    for (int member = run.first; member <= run.last; ++member) parts.push_back(name(member));
  }
  return parts;
}

// "minute 5", "minutes 5 and 35"
std::string Counted(std::string_view what, uint64_t set) {
  return fmt::format("{}{} {}", what, std::popcount(set) > 1 ? "s" : "",
                     Join(Listed(set, NumberName), "and"));
}

// The step of a set that goes through its field from 0 to the end; 0 if it does not.
int StepThrough(uint64_t set, int size) {
  const int step = StepOf(set);
  return First(set) == 0 && step > 0 && Last(set) + step >= size ? step : 0;
}

// "at 02:30 and 14:30", if these are few.
std::string FewTimes(const FieldSets& sets) {
  if (std::popcount(sets.hours) * std::popcount(sets.minutes) * std::popcount(sets.seconds) >
      kTimesListedMax) {
    return {};
  }
  Parts times;
  for (uint32_t hours = sets.hours; hours != 0; hours &= hours - 1) {
    for (uint64_t minutes = sets.minutes; minutes != 0; minutes &= minutes - 1) {
      for (uint64_t seconds = sets.seconds; seconds != 0; seconds &= seconds - 1) {
        std::string time = fmt::format("{:02}:{:02}", First(hours), First(minutes));
        if (sets.seconds != 1) time += fmt::format(":{:02}", First(seconds));
        times.push_back(std::move(time));
      }
    }
  }
  return "at " + Join(times, "and");
}

// "every 5 minutes", "at minutes 5 and 35 of every hour"; `set` is not the whole field.
std::string Spread(std::string_view unit, std::string_view whole, uint64_t set) {
  if (const int step = StepThrough(set, 60); step > 1) {
    return fmt::format("every {} {}s", step, unit);
  }
  return fmt::format("at {} of every {}", Counted(unit, set), whole);
}

// Which hours, behind what happens in each of them.
std::string DuringHours(uint32_t hours) {
  if (hours == kAllHours) return {};
  const std::vector<Run> runs = RunsOf(hours);
  if (runs.size() == 1) {
    return fmt::format(" from {:02}:00 to {:02}:59", runs[0].first, runs[0].last);
  }
  return " during " + Counted("hour", hours);
}

std::string TimeInEnglish(const FieldSets& sets) {
  if (std::string few = FewTimes(sets); !few.empty()) return few;
  const std::string hours = DuringHours(sets.hours);
  if (sets.seconds != 1) {
    std::string text =
        sets.seconds == kAllSixty ? "every second" : Spread("second", "minute", sets.seconds);
    if (sets.minutes != kAllSixty) text += " during " + Counted("minute", sets.minutes);
    return text + hours;
  }
  if (sets.minutes == kAllSixty) return "every minute" + hours;
  if (sets.minutes != 1) return Spread("minute", "hour", sets.minutes) + hours;
  if (sets.hours == kAllHours) return "every hour";
  if (const int step = StepThrough(sets.hours, 24); step > 1) {
    return fmt::format("every {} hours from 00:00", step);
  }
  return "on the hour" + hours;
}

// "day 13 of the month", "the last day of the month", ...
Parts DaysInEnglish(const FieldSets& sets) {
  Parts parts;
  if (sets.days != 0) parts.push_back(Counted("day", sets.days) + " of the month");
  for (uint32_t rest = sets.days_nearest & ~uint32_t{1}; rest != 0; rest &= rest - 1) {
    parts.push_back(fmt::format("the weekday nearest day {} of the month", First(rest)));
  }
  for (int offset = 30; offset > 0; --offset) {
    if (!Has(sets.days_before_last, 31 - offset)) continue;
    parts.push_back(fmt::format("the day {} day{} before the last of the month", offset,
                                offset > 1 ? "s" : ""));
  }
  if (Has(sets.days_nearest, 0)) parts.emplace_back("the last weekday of the month");
  if (Has(sets.days_before_last, 31)) parts.emplace_back("the last day of the month");
  return parts;
}

// "Monday to Friday", "the second Friday of the month", ...
Parts WeekdaysInEnglish(const FieldSets& sets) {
  Parts parts = Listed(FromMonday(sets.days_of_week), WeekdayName);
  for (uint64_t rest = sets.nth_days_of_week; rest != 0; rest &= rest - 1) {
    parts.push_back(fmt::format("the {} {} of the month",
                                kOrdinals[static_cast<size_t>(First(rest) / 7)],
                                WeekdayName(First(rest))));
  }
  for (uint64_t rest = FromMonday(sets.last_days_of_week); rest != 0; rest &= rest - 1) {
    parts.push_back(fmt::format("the last {} of the month", WeekdayName(First(rest))));
  }
  return parts;
}

}  // namespace

std::string InEnglish(const FieldSets& sets) {
  std::string text = TimeInEnglish(sets);
  const bool is_any_day = sets.days == kAllDays;
  const bool is_any_weekday = sets.days_of_week == kAllDaysOfWeek;
  if (is_any_day && is_any_weekday) {
    if (text.starts_with("at ") && !text.ends_with("hour") && !text.ends_with("minute")) {
      text += " every day";
    }
  } else if (is_any_day) {
    // "Monday to Friday" says when by itself; everything else wants an "on".
    const Parts weekdays = WeekdaysInEnglish(sets);
    const bool is_range = weekdays.size() == 1 && std::popcount(sets.days_of_week) > 2;
    text += (is_range ? ", " : ", on ") + Join(weekdays, "and");
  } else {
    text += ", on " + Join(DaysInEnglish(sets), "and");
    if (!is_any_weekday) text += ", if it is " + Join(WeekdaysInEnglish(sets), "or");
  }
  if (sets.months != kAllMonths) text += ", in " + Join(Listed(sets.months, MonthName), "and");
  return text;
}

std::string WhyNoDay(const FieldSets& sets) {
  if (sets.HaveDaysByNumber()) {
    const Parts weekdays = WeekdaysInEnglish(sets);
    if (weekdays.empty()) return "no weekday comes six times in a month";
    if (sets.days == kAllDays) return "there is no such weekday";
    return fmt::format("{} is never {}", Join(DaysInEnglish(sets), "or"), Join(weekdays, "or"));
  }
  // No month is long enough.
  constexpr uint16_t kOfThirty = 1 << 4 | 1 << 6 | 1 << 9 | 1 << 11;
  Parts reasons;
  if (Has(sets.months, 2)) reasons.emplace_back("February has at most 29 days");
  if (const uint16_t thirty = sets.months & kOfThirty; thirty != 0) {
    Parts names;
    for (uint16_t rest = thirty; rest != 0; rest &= static_cast<uint16_t>(rest - 1)) {
      names.push_back(MonthName(First(rest)));
    }
    reasons.push_back(
        fmt::format("{} {} 30 days", Join(names, "and"), names.size() > 1 ? "have" : "has"));
  }
  return Join(reasons, "and");
}

}  // namespace bobbin::cron::internal
