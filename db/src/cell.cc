// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <system_error>

#include <bobbin/db/internal/cell.h>

#include "db/src/hex.h"

namespace bobbin::db::internal {

namespace {

// Takes a text apart from its front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }
  bool Skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // A number of `digits_min` to `digits_max` digits.
  std::optional<int64_t> Number(size_t digits_min, size_t digits_max) {
    size_t digits = 0;
    int64_t number = 0;
    while (digits < digits_max && digits < rest_.size() && IsDigit(rest_[digits])) {
      number = number * 10 + (rest_[digits++] - '0');
    }
    if (digits < digits_min) return std::nullopt;
    rest_.remove_prefix(digits);
    return number;
  }
  // The digits after a decimal point, as nanoseconds; none are 0.
  std::optional<int64_t> Fraction() {
    if (!Skip('.')) return 0;
    const size_t before = rest_.size();
    std::optional<int64_t> number = Number(1, 9);
    if (!number.has_value()) return std::nullopt;
    for (size_t digits = before - rest_.size(); digits < 9; ++digits) *number *= 10;
    return number;
  }

 private:
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  std::string_view rest_;
};

// `2024-05-01`. The year may have more digits, and ` BC` may stand behind the whole text.
struct Date {
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
};

std::optional<Date> ScanDate(Scanner& scanner) {
  const auto year = scanner.Number(4, 6);
  if (!year.has_value() || !scanner.Skip('-')) return std::nullopt;
  const auto month = scanner.Number(2, 2);
  if (!month.has_value() || !scanner.Skip('-')) return std::nullopt;
  const auto day = scanner.Number(2, 2);
  if (!day.has_value()) return std::nullopt;
  return Date{*year, *month, *day};
}

std::optional<absl::CivilDay> DayOf(const Date& date, Scanner& scanner) {
  // The year before 1 is 1 BC; it has the number 0.
  const int64_t year = scanner.Skip(" BC") ? 1 - date.year : date.year;
  if (!scanner.is_at_end()) return std::nullopt;
  const absl::CivilDay day(year, date.month, date.day);
  // What does not exist has become another day.
  if (day.month() != date.month || day.day() != date.day) return std::nullopt;
  return day;
}

// `12:34`, `12:34:56.789`.
std::optional<absl::Duration> ScanTimeOfDay(Scanner& scanner) {
  const auto hour = scanner.Number(2, 2);
  if (!hour.has_value() || !scanner.Skip(':')) return std::nullopt;
  const auto minute = scanner.Number(2, 2);
  if (!minute.has_value()) return std::nullopt;
  std::optional<int64_t> second = 0;
  std::optional<int64_t> nanoseconds = 0;
  if (scanner.Skip(':')) {
    second = scanner.Number(2, 2);
    nanoseconds = scanner.Fraction();
  }
  if (!second.has_value() || !nanoseconds.has_value()) return std::nullopt;
  if (*hour > 24 || *minute > 59 || *second > 60) return std::nullopt;
  return absl::Hours(*hour) + absl::Minutes(*minute) + absl::Seconds(*second) +
         absl::Nanoseconds(*nanoseconds);
}

// `Z`, `+02`, `-05:30`, `+00:53:28`; nothing is UTC.
std::optional<absl::Duration> ScanOffset(Scanner& scanner) {
  if (scanner.Skip('Z')) return absl::ZeroDuration();
  const bool is_negative = scanner.Skip('-');
  if (!is_negative && !scanner.Skip('+')) return absl::ZeroDuration();
  const auto hours = scanner.Number(2, 2);
  if (!hours.has_value()) return std::nullopt;
  absl::Duration offset = absl::Hours(*hours);
  for (const absl::Duration unit : {absl::Minutes(1), absl::Seconds(1)}) {
    if (!scanner.Skip(':')) break;
    const auto number = scanner.Number(2, 2);
    if (!number.has_value()) return std::nullopt;
    offset += *number * unit;
  }
  return is_negative ? -offset : offset;
}

// The bytes of `\x0a1b`, or of the older form, in which others than letters are `\012` and `\\`.
bool DecodeBlob(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.starts_with("\\x")) {
    if (text.size() % 2 != 0) return false;
    bytes.reserve(text.size() / 2 - 1);
    for (size_t i = 2; i < text.size(); i += 2) {
      const int high = HexDigit(text[i]);
      const int low = HexDigit(text[i + 1]);
      if (high < 0 || low < 0) return false;
      bytes += static_cast<char>(high << 4 | low);
    }
    return true;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      bytes += '\\';
      ++i;
    } else {
      int byte = 0;
      const auto [end, error] =
          std::from_chars(text.data() + i + 1, text.data() + std::min(i + 4, text.size()), byte, 8);
      if (error != std::errc() || end != text.data() + i + 4) return false;
      bytes += static_cast<char>(byte);
      i += 3;
    }
  }
  return true;
}

template <typename T>
bool ReadNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<absl::CivilDay> ParseDay(std::string_view text) {
  Scanner scanner(text);
  const auto date = ScanDate(scanner);
  return date.has_value() ? DayOf(*date, scanner) : std::nullopt;
}

std::optional<absl::Time> ParseTime(std::string_view text) {
  if (text == "infinity") return absl::InfiniteFuture();
  if (text == "-infinity") return absl::InfinitePast();
  Scanner scanner(text);
  const auto date = ScanDate(scanner);
  if (!date.has_value() || !(scanner.Skip(' ') || scanner.Skip('T'))) return std::nullopt;
  const auto time_of_day = ScanTimeOfDay(scanner);
  if (!time_of_day.has_value()) return std::nullopt;
  const auto offset = ScanOffset(scanner);
  if (!offset.has_value()) return std::nullopt;
  const auto day = DayOf(*date, scanner);
  if (!day.has_value()) return std::nullopt;
  return absl::FromCivil(*day, absl::UTCTimeZone()) + *time_of_day - *offset;
}

bool ReadText(CellKind kind, std::string_view text, std::string& storage, CellView& cell) {
  cell = {};
  cell.kind = kind;
  cell.bytes = text;
  switch (kind) {
    case CellKind::kInteger:
      // So is a bool written.
      if (text == "t" || text == "f") {
        cell.integer = text == "t" ? 1 : 0;
        return true;
      }
      return ReadNumber(text, cell.integer);
    case CellKind::kReal:
      return ReadNumber(text, cell.real);  // Also `NaN` and `Infinity`.
    case CellKind::kBlob:
      if (!DecodeBlob(text, storage)) return false;
      cell.bytes = storage;
      return true;
    case CellKind::kNull:
    case CellKind::kUnsigned:
    case CellKind::kText:
    case CellKind::kArray:
      return true;
  }
  return false;
}

// --- ArrayReader.

ArrayReader::ArrayReader(const CellView& array)
    : element_kind_(array.element_kind), rest_(array.bytes) {
  // Bounds that do not begin at 1 stand before: `[0:1]={1,2}`.
  if (rest_.starts_with('[')) rest_.remove_prefix(std::min(rest_.find('=') + 1, rest_.size()));
  if (rest_.size() < 2 || rest_.front() != '{' || rest_.back() != '}') {
    Fail();
    return;
  }
  rest_ = rest_.substr(1, rest_.size() - 2);
}

bool ArrayReader::Fail() {
  is_valid_ = false;
  rest_ = {};
  return false;
}

bool ArrayReader::Next(CellView& cell) {
  if (rest_.empty()) return false;
  if (!is_first_) {
    if (rest_.front() != ',') return Fail();
    rest_.remove_prefix(1);
  }
  is_first_ = false;
  bool is_quoted = false;
  if (!TakeElement(is_quoted)) return Fail();
  cell = {};
  if (!is_quoted && element_ == "NULL") return true;
  const bool is_nested = !is_quoted && element_.starts_with('{');
  if (!ReadText(is_nested ? CellKind::kArray : element_kind_, element_, storage_, cell)) {
    return Fail();
  }
  if (is_nested) cell.element_kind = element_kind_;
  return true;
}

bool ArrayReader::TakeElement(bool& is_quoted) {
  element_.clear();
  int depth = 0;
  bool is_inside = false;  // Of quotes.
  size_t i = 0;
  for (; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (!is_inside && depth == 0 && c == ',') break;
    // What is nested keeps its quotes: it is read again.
    if (c == '\\' && i + 1 < rest_.size()) {
      if (depth > 0) element_ += c;
      element_ += rest_[++i];
      continue;
    }
    if (c == '"') {
      is_inside = !is_inside;
      if (depth == 0) {
        is_quoted = true;
        continue;
      }
    }
    if (!is_inside && c == '{') ++depth;
    if (!is_inside && c == '}') --depth;
    element_ += c;
  }
  rest_.remove_prefix(i);
  return !is_inside && depth == 0 && (is_quoted || !element_.empty());
}

}  // namespace bobbin::db::internal
