// SPDX-License-Identifier: Apache-2.0

#include "tests/tidy/source_text.h"

#include <algorithm>
#include <cctype>

namespace bobbin::tidy {
namespace {

// Reads a file once, from its first character to its last, and deals each to the code or the
// comment of its line.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::vector<SourceLine> Split() {
    for (std::string_view raw : SplitLines(text_)) lines_.push_back({std::string(raw), {}, {}});
    while (at_ < text_.size()) {
      if (Ahead("//")) {
        at_ += 2;
        while (at_ < text_.size() && text_[at_] != '\n') Take(lines_[line_].comment);
      } else if (Ahead("/*")) {
        at_ += 2;
        while (at_ < text_.size() && !Ahead("*/")) Take(lines_[line_].comment);
        at_ = std::min(at_ + 2, text_.size());
      } else if (text_[at_] == '"' && IsAfterRawPrefix()) {
        SkipRawString();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !IsDigitSeparator())) {
        SkipLiteral(text_[at_]);
      } else {
        Take(lines_[line_].code);
      }
    }
    return std::move(lines_);
  }

 private:
  bool Ahead(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  // Moves on by one character, which becomes part of `half` unless it ends the line.
  void Take(std::string& half) {
    if (text_[at_] == '\n') {
      ++line_;
    } else {
      half += text_[at_];
    }
    ++at_;
  }

  void Skip() {
    std::string dropped;
    Take(dropped);
  }

  // The word that ends right before the current character.
  std::string_view WordBefore() const {
    size_t begin = at_;
    while (begin > 0 && IsWordCharacter(text_[begin - 1])) --begin;
    return text_.substr(begin, at_ - begin);
  }

  bool IsAfterRawPrefix() const {
    const std::string_view word = WordBefore();
    return word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR";
  }

  // 1'000 rather than u'x'.
  bool IsDigitSeparator() const {
    const std::string_view word = WordBefore();
    return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
  }

  void SkipLiteral(char quote) {
    lines_[line_].code += {quote, quote};
    Skip();
    // A newline ends a literal that nobody closed: that is an error, but not one of style.
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) Skip();
      Skip();
    }
    if (at_ < text_.size() && text_[at_] == quote) Skip();
  }

  void SkipRawString() {
    lines_[line_].code += "\"\"";
    const size_t open = text_.find('(', at_);
    const std::string close =
        ")" + std::string(text_.substr(at_ + 1, open == text_.npos ? 0 : open - at_ - 1)) + "\"";
    while (at_ < text_.size() && !Ahead(close)) Skip();
    at_ = std::min(at_ + close.size(), text_.size());
  }

  std::string_view text_;
  std::vector<SourceLine> lines_;
  size_t at_ = 0;
  size_t line_ = 0;
};

}  // namespace

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<SourceLine> SplitSource(std::string_view text) { return Splitter(text).Split(); }

std::vector<Token> Tokens(std::string_view code, int line) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < code.size();) {
    size_t length = 1;
    if (IsWordCharacter(code[at])) {
      while (at + length < code.size() && IsWordCharacter(code[at + length])) ++length;
    } else if (code.substr(at).starts_with("::") || code.substr(at).starts_with("->")) {
      length = 2;
    }
    if (std::isspace(static_cast<unsigned char>(code[at])) == 0) {
      tokens.push_back({code.substr(at, length), line});
    }
    at += length;
  }
  return tokens;
}

std::vector<Token> Tokens(const std::vector<SourceLine>& lines) {
  std::vector<Token> all;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!IncludeOf(lines[i]).empty()) continue;
    const std::vector<Token> tokens = Tokens(lines[i].code, static_cast<int>(i) + 1);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  return all;
}

std::string_view IncludeOf(const SourceLine& line) {
  if (!Trim(line.code).starts_with("#")) return {};
  std::string_view rest = Trim(Trim(line.raw).substr(1));
  constexpr std::string_view kInclude = "include";
  if (!rest.starts_with(kInclude)) return {};
  rest = Trim(rest.substr(kInclude.size()));
  if (rest.empty() || (rest.front() != '"' && rest.front() != '<')) return {};
  const size_t end = rest.find(rest.front() == '<' ? '>' : '"', 1);
  return end == rest.npos ? std::string_view() : rest.substr(0, end + 1);
}

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

}  // namespace bobbin::tidy
