// SPDX-License-Identifier: Apache-2.0

#include "sched/src/properties.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <bobbin/sched/internal/texts.h>

#include "sched/src/utf8.h"

namespace bobbin::internal {

namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\f'; }

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void AppendUtf8(uint32_t character, std::string& text) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xC0 | character >> 6);
    add(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    add(0xE0 | character >> 12);
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  } else {
    add(0xF0 | character >> 18);
    add(0x80 | (character >> 12 & 0x3F));
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  }
}

// The number behind "\u", four digits from `at` on.
std::optional<uint32_t> HexAt(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  uint32_t number = 0;
  for (char c : text.substr(at, 4)) {
    const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a') + 10
                           : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A') + 10
                                                  : 16;
    if (digit == 16) return std::nullopt;
    number = number * 16 + digit;
  }
  return number;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  Properties Parse() {
    std::optional<std::string_view> line;
    while ((line = NextLine()) != std::nullopt) {
      if (line->empty() || line->front() == '#' || line->front() == '!') continue;
      ReadProperty(*line);
    }
    return std::move(result_);
  }

 private:
  // A line of a property, which may be several lines of the file.
  struct LongLine {
    std::string text;
    std::vector<int> numbers;  // For each byte, of its line in the file.
  };

  template <typename... T>
  void Complain(int line, fmt::format_string<T...> format, T&&... parts) {
    result_.mistakes.push_back(
        fmt::format("{}:{}: {}", file_, line, fmt::format(format, std::forward<T>(parts)...)));
  }

  // The next line of the file, without the white space that it begins with.
  std::optional<std::string_view> NextLine() {
    if (text_.empty()) return std::nullopt;
    ++number_;
    const size_t end = std::min(text_.find_first_of("\r\n"), text_.size());
    std::string_view line = text_.substr(0, end);
    const bool is_pair = text_.substr(end).starts_with("\r\n");
    text_.remove_prefix(std::min(end + (is_pair ? 2 : 1), text_.size()));
    if (!IsUtf8(line)) Complain(number_, "it is not UTF-8");
    if (line.find('\0') != line.npos) Complain(number_, "it holds a zero");
    while (!line.empty() && IsSpace(line.front())) line.remove_prefix(1);
    return line;
  }

  LongLine Join(std::string_view line) {
    LongLine whole;
    while (true) {
      const size_t last = line.find_last_not_of('\\');
      const size_t backslashes = line.size() - (last == line.npos ? 0 : last + 1);
      const bool goes_on = backslashes % 2 == 1;
      if (goes_on) line.remove_suffix(1);
      whole.text += line;
      whole.numbers.insert(whole.numbers.end(), line.size(), number_);
      if (!goes_on) return whole;
      const std::optional<std::string_view> next = NextLine();
      if (!next) return whole;
      line = *next;
    }
  }

  void ReadProperty(std::string_view first) {
    const int begin = number_;
    const LongLine line = Join(first);
    const std::string_view text = line.text;

    // The key ends where a separator stands that no backslash precedes.
    size_t end = 0;
    while (end < text.size() && text[end] != '=' && text[end] != ':' && !IsSpace(text[end])) {
      end += text[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, text.size());
    size_t value = end;
    while (value < text.size() && IsSpace(text[value])) ++value;
    if (value < text.size() && (text[value] == '=' || text[value] == ':')) ++value;
    while (value < text.size() && IsSpace(text[value])) ++value;

    Property property{.key = Unescaped(line, 0, end),
                      .value = Unescaped(line, value, text.size()),
                      .line = begin};
    if (property.key.empty()) {
      Complain(begin, "there is no key before the value");
      return;
    }
    const auto [known, is_new] = lines_.emplace(property.key, begin);
    if (!is_new) {
      Complain(begin, "{} is set in line {} already", Quoted(property.key), known->second);
      return;
    }
    result_.properties.push_back(std::move(property));
  }

  std::string Unescaped(const LongLine& line, size_t begin, size_t end) {
    const std::string_view text = std::string_view(line.text).substr(0, end);
    std::string result;
    for (size_t at = begin; at < end; ++at) {
      if (text[at] != '\\' || at + 1 == end) {
        result += text[at];
        continue;
      }
      const char escape = text[++at];
      if (escape != 'u') {
        result += escape == 't'   ? '\t'
                  : escape == 'n' ? '\n'
                  : escape == 'r' ? '\r'
                  : escape == 'f' ? '\f'
                                  : escape;
        continue;
      }

      // Characters beyond 0xFFFF are written as a pair.
      const int number = line.numbers[at];
      std::optional<uint32_t> character = HexAt(text, at + 1);
      if (!character) {
        Complain(number, "\\u is followed by four hexadecimal digits");
        continue;
      }
      at += 4;
      if (*character >= 0xD800 && *character < 0xDC00) {
        const std::optional<uint32_t> second =
            text.substr(at + 1).starts_with("\\u") ? HexAt(text, at + 3) : std::nullopt;
        if (!second || *second < 0xDC00 || *second > 0xDFFF) {
          Complain(number, "half of a pair of \\u escapes");
          continue;
        }
        at += 6;
        character = 0x10000 + ((*character - 0xD800) << 10) + (*second - 0xDC00);
      } else if (*character >= 0xDC00 && *character < 0xE000) {
        Complain(number, "half of a pair of \\u escapes");
        continue;
      } else if (*character == 0) {
        Complain(number, "it holds a zero");
        continue;
      }
      AppendUtf8(*character, result);
    }
    return result;
  }

  std::string_view text_;  // What is left.
  const std::string_view file_;
  int number_ = 0;  // Of the line that was read last.
  std::map<std::string, int> lines_;
  Properties result_;
};

}  // namespace

Properties ParseProperties(std::string_view text, std::string_view file) {
  return Parser(text, file).Parse();
}

}  // namespace bobbin::internal
