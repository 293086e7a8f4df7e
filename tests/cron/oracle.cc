// SPDX-License-Identifier: Apache-2.0

#include "tests/cron/oracle.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "fmt/format.h"

#include <bobbin/cron/expression.h>

namespace bobbin::test {
namespace {

using absl::CivilDay;
using absl::CivilMonth;
using absl::CivilSecond;

std::string Replaced(std::string text, const std::string& name, int number) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name)) {
    text.replace(at, name.size(), std::to_string(number));
  }
  return text;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// Whether a value is in a part of a list: *, a, a-b, each with /n or without.
bool IsIn(int value, const std::string& part, int least, int most) {
  const std::vector<std::string> halves = Split(part, '/');
  const int step = halves.size() == 2 ? std::atoi(halves[1].c_str()) : 1;
  int low = least;
  int high = most;
  if (halves[0] != "*" && halves[0] != "?") {
    const std::vector<std::string> ends = Split(halves[0], '-');
    low = std::atoi(ends[0].c_str());
    high = ends.size() == 2 ? std::atoi(ends[1].c_str()) : halves.size() == 2 ? most : low;
    if (most == 7 && ends.size() == 2 && low == 7) low = 0;
  }
  return value >= low && value <= high && (value - low) % step == 0;
}

std::set<int> ValuesOf(const std::string& field, int least, int most) {
  std::set<int> values;
  for (const std::string& part : Split(field, ',')) {
    for (int value = least; value <= most; ++value) {
      if (IsIn(value, part, least, most)) values.insert(value);
    }
  }
  return values;
}

int WeekdayOf(CivilDay day) { return (static_cast<int>(absl::GetWeekday(day)) + 1) % 7; }
CivilDay LastOf(CivilMonth month) { return CivilDay(month + 1) - 1; }
bool IsWeekend(CivilDay day) { return WeekdayOf(day) == 0 || WeekdayOf(day) == 6; }

// The Monday to Friday nearest a day of the month; the day itself where there is none in the month.
CivilDay NearestWeekday(CivilDay day) {
  if (WeekdayOf(day) == 6) {
    const CivilDay friday = day - 1;
    return CivilMonth(friday) == CivilMonth(day) ? friday : day + 2;
  }
  if (WeekdayOf(day) == 0) {
    const CivilDay monday = day + 1;
    return CivilMonth(monday) == CivilMonth(day) ? monday : day;
  }
  return day;
}

bool MatchesDayPart(CivilDay day, const std::string& part) {
  const CivilMonth month(day);
  if (part == "LW") {
    CivilDay last = LastOf(month);
    while (IsWeekend(last)) --last;
    return day == last;
  }
  if (part[0] == 'L') {
    return day == LastOf(month) - (part.size() > 2 ? std::atoi(part.c_str() + 2) : 0);
  }
  if (part.back() == 'W') {
    const CivilDay named = CivilDay(month) + (std::atoi(part.c_str()) - 1);
    return CivilMonth(named) == month && !IsWeekend(day) && day == NearestWeekday(named);
  }
  return IsIn(day.day(), part, 1, 31);
}

bool MatchesWeekdayPart(CivilDay day, const std::string& part) {
  const int weekday = WeekdayOf(day);
  if (part.back() == 'L') {
    return weekday == std::atoi(part.c_str()) % 7 && CivilMonth(day + 7) != CivilMonth(day);
  }
  if (const size_t hash = part.find('#'); hash != part.npos) {
    return weekday == std::atoi(part.c_str()) % 7 &&
           (day.day() - 1) / 7 + 1 == std::atoi(part.c_str() + hash + 1);
  }
  // The star counts from Monday.
  const int least = part[0] == '*' ? 1 : 0;
  return IsIn(weekday, part, least, 7) || (weekday == 0 && IsIn(7, part, least, 7));
}

}  // namespace

Oracle::Oracle(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::vector<std::string> fields;
  std::istringstream stream(upper);
  for (std::string field; stream >> field;) fields.push_back(field);
  seconds_ = ValuesOf(fields.at(0), 0, 59);
  minutes_ = ValuesOf(fields.at(1), 0, 59);
  hours_ = ValuesOf(fields.at(2), 0, 23);
  day_parts_ = Split(fields.at(3), ',');
  int number = 0;
  for (const char* name :
       {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}) {
    fields.at(4) = Replaced(fields.at(4), name, ++number);
  }
  months_ = ValuesOf(fields.at(4), 1, 12);
  number = 0;
  for (const char* name : {"MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}) {
    fields.at(5) = Replaced(fields.at(5), name, ++number);
  }
  weekday_parts_ = Split(fields.at(5), ',');
  for (size_t i = 0; i < 3; ++i) {
    if (fields[i].find_first_of("*-/") != std::string::npos) is_interval_ = true;
  }
}

bool Oracle::MatchesTime(CivilSecond time) const {
  return seconds_.contains(time.second()) && minutes_.contains(time.minute()) &&
         hours_.contains(time.hour());
}

bool Oracle::MatchesDay(CivilDay day) const {
  return months_.contains(day.month()) &&
         std::any_of(day_parts_.begin(), day_parts_.end(),
                     [&](const std::string& part) { return MatchesDayPart(day, part); }) &&
         std::any_of(weekday_parts_.begin(), weekday_parts_.end(),
                     [&](const std::string& part) { return MatchesWeekdayPart(day, part); });
}

std::vector<absl::Time> Oracle::Runs(absl::TimeZone zone, absl::Time from, absl::Time to,
                                     absl::Duration step, cron::Repeated repeated,
                                     cron::Skipped skipped) const {
  std::vector<absl::Time> runs;
  const bool runs_again = repeated == cron::Repeated::kBoth ||
                          (repeated == cron::Repeated::kIntervalsInBoth && is_interval_);
  const int64_t step_seconds = absl::ToInt64Seconds(step);
  CivilDay day;
  bool is_day = MatchesDay(day);
  // From a day before on, for the times that were there already.
  absl::Time time = from - absl::Hours(26);
  CivilSecond latest = zone.At(time).cs;  // The latest the wall clock has ever shown.
  for (; time < to; time += step) {
    const CivilSecond local = zone.At(time).cs;
    bool is_run = false;
    // What was left out since the last look, if anything.
    if (skipped == cron::Skipped::kFirstInstantAfter) {
      for (CivilSecond left_out = latest + step_seconds; left_out < local;
           left_out += step_seconds) {
        is_run |= Matches(left_out);
      }
    }
    if (CivilDay(local) != day) {
      day = CivilDay(local);
      is_day = MatchesDay(day);
    }
    if (is_day && MatchesTime(local)) is_run |= runs_again || local > latest;
    latest = std::max(latest, local);
    if (is_run && time >= from) runs.push_back(time);
  }
  return runs;
}

namespace {

std::string RandomValue(Random& random, int least, int most) {
  return fmt::to_string(random.Between(least, most));
}

std::string RandomRange(Random& random, int least, int most) {
  const int64_t low = random.Between(least, most);
  return fmt::format("{}-{}", low, random.Between(low, most));
}

std::string RandomPart(Random& random, int least, int most) {
  switch (random.Below(6)) {
    case 0:
      return RandomRange(random, least, most);
    case 1:
      return fmt::format("{}/{}", RandomRange(random, least, most), random.Between(1, 20));
    case 2:
      return fmt::format("{}/{}", RandomValue(random, least, most), random.Between(1, 20));
    case 3:
      return fmt::format("*/{}", random.Between(1, 20));
    default:
      return RandomValue(random, least, most);
  }
}

template <typename Part>
std::string RandomList(Random& random, Part part) {
  std::string list = part();
  while (random.OneIn(3)) list += "," + part();
  return list;
}

std::string RandomField(Random& random, int least, int most) {
  if (random.OneIn(3)) return "*";
  return RandomList(random, [&] { return RandomPart(random, least, most); });
}

std::string RandomDay(Random& random) {
  switch (random.Below(8)) {
    case 0:
      return "L";
    case 1:
      return fmt::format("L-{}", random.Between(1, 30));
    case 2:
      return "LW";
    case 3:
      return fmt::format("{}W", random.Between(1, 31));
    default:
      return RandomPart(random, 1, 31);
  }
}

std::string RandomWeekday(Random& random) {
  static const std::vector<std::string> kNames = {"SUN", "mon", "Tue", "WED", "THU", "FRI", "SAT"};
  const std::string weekday =
      random.OneIn(2) ? kNames[random.Below(kNames.size())] : fmt::to_string(random.Between(0, 7));
  switch (random.Below(5)) {
    case 0:
      return weekday + "L";
    case 1:
      return fmt::format("{}#{}", weekday, random.Between(1, 5));
    case 2:
      return weekday;
    default:
      return RandomPart(random, 0, 7);
  }
}

}  // namespace

std::string RandomExpression(Random& random, std::string_view second) {
  while (true) {
    const std::string days = random.OneIn(2)
                                 ? std::string(random.OneIn(2) ? "*" : "?")
                                 : RandomList(random, [&] { return RandomDay(random); });
    const std::string weekdays = random.OneIn(2)
                                     ? std::string(random.OneIn(2) ? "*" : "?")
                                     : RandomList(random, [&] { return RandomWeekday(random); });
    const std::string text = fmt::format(
        "{} {} {} {} {} {}", second.empty() ? RandomField(random, 0, 59) : std::string(second),
        RandomField(random, 0, 59), RandomField(random, 0, 23), days, RandomField(random, 1, 12),
        weekdays);
    if (!cron::FindMistake(text)) return text;
  }
}

}  // namespace bobbin::test
