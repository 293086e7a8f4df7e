// SPDX-License-Identifier: Apache-2.0
//
// Compile error: how a mistake in a literal becomes a message of the compiler.
//
// A constant expression may not call what is not constexpr, and the compiler then names what was
// called. The functions below are therefore named like the mistakes, and their argument like the
// field and what it allows. They are never defined: they can be nothing but a message, such as
//
//   call to non-'constexpr' function 'void number_out_of_range() [with In = minute_from_0_to_59]'
//
//   Called from   the compiler only.

#ifndef BOBBIN_CRON_INTERNAL_COMPILE_ERROR_H_
#define BOBBIN_CRON_INTERNAL_COMPILE_ERROR_H_

#include <bobbin/cron/mistake.h>

namespace bobbin::cron::internal::compile_error {

// What the messages say is spelled as it is to be read.
// NOLINTBEGIN(readability-identifier-naming)
enum class In {
  second_from_0_to_59,
  minute_from_0_to_59,
  hour_from_0_to_23,
  day_of_month_from_1_to_31_or_L_or_W,
  month_from_1_to_12_or_JAN_to_DEC,
  day_of_week_from_0_to_7_or_SUN_to_SAT,
};

template <In>
void empty_part_in_list();
template <In>
void part_not_understood();
template <In>
void number_out_of_range();
template <In>
void range_goes_backwards();
template <In>
void step_must_be_a_number_from_1();
template <In>
void no_day_ever_matches();

void six_fields_needed_second_minute_hour_day_of_month_month_day_of_week();
void six_fields_needed_a_unix_expression_lacks_the_second_in_front();
void macro_must_be_yearly_annually_monthly_weekly_daily_midnight_or_hourly();
// NOLINTEND(readability-identifier-naming)

template <In in>
consteval void RefuseIn(Mistake::Kind kind) {
  switch (kind) {
    case Mistake::Kind::kEmptyPart:
      return empty_part_in_list<in>();
    case Mistake::Kind::kUnknownPart:
      return part_not_understood<in>();
    case Mistake::Kind::kOutOfRange:
      return number_out_of_range<in>();
    case Mistake::Kind::kBackwards:
      return range_goes_backwards<in>();
    case Mistake::Kind::kStep:
      return step_must_be_a_number_from_1<in>();
    default:
      return no_day_ever_matches<in>();
  }
}

consteval void Refuse(const Mistake& mistake) {
  if (mistake.kind == Mistake::Kind::kUnknownMacro) {
    return macro_must_be_yearly_annually_monthly_weekly_daily_midnight_or_hourly();
  }
  if (mistake.kind == Mistake::Kind::kCount) {
    if (mistake.fields_found == 5) {
      return six_fields_needed_a_unix_expression_lacks_the_second_in_front();
    }
    return six_fields_needed_second_minute_hour_day_of_month_month_day_of_week();
  }
  switch (*mistake.field) {
    case Field::kSecond:
      return RefuseIn<In::second_from_0_to_59>(mistake.kind);
    case Field::kMinute:
      return RefuseIn<In::minute_from_0_to_59>(mistake.kind);
    case Field::kHour:
      return RefuseIn<In::hour_from_0_to_23>(mistake.kind);
    case Field::kDayOfMonth:
      return RefuseIn<In::day_of_month_from_1_to_31_or_L_or_W>(mistake.kind);
    case Field::kMonth:
      return RefuseIn<In::month_from_1_to_12_or_JAN_to_DEC>(mistake.kind);
    case Field::kDayOfWeek:
      return RefuseIn<In::day_of_week_from_0_to_7_or_SUN_to_SAT>(mistake.kind);
  }
}

}  // namespace bobbin::cron::internal::compile_error

#endif  // BOBBIN_CRON_INTERNAL_COMPILE_ERROR_H_
