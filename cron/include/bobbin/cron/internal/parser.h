// SPDX-License-Identifier: Apache-2.0
//
// Parser: from the text of an expression to its sets, or to the first mistake in it.
//
// The same code reads a literal in the compiler and a line of a configuration at run time.
//
//   Called from   any thread, and the compiler.
//   Suspends      never.
//   Cost          one pass over the text; no allocation.

#ifndef BOBBIN_CRON_INTERNAL_PARSER_H_
#define BOBBIN_CRON_INTERNAL_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <bobbin/cron/internal/field_sets.h>
#include <bobbin/cron/mistake.h>

namespace bobbin::cron::internal {

// Of letters, only those of ASCII.
constexpr char UpperCase(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
constexpr bool EqualsIgnoringCase(std::string_view text, std::string_view upper) {
  if (text.size() != upper.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (UpperCase(text[i]) != upper[i]) return false;
  }
  return true;
}

struct Macro {
  std::string_view name;
  std::string_view meaning;
};
inline constexpr Macro kMacros[] = {
    {"@YEARLY", "0 0 0 1 1 *"}, {"@ANNUALLY", "0 0 0 1 1 *"}, {"@MONTHLY", "0 0 0 1 * *"},
    {"@WEEKLY", "0 0 0 * * 0"}, {"@DAILY", "0 0 0 * * *"},    {"@MIDNIGHT", "0 0 0 * * *"},
    {"@HOURLY", "0 0 * * * *"},
};

inline constexpr std::string_view kMonthNames[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                   "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
inline constexpr std::string_view kWeekdayNames[] = {"SUN", "MON", "TUE", "WED",
                                                     "THU", "FRI", "SAT"};

class Parser {
 public:
  // Reads `text`, all of it.
  constexpr explicit Parser(std::string_view text) : text_(text) {
    ReadAll();
    if (mistake_) return;
    if (!sets_.HaveDaysByNumber()) {
      Refuse(Mistake::Kind::kNever, Field::kDayOfMonth, spans_[3]);
    } else if (!sets_.HaveDays()) {
      Refuse(Mistake::Kind::kNever, Field::kDayOfWeek, spans_[5]);
    }
  }

  // REQUIRES: there is no mistake, or it is a kNever.
  constexpr const FieldSets& sets() const { return sets_; }
  constexpr const std::optional<Mistake>& mistake() const { return mistake_; }

 private:
  // A part of the text: from its first byte to behind its last.
  struct Span {
    size_t begin = 0;
    size_t end = 0;
    constexpr bool empty() const { return begin == end; }
  };
  struct Limits {
    int least;
    int most;
  };

  static constexpr bool IsBlank(char c) { return c == ' ' || c == '\t'; }
  static constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

  static constexpr Limits LimitsOf(Field field) {
    switch (field) {
      case Field::kSecond:
      case Field::kMinute:
        return {0, 59};
      case Field::kHour:
        return {0, 23};
      case Field::kDayOfMonth:
        return {1, 31};
      case Field::kMonth:
        return {1, 12};
      case Field::kDayOfWeek:
        return {0, 7};
    }
    return {0, 0};
  }

  constexpr std::string_view At(Span span) const {
    return text_.substr(span.begin, span.end - span.begin);
  }
  // Where `c` stands first in `span`; its end if it does not.
  constexpr size_t Find(Span span, char c) const {
    while (span.begin < span.end && text_[span.begin] != c) ++span.begin;
    return span.begin;
  }

  // The first mistake counts.
  constexpr void Refuse(Mistake::Kind kind, std::optional<Field> field, Span part,
                        size_t fields_found = kFieldCount) {
    if (mistake_) return;
    mistake_ = Mistake{.kind = kind,
                       .field = field,
                       .column = part.begin + 1,
                       .length = part.end - part.begin,
                       .fields_found = fields_found};
  }

  constexpr void ReadAll() {
    size_t found = 0;
    Span all;
    for (size_t at = 0; at < text_.size();) {
      if (IsBlank(text_[at])) {
        ++at;
        continue;
      }
      const size_t begin = at;
      while (at < text_.size() && !IsBlank(text_[at])) ++at;
      if (found < kFieldCount) spans_[found] = {begin, at};
      if (found == 0) all.begin = begin;
      all.end = at;
      ++found;
    }

    if (!all.empty() && text_[all.begin] == '@') {
      ReadMacro(all, found);
      return;
    }
    if (found != kFieldCount) {
      Refuse(Mistake::Kind::kCount, std::nullopt, all, found);
      return;
    }
    for (size_t i = 0; i < kFieldCount; ++i) ReadField(static_cast<Field>(i), spans_[i]);
    Normalise();
  }

  constexpr void ReadMacro(Span all, size_t found) {
    for (const Macro& macro : kMacros) {
      if (!EqualsIgnoringCase(At(all), macro.name)) continue;
      sets_ = Parser(macro.meaning).sets_;
      return;
    }
    Refuse(Mistake::Kind::kUnknownMacro, std::nullopt, all, found);
  }

  constexpr void ReadField(Field field, Span span) {
    const bool is_day = field == Field::kDayOfMonth || field == Field::kDayOfWeek;
    if (is_day && At(span) == "?") {
      AddRange(field, 1, LimitsOf(field).most, 1);
      return;
    }
    std::optional<Span> sixth_or_later;
    for (size_t begin = span.begin; begin <= span.end;) {
      const Span part{begin, Find({begin, span.end}, ',')};
      if (part.empty()) {
        Refuse(Mistake::Kind::kEmptyPart, field, part);
      } else if (field == Field::kDayOfMonth && ReadSpecialDay(part)) {
      } else if (field == Field::kDayOfWeek && ReadSpecialWeekday(part, sixth_or_later)) {
      } else {
        ReadPlain(field, part);
      }
      begin = part.end + 1;
    }
    // No month has a sixth Monday. Alone, the field never comes true, which is said later.
    if (sixth_or_later && HasDaysOfWeek()) {
      Refuse(Mistake::Kind::kOutOfRange, field, *sixth_or_later);
    }
  }

  constexpr bool HasDaysOfWeek() const {
    return sets_.days_of_week != 0 || sets_.last_days_of_week != 0 || sets_.nth_days_of_week != 0;
  }

  // * or a or a-b, and a step or none.
  constexpr void ReadPlain(Field field, Span part) {
    const Span range{part.begin, Find(part, '/')};
    int step = 1;
    if (range.end != part.end) {
      const std::optional<int> number = Number({range.end + 1, part.end});
      if (!number || *number == 0) {
        Refuse(Mistake::Kind::kStep, field, part);
        return;
      }
      step = *number;
      NoteInterval(field);
    }

    if (At(range) == "*") {
      // Weekdays are counted from Monday: */2 is Monday, Wednesday, Friday, Sunday.
      const Limits limits = LimitsOf(field);
      NoteInterval(field);
      AddRange(field, field == Field::kDayOfWeek ? 1 : limits.least, limits.most, step);
      return;
    }
    const size_t dash = Find(range, '-');
    const std::optional<int> low = Value(field, {range.begin, dash}, part);
    if (!low) return;
    if (dash == range.end) {
      AddRange(field, *low, range.end == part.end ? *low : LimitsOf(field).most, step);
      return;
    }
    const std::optional<int> high = Value(field, {dash + 1, range.end}, part);
    if (!high) return;
    NoteInterval(field);
    // A range may begin with SUN or 7: the week then begins with Sunday.
    const int begin = field == Field::kDayOfWeek && *low == 7 ? 0 : *low;
    if (begin > *high) {
      Refuse(Mistake::Kind::kBackwards, field, range);
    } else {
      AddRange(field, begin, *high, step);
    }
  }

  // L, L-n, LW, nW. False if the part is none of them, nor looks like one.
  constexpr bool ReadSpecialDay(Span part) {
    const std::string_view text = At(part);
    if (UpperCase(text.front()) == 'L') {
      if (text.size() == 1) {
        sets_.days_before_last |= uint32_t{1} << 31;
        return true;
      }
      if (EqualsIgnoringCase(text, "LW")) {
        sets_.days_nearest |= 1;
        return true;
      }
      if (text[1] != '-') return false;
      const Span span{part.begin + 2, part.end};
      const std::optional<int> offset = Number(span);
      if (!offset) return false;
      if (*offset < 1 || *offset > 30) {
        Refuse(Mistake::Kind::kOutOfRange, Field::kDayOfMonth, span);
        return true;
      }
      sets_.days_before_last |= uint32_t{1} << (31 - *offset);
      return true;
    }
    if (UpperCase(text.back()) != 'W') return false;
    const Span span{part.begin, part.end - 1};
    if (!Number(span)) return false;
    if (const std::optional<int> day = Value(Field::kDayOfMonth, span, part)) {
      sets_.days_nearest |= uint32_t{1} << *day;
    }
    return true;
  }

  // dL, d#n. False if the part is none of them.
  constexpr bool ReadSpecialWeekday(Span part, std::optional<Span>& sixth_or_later) {
    const size_t hash = Find(part, '#');
    if (hash != part.end) {
      const std::optional<int> weekday = Value(Field::kDayOfWeek, {part.begin, hash}, part);
      const Span span{hash + 1, part.end};
      const std::optional<int> nth = Number(span);
      if (!weekday) return true;
      if (!nth) {
        Refuse(Mistake::Kind::kUnknownPart, Field::kDayOfWeek, part);
      } else if (*nth == 0) {
        Refuse(Mistake::Kind::kOutOfRange, Field::kDayOfWeek, span);
      } else if (*nth > 5) {
        sixth_or_later = part;
      } else {
        sets_.nth_days_of_week |= uint64_t{1} << (7 * (*nth - 1) + *weekday % 7);
      }
      return true;
    }
    if (part.end - part.begin == 1 || UpperCase(text_[part.end - 1]) != 'L') return false;
    if (const auto weekday = Value(Field::kDayOfWeek, {part.begin, part.end - 1}, part)) {
      sets_.last_days_of_week |= static_cast<uint8_t>(1 << (*weekday % 7));
    }
    return true;
  }

  // A number without a sign; more than four digits that count are as good as 9999.
  constexpr std::optional<int> Number(Span span) const {
    if (span.empty()) return std::nullopt;
    int number = 0;
    for (; span.begin < span.end; ++span.begin) {
      if (!IsDigit(text_[span.begin])) return std::nullopt;
      if (number < 1000) {
        number = number * 10 + (text_[span.begin] - '0');
      } else {
        number = 9999;
      }
    }
    return number;
  }

  // A number or a name that the field allows. Else nothing, and the mistake is noted, with `part`
  // as its place where the value is not there at all.
  constexpr std::optional<int> Value(Field field, Span span, Span part) {
    const Limits limits = LimitsOf(field);
    if (const std::optional<int> number = Number(span)) {
      if (*number >= limits.least && *number <= limits.most) return number;
      Refuse(Mistake::Kind::kOutOfRange, field, span);
      return std::nullopt;
    }
    if (field == Field::kMonth) {
      for (int i = 0; i < 12; ++i) {
        if (EqualsIgnoringCase(At(span), kMonthNames[i])) return i + 1;
      }
    }
    if (field == Field::kDayOfWeek) {
      for (int i = 0; i < 7; ++i) {
        // As names go, Sunday ends the week; a range that begins with it is put right there.
        if (EqualsIgnoringCase(At(span), kWeekdayNames[i])) return i == 0 ? 7 : i;
      }
    }
    Refuse(Mistake::Kind::kUnknownPart, field, span.empty() ? part : span);
    return std::nullopt;
  }

  constexpr void NoteInterval(Field field) {
    if (field <= Field::kHour) {
      sets_.intervals |= static_cast<uint8_t>(1 << static_cast<int>(field));
    }
  }

  constexpr void AddRange(Field field, int low, int high, int step) {
    uint64_t set = 0;
    for (int value = low; value <= high; value += step) set |= uint64_t{1} << value;
    switch (field) {
      case Field::kSecond:
        sets_.seconds |= set;
        break;
      case Field::kMinute:
        sets_.minutes |= set;
        break;
      case Field::kHour:
        sets_.hours |= static_cast<uint32_t>(set);
        break;
      case Field::kDayOfMonth:
        sets_.days |= static_cast<uint32_t>(set);
        break;
      case Field::kMonth:
        sets_.months |= static_cast<uint16_t>(set);
        break;
      case Field::kDayOfWeek:
        sets_.days_of_week |= static_cast<uint8_t>((set | set >> 7) & kAllDaysOfWeek);
        break;
    }
  }

  // What a full set already holds is not kept beside it, so that equal expressions are equal.
  constexpr void Normalise() {
    if (sets_.days == kAllDays) sets_.days_before_last = sets_.days_nearest = 0;
    if (sets_.days_of_week == kAllDaysOfWeek) {
      sets_.last_days_of_week = 0;
      sets_.nth_days_of_week = 0;
    }
  }

  const std::string_view text_;
  Span spans_[kFieldCount] = {};
  FieldSets sets_;
  std::optional<Mistake> mistake_;
};

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_INTERNAL_PARSER_H_
