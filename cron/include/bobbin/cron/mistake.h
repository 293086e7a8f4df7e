// SPDX-License-Identifier: Apache-2.0
//
// Mistake: what is wrong with the text of a cron expression, where, and what is allowed there.
//
// FindMistake in expression.h returns one. The status of Expression::Parse has it as text; whoever
// marks the place in a form or an editor wants it as data.
//
//   Called from   any thread; all but Text is also for the compiler.
//   Suspends      never.
//
// Example:
//   if (auto mistake = bobbin::cron::FindMistake(text)) {
//     form.Mark(mistake->column, mistake->length, mistake->Text(text));
//   }

#ifndef BOBBIN_CRON_MISTAKE_H_
#define BOBBIN_CRON_MISTAKE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bobbin::cron {

// In the order in which they are written.
enum class Field : uint8_t { kSecond, kMinute, kHour, kDayOfMonth, kMonth, kDayOfWeek };
inline constexpr size_t kFieldCount = 6;

// "second", "minute", "hour", "day-of-month", "month", "day-of-week".
constexpr std::string_view NameOf(Field field) {
  constexpr std::string_view kNames[kFieldCount] = {"second",       "minute", "hour",
                                                    "day-of-month", "month",  "day-of-week"};
  return kNames[static_cast<size_t>(field)];
}

// The values of a field, as a text: "0-59", "1-12 or JAN-DEC".
constexpr std::string_view AllowedIn(Field field) {
  constexpr std::string_view kAllowed[kFieldCount] = {
      "0-59", "0-59", "0-23", "1-31", "1-12 or JAN-DEC", "0-7 or SUN-SAT"};
  return kAllowed[static_cast<size_t>(field)];
}

struct Mistake {
  enum class Kind : uint8_t {
    kCount,         // Not six fields, and no macro.
    kUnknownMacro,  // A text that begins with @ and is none.
    kEmptyPart,     // Nothing before, after or between commas.
    kUnknownPart,   // No number, no name, nothing that this field takes.
    kOutOfRange,    // A number outside what is allowed.
    kBackwards,     // A range whose end comes before its begin.
    kStep,          // A step that is no number from 1.
    kNever,         // Each field is right, but no day is in all of them.
  };

  Kind kind = Kind::kCount;
  // Nothing where the text as a whole is wrong: kCount, kUnknownMacro.
  std::optional<Field> field;
  // The offending part of the text: its first byte, counted from 1, and its bytes.
  size_t column = 1;
  size_t length = 0;
  // How many fields the text has.
  size_t fields_found = 0;

  // The offending part. REQUIRES: `text` is what the mistake was found in; so below.
  constexpr std::string_view PartOf(std::string_view text) const {
    return text.substr(column - 1, length);
  }
  // The field at fault by its name; "count" where it is the text as a whole.
  constexpr std::string_view field_name() const { return field ? NameOf(*field) : "count"; }

  // For people, in one line: the field, the column, the offending part, what is allowed, and a hint
  // where one helps.
  std::string Text(std::string_view text) const;
};

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_MISTAKE_H_
