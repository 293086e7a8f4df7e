// SPDX-License-Identifier: Apache-2.0
//
// Ascii: letters without regard to case, and what may stand in a header.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_SRC_HTTP_ASCII_H_
#define BOBBIN_IO_SRC_HTTP_ASCII_H_

#include <algorithm>
#include <string_view>

namespace bobbin::io::http::internal {

constexpr char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether they are the same but for upper and lower case.
constexpr bool IsSame(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return ToLower(x) == ToLower(y);
         });
}

// A name: of a method, of a field.
constexpr bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    const char lower = ToLower(c);
    return (lower >= 'a' && lower <= 'z') || IsDigit(c) || kMarks.find(c) != kMarks.npos;
  });
}

// What may be the value of a field: no control characters, in particular no end of line.
constexpr bool IsFieldValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

// Without blanks at either end.
constexpr std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Whether the list `text`, of words between commas, has the word.
constexpr bool ListHas(std::string_view text, std::string_view word) {
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    if (IsSame(Trim(text.substr(0, comma)), word)) return true;
    if (comma == text.size()) return false;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_ASCII_H_
