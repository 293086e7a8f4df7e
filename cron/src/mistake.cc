// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <bobbin/cron/expression.h>
#include <bobbin/cron/mistake.h>

#include "cron/src/english.h"
#include "cron/src/quoted.h"

namespace bobbin::cron {

namespace {

// What a field takes besides numbers, names, * - / and commas.
std::string_view ExtrasOf(Field field) {
  switch (field) {
    case Field::kDayOfMonth:
      return ", and ? L L-3 LW 15W";
    case Field::kDayOfWeek:
      return ", and ? FRIL FRI#2";
    default:
      return "";
  }
}

std::string CountText(const Mistake& mistake, std::string_view text) {
  const std::string_view all = mistake.PartOf(text);
  if (all == "-") {
    return "\"-\" switches a job off, where that is possible; it is no expression";
  }
  std::string message = fmt::format(
      "there are {} fields where 6 are needed: second minute hour day-of-month month day-of-week",
      mistake.fields_found);
  if (mistake.fields_found == 5) {
    message += fmt::format("; if it is a five-field expression of Unix, write {}",
                           internal::Quoted("0 " + std::string(all)));
  }
  if (mistake.fields_found == 7) message += "; there is no field for the year";
  return message;
}

std::string BackwardsText(const Mistake& mistake, std::string_view part) {
  const Field field = *mistake.field;
  const std::string_view least = field == Field::kMonth        ? "JAN"
                                 : field == Field::kDayOfMonth ? "1"
                                 : field == Field::kDayOfWeek  ? "MON"
                                                               : "0";
  const std::string_view most = field == Field::kMonth        ? "DEC"
                                : field == Field::kDayOfWeek  ? "SUN"
                                : field == Field::kDayOfMonth ? "31"
                                : field == Field::kHour       ? "23"
                                                              : "59";
  const size_t dash = part.find('-');
  return fmt::format("the range {} goes backwards; around the end write {}", internal::Quoted(part),
                     internal::Quoted(fmt::format("{}-{},{}-{}", part.substr(0, dash), most, least,
                                                  part.substr(dash + 1))));
}

std::string FieldText(const Mistake& mistake, std::string_view text) {
  const std::string_view part = mistake.PartOf(text);
  const Field field = *mistake.field;
  const std::string_view allowed = AllowedIn(field);
  switch (mistake.kind) {
    case Mistake::Kind::kEmptyPart:
      return fmt::format("a part of the list is empty; allowed is {}", allowed);
    case Mistake::Kind::kUnknownPart:
      return fmt::format("{} is not understood; allowed is {}, with * - / and commas{}",
                         internal::Quoted(part), allowed, ExtrasOf(field));
    case Mistake::Kind::kOutOfRange:
      if (field == Field::kDayOfMonth && mistake.column > 1 && text[mistake.column - 2] == '-') {
        // Behind a dash it is the end of a range, or the days before the last.
        return fmt::format("{} is out of range; allowed is {}, behind L- 1-30",
                           internal::Quoted(part), allowed);
      }
      if (field == Field::kDayOfWeek && part.find('#') != part.npos) {
        return fmt::format("{}: no weekday comes six times in a month; allowed behind # is 1-5",
                           internal::Quoted(part));
      }
      return fmt::format("{} is out of range; allowed is {}{}", internal::Quoted(part), allowed,
                         field == Field::kDayOfWeek ? ", behind # 1-5" : "");
    case Mistake::Kind::kBackwards:
      return BackwardsText(mistake, part);
    case Mistake::Kind::kStep:
      return fmt::format("the step in {} must be a number from 1; allowed before it is {}",
                         internal::Quoted(part), allowed);
    default:
      return fmt::format("{} never comes: {}", internal::Quoted(part),
                         internal::WhyNoDay(internal::Parser(text).sets()));
  }
}

}  // namespace

std::string Mistake::Text(std::string_view text) const {
  if (kind == Kind::kCount) return CountText(*this, text);
  if (kind == Kind::kUnknownMacro) {
    return fmt::format(
        "column {}: {} is no macro; there are @yearly @annually @monthly @weekly @daily @midnight "
        "@hourly",
        column, internal::Quoted(PartOf(text)));
  }
  return fmt::format("{}, column {}: {}", field_name(), column, FieldText(*this, text));
}

}  // namespace bobbin::cron
