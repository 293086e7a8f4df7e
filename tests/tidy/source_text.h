// SPDX-License-Identifier: Apache-2.0
//
// SourceText: a C++ file taken apart into what the compiler reads and what people read.
//
// It knows just enough of the language to never mistake one for the other: comments, character and
// string literals, raw strings, digit separators. Nothing is preprocessed.

#ifndef BOBBIN_TESTS_TIDY_SOURCE_TEXT_H_
#define BOBBIN_TESTS_TIDY_SOURCE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace bobbin::tidy {

struct SourceLine {
  std::string raw;      // As it stands in the file.
  std::string code;     // Without comments; literals are empty: "" and ''.
  std::string comment;  // The text of its comments, without their marks.
};

// A word, a number, `::`, `->`, or any other single character of code.
struct Token {
  std::string_view text;
  int line = 0;  // From 1.
};

// Lines without their end. A last line that has no end is a line, too.
std::vector<std::string_view> SplitLines(std::string_view text);

std::vector<SourceLine> SplitSource(std::string_view text);

// The tokens of one piece of code, which must outlive them.
std::vector<Token> Tokens(std::string_view code, int line = 1);

// The tokens of all lines except includes. `lines` must outlive them.
std::vector<Token> Tokens(const std::vector<SourceLine>& lines);

// What stands between the quotes or brackets of an include, with them; empty if the line is none.
std::string_view IncludeOf(const SourceLine& line);

bool IsWordCharacter(char c);
std::string_view Trim(std::string_view text);
std::string ToLower(std::string_view text);

}  // namespace bobbin::tidy

#endif  // BOBBIN_TESTS_TIDY_SOURCE_TEXT_H_
