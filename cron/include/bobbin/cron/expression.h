// SPDX-License-Identifier: Apache-2.0
//
// Expression: a cron expression, six fields or a macro. As a literal it is checked by the compiler.
//
//   "0 30 2 * * MON-FRI"_cron     second minute hour day-of-month month day-of-week
//
//   second, minute   0-59
//   hour             0-23
//   day-of-month     1-31, L (last), L-3 (three days before it), LW (last weekday), 15W (the
//                    weekday nearest the 15th, in the same month)
//   month            1-12 or JAN-DEC
//   day-of-week      0-7 or SUN-SAT, 0 and 7 are Sunday; FRIL (last Friday), FRI#2 (second Friday)
//   all              *, a, a-b, a-b/n, */n, a/n (from a to the end), lists of them with commas
//   the day fields   ? means *
//   macros           @yearly @annually @monthly @weekly @daily @midnight @hourly
//
// Upper and lower case are the same; blanks and tabs separate. A day must satisfy both day fields:
// "0 0 0 13 * FRI" is Friday the 13th. What never comes ("0 0 0 30 2 *") is refused. docs/cron.md
// has the dialect in detail, and where others differ.
//
// An expression knows the calendar and no time zone. Schedule in schedule.h adds one, with what
// happens when clocks change; it is what a program asks for the next run.
//
//   Called from   any thread. The literal, Next, Previous, Matches and FindMistake also in constant
//                 expressions.
//   Suspends      never.
//   Errors        Parse: INVALID_ARGUMENT, with the text of the Mistake. A literal with a mistake
//                 does not compile, and the message names the mistake, the field and its range.
//   Cost          a value of 64 bytes. Parse: one pass, no allocation but for an error. Next: some
//                 nanoseconds, and some more for each month that is looked at on the way.
//
// Example:
//   using bobbin::cron::operator""_cron;
//   constexpr auto kNightly = "0 30 2 * * MON-FRI"_cron;
//   static_assert(*"0 0 0 29 2 *"_cron.Next(absl::CivilSecond(2023, 3, 1)) ==
//                 absl::CivilSecond(2024, 2, 29));
//   BOBBIN_ASSIGN_OR_RETURN(auto when, bobbin::cron::Expression::Parse(config.schedule));

#ifndef BOBBIN_CRON_EXPRESSION_H_
#define BOBBIN_CRON_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"

#include <bobbin/cron/internal/compile_error.h>
#include <bobbin/cron/internal/field_sets.h>
#include <bobbin/cron/internal/parser.h>
#include <bobbin/cron/mistake.h>

namespace bobbin::cron {

class Expression;

inline namespace literals {
consteval Expression operator""_cron(const char* text, size_t size);
}  // namespace literals

class Expression {
 public:
  // The expression that `text` is, or INVALID_ARGUMENT.
  static absl::StatusOr<Expression> Parse(std::string_view text);

  // The same for a place where a job may be switched off: nothing for "-".
  static absl::StatusOr<std::optional<Expression>> ParseUnlessDisabled(std::string_view text);

  // The first time after `after`, and the last one before `before`. Nothing if 400 years have none,
  // which cannot be, or outside the years from -1,000,000,000 to 1,000,000,000.
  constexpr std::optional<absl::CivilSecond> Next(absl::CivilSecond after) const;
  constexpr std::optional<absl::CivilSecond> Previous(absl::CivilSecond before) const;

  constexpr bool Matches(absl::CivilSecond time) const;

  // Whether second, minute or hour was written with *, a range or a step: such an expression means
  // "over and over", one of plain numbers means "then and then".
  constexpr bool IsInterval() const { return sets_.intervals != 0; }

  // What it means, in English: "at 02:30, Monday to Friday".
  std::string Describe() const;

  // A text that parses to an equal expression; how most people would have written it.
  std::string ToString() const;

  // Whether they mean the same times, in the same way (IsInterval).
  friend constexpr bool operator==(const Expression&, const Expression&) = default;

 private:
  friend consteval Expression literals::operator""_cron(const char* text, size_t size);

  constexpr explicit Expression(const internal::FieldSets& sets) : sets_(sets) {}

  static constexpr bool IsYearSearched(int64_t year) {
    constexpr int64_t kYearMax = 1'000'000'000;
    return year >= -kYearMax && year <= kYearMax;
  }

  internal::FieldSets sets_;
};

// The first mistake in `text`; nothing if Parse takes it.
constexpr std::optional<Mistake> FindMistake(std::string_view text) {
  return internal::Parser(text).mistake();
}

// Why an expression whose fields are each right never comes true: "June has 30 days". Nothing if it
// does, and nothing if the text has another mistake.
std::optional<std::string> WhyNever(std::string_view text);

consteval Expression literals::operator""_cron(const char* text, size_t size) {
  const internal::Parser parser(std::string_view(text, size));
  if (parser.mistake()) internal::compile_error::Refuse(*parser.mistake());
  return Expression(parser.sets());
}

constexpr bool Expression::Matches(absl::CivilSecond time) const {
  using internal::Has;
  const internal::Month month{internal::YearInCycle(time.year()), time.month()};
  return Has(sets_.seconds, time.second()) && Has(sets_.minutes, time.minute()) &&
         Has(sets_.hours, time.hour()) && Has(sets_.months, month.month) &&
         Has(sets_.DaysIn(month), time.day());
}

constexpr std::optional<absl::CivilSecond> Expression::Next(absl::CivilSecond after) const {
  using internal::Above;
  using internal::First;
  using internal::Has;
  if (!IsYearSearched(after.year())) return std::nullopt;
  int64_t year = after.year();
  internal::Month month{internal::YearInCycle(year), after.month()};

  // Later on the same day.
  uint32_t days = Has(sets_.months, month.month) ? sets_.DaysIn(month) : 0;
  if (Has(days, after.day())) {
    const int hour = after.hour();
    const int minute = after.minute();
    const bool is_hour = Has(sets_.hours, hour);
    if (is_hour && Has(sets_.minutes, minute)) {
      if (const uint64_t later = Above(sets_.seconds, after.second()); later != 0) {
        return absl::CivilSecond(year, month.month, after.day(), hour, minute, First(later));
      }
    }
    if (is_hour) {
      if (const uint64_t later = Above(sets_.minutes, minute); later != 0) {
        return absl::CivilSecond(year, month.month, after.day(), hour, First(later),
                                 First(sets_.seconds));
      }
    }
    if (const uint32_t later = Above(sets_.hours, hour); later != 0) {
      return absl::CivilSecond(year, month.month, after.day(), First(later), First(sets_.minutes),
                               First(sets_.seconds));
    }
  }

  // On a later day of the month, or in a later month.
  days = Above(days, after.day());
  for (const int64_t last_year = year + internal::kYearsInCycle; days == 0;) {
    uint16_t months = Above(sets_.months, month.month);
    if (months == 0) {
      if (++year > last_year) return std::nullopt;
      if (++month.year == internal::kYearsInCycle) month.year = 0;
      months = sets_.months;
    }
    month.month = First(months);
    days = sets_.DaysIn(month);
  }
  return absl::CivilSecond(year, month.month, First(days), First(sets_.hours), First(sets_.minutes),
                           First(sets_.seconds));
}

// The mirror image of Next.
constexpr std::optional<absl::CivilSecond> Expression::Previous(absl::CivilSecond before) const {
  using internal::Below;
  using internal::Has;
  using internal::Last;
  if (!IsYearSearched(before.year())) return std::nullopt;
  int64_t year = before.year();
  internal::Month month{internal::YearInCycle(year), before.month()};

  // Earlier on the same day.
  uint32_t days = Has(sets_.months, month.month) ? sets_.DaysIn(month) : 0;
  if (Has(days, before.day())) {
    const int hour = before.hour();
    const int minute = before.minute();
    const bool is_hour = Has(sets_.hours, hour);
    if (is_hour && Has(sets_.minutes, minute)) {
      if (const uint64_t earlier = Below(sets_.seconds, before.second()); earlier != 0) {
        return absl::CivilSecond(year, month.month, before.day(), hour, minute, Last(earlier));
      }
    }
    if (is_hour) {
      if (const uint64_t earlier = Below(sets_.minutes, minute); earlier != 0) {
        return absl::CivilSecond(year, month.month, before.day(), hour, Last(earlier),
                                 Last(sets_.seconds));
      }
    }
    if (const uint32_t earlier = Below(sets_.hours, hour); earlier != 0) {
      return absl::CivilSecond(year, month.month, before.day(), Last(earlier), Last(sets_.minutes),
                               Last(sets_.seconds));
    }
  }

  // On an earlier day of the month, or in an earlier month.
  days = Below(days, before.day());
  for (const int64_t first_year = year - internal::kYearsInCycle; days == 0;) {
    uint16_t months = Below(sets_.months, month.month);
    if (months == 0) {
      if (--year < first_year) return std::nullopt;
      if (--month.year < 0) month.year = internal::kYearsInCycle - 1;
      months = sets_.months;
    }
    month.month = Last(months);
    days = sets_.DaysIn(month);
  }
  return absl::CivilSecond(year, month.month, Last(days), Last(sets_.hours), Last(sets_.minutes),
                           Last(sets_.seconds));
}

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_EXPRESSION_H_
