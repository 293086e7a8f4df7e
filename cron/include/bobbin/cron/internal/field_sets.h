// SPDX-License-Identifier: Apache-2.0
//
// FieldSets: an expression as sets of bits, and the search for days in them.
//
// A month's days are one word: bit d stands for day d. Which of them an expression means follows
// from the month's length and the weekday of its first day by a few shifts, so that a search goes
// from month to month, not from day to day, and within a day from bit to bit. The calendar repeats
// after 400 years (146,097 days, a whole number of weeks): what is not found in them never comes.
//
//   Called from   any thread, and the compiler.
//   Suspends      never.
//   Cost          a month: 2 to 10 ns.

#ifndef BOBBIN_CRON_INTERNAL_FIELD_SETS_H_
#define BOBBIN_CRON_INTERNAL_FIELD_SETS_H_

#include <bit>
#include <cstdint>

#include <bobbin/cron/mistake.h>

namespace bobbin::cron::internal {

inline constexpr int kYearsInCycle = 400;

inline constexpr uint64_t kAllSixty = (uint64_t{1} << 60) - 1;
inline constexpr uint32_t kAllHours = (uint32_t{1} << 24) - 1;
inline constexpr uint32_t kAllDays = ~uint32_t{1};
inline constexpr uint16_t kAllMonths = 0x1ffe;
inline constexpr uint8_t kAllDaysOfWeek = 0x7f;

template <typename Word>
constexpr bool Has(Word set, int bit) {
  return (set >> bit & 1) != 0;
}

// The members of `set` above, and below, `bit`. REQUIRES: 0 <= bit < the bits of Word.
template <typename Word>
constexpr Word Above(Word set, int bit) {
  // In two steps: a shift by all bits is undefined.
  return set & static_cast<Word>(static_cast<Word>(~Word{0} << bit) << 1);
}
template <typename Word>
constexpr Word Below(Word set, int bit) {
  return set & static_cast<Word>((Word{1} << bit) - 1);
}

// The least and the greatest member. REQUIRES: the set is not empty.
template <typename Word>
constexpr int First(Word set) {
  return std::countr_zero(set);
}
template <typename Word>
constexpr int Last(Word set) {
  return static_cast<int>(std::bit_width(set)) - 1;
}

// A month of the cycle: which year of 400, 0 to 399, and 1 to 12.
struct Month {
  int year = 0;
  int month = 1;

  constexpr bool IsInLeapYear() const { return year % 4 == 0 && (year % 100 != 0 || year == 0); }
  constexpr int Length() const {
    if (month == 2) return IsInLeapYear() ? 29 : 28;
    return 30 + ((month + (month >> 3)) & 1);
  }
  // The weekday of its first day; 0 is Sunday.
  constexpr int FirstWeekday() const {
    constexpr uint8_t kShifts[12] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
    // The year before 0 is 399, a cycle earlier.
    const int counted = month < 3 ? (year == 0 ? kYearsInCycle - 1 : year - 1) : year;
    return (counted + counted / 4 - counted / 100 + kShifts[month - 1] + 1) % 7;
  }
};

// The year in the cycle.
constexpr int YearInCycle(int64_t year) {
  const auto rest = static_cast<int>(year % kYearsInCycle);
  return rest < 0 ? rest + kYearsInCycle : rest;
}

struct FieldSets {
  uint64_t seconds = 0;
  uint64_t minutes = 0;
  uint64_t nth_days_of_week = 0;  // d#n: bit 7 * (n - 1) + d.
  uint32_t hours = 0;
  uint32_t days = 0;
  uint32_t days_before_last = 0;  // L-n: bit 31 - n, so that one shift makes it a day of a month.
  uint32_t days_nearest = 0;      // nW: bit n. LW: bit 0.
  uint16_t months = 0;
  uint8_t days_of_week = 0;       // Bit 0 is Sunday.
  uint8_t last_days_of_week = 0;  // dL.
  uint8_t intervals = 0;          // Bit f: time field f was written with *, a range or a step.

  friend constexpr bool operator==(const FieldSets&, const FieldSets&) = default;

  // The days of a month that are meant. The field for the month is not asked.
  constexpr uint32_t DaysIn(Month month) const {
    const int length = month.Length();
    const uint32_t by_number = DaysByNumber(month, length);
    if (days_of_week == kAllDaysOfWeek || by_number == 0) return by_number;
    return by_number & DaysByWeekday(month.FirstWeekday(), length);
  }

  // Whether both day fields together, or day-of-month alone, mean any day at all. Any 28 years
  // without a turn of a century have each kind of year: leap or not, begun on each weekday.
  constexpr bool HaveDays() const {
    for (int year = 1; year <= 28; ++year) {
      for (uint32_t rest = months; rest != 0; rest &= rest - 1) {
        if (DaysIn(Month{year, First(rest)}) != 0) return true;
      }
    }
    return false;
  }
  constexpr bool HaveDaysByNumber() const {
    FieldSets on_any_weekday = *this;
    on_any_weekday.days_of_week = kAllDaysOfWeek;
    return on_any_weekday.HaveDays();
  }

 private:
  // Bits 1 to `length`.
  static constexpr uint32_t DaysUpTo(int length) { return (uint32_t{2} << length) - 2; }

  // A week's set, over and over, from a month's first day on: bit d is day d.
  static constexpr uint64_t Repeat(uint64_t week, int first_weekday) {
    constexpr uint64_t kEverySeventh = 0x0102040810204081;
    return (week * kEverySeventh >> first_weekday) << 1;
  }

  constexpr uint32_t DaysByNumber(Month month, int length) const {
    uint32_t set = days;
    if (days_before_last != 0) set |= days_before_last >> (31 - length);
    if (days_nearest != 0) set |= NearestWeekdays(month.FirstWeekday(), length);
    return set & DaysUpTo(length);
  }

  constexpr uint32_t DaysByWeekday(int first_weekday, int length) const {
    uint64_t set = Repeat(days_of_week, first_weekday);
    if (last_days_of_week != 0) {
      set |= Repeat(last_days_of_week, first_weekday) & (uint64_t{0x7f} << (length - 6));
    }
    // The n-th seven days have each weekday once: a week's set, turned to the first weekday.
    for (uint64_t rest = nth_days_of_week, week = 0; rest != 0; rest >>= 7, ++week) {
      set |= (Repeat(rest & 0x7f, first_weekday) & 0xfe) << (7 * week);
    }
    return static_cast<uint32_t>(set);
  }

  constexpr uint32_t NearestWeekdays(int first_weekday, int length) const {
    uint64_t set = 0;  // The 31st may become a 32nd, which no month has.
    for (uint32_t rest = days_nearest; rest != 0; rest &= rest - 1) {
      const int named = First(rest);
      if (named > length) break;
      const int day = named == 0 ? length : named;
      const int weekday = (first_weekday + day - 1) % 7;
      int nearest = day;
      if (weekday == 6) nearest = day > 1 ? day - 1 : day + 2;  // Never into the month before.
      if (weekday == 0) nearest = named == 0 ? day - 2 : day + 1;
      set |= uint64_t{1} << nearest;
    }
    return static_cast<uint32_t>(set);
  }
};

static_assert(sizeof(FieldSets) <= 64, "a search should touch one cache line");

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_INTERNAL_FIELD_SETS_H_
