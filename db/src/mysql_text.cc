// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_text.h"

#include <algorithm>

namespace bobbin::db::internal {

namespace {

bool IsWordPart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lowered(std::string_view word) {
  std::string lowered(word);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

// Statements that begin so leave nothing behind, as far as it can be seen from their text.
constexpr std::string_view kHarmless[] = {"alter",    "analyze",   "begin",    "commit",  "create",
                                          "delete",   "desc",      "describe", "do",      "drop",
                                          "explain",  "insert",    "kill",     "release", "replace",
                                          "rollback", "savepoint", "select",   "show",    "start",
                                          "table",    "truncate",  "update",   "values",  "with"};
// Words of others that do.
constexpr std::string_view kTelling[] = {
    "get_lock",  "last_insert_id", "release_all_locks",  "release_lock",
    "temporary", "setval",         "sql_calc_found_rows"};

constexpr std::string_view kChanges[] = {"delete", "insert", "replace", "update"};

template <size_t kCount>
bool IsAmong(const std::string_view (&words)[kCount], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

class Translator {
 public:
  Translator(std::string_view sql, Backslashes backslashes)
      : rest_(sql), backslashes_(backslashes) {}

  MySqlText Run() && {
    result_.text.reserve(rest_.size());
    while (!rest_.empty()) Step();
    return std::move(result_);
  }

 private:
  void Step() {
    const char c = rest_.front();
    if (c == '\'' || c == '"' || c == '`') {
      Copy(QuotedSize(c));
    } else if (c == '#' || IsDashComment()) {
      Copy(std::min(rest_.find('\n'), rest_.size()));
    } else if (rest_.starts_with("/*") && !rest_.starts_with("/*!") && !rest_.starts_with("/*M!")) {
      const size_t end = rest_.find("*/", 2);
      Copy(end == rest_.npos ? rest_.size() : end + 2);
    } else if (c == '$' && rest_.size() > 1 && IsDigit(rest_[1])) {
      Place();
    } else if (IsWordPart(c)) {
      Word();
    } else {
      if (c == ';') is_first_word_ = true;
      if (c == '@') Leave(Residue::kSession);
      if (c == '*') result_.has_star = true;
      Copy(1);
    }
  }

  void Copy(size_t size) {
    result_.text += rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  bool IsDashComment() const {
    return rest_.starts_with("--") &&
           (rest_.size() == 2 || static_cast<unsigned char>(rest_[2]) <= ' ');
  }

  // A quote in the text is written twice, which here reads as two texts.
  size_t QuotedSize(char quote) const {
    const bool has_escapes = quote != '`' && backslashes_ == Backslashes::kEscape;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) return i + 1;
      if (has_escapes && rest_[i] == '\\') ++i;
    }
    return rest_.size();
  }

  void Place() {
    size_t number = 0;
    size_t size = 1;
    for (; size < rest_.size() && IsDigit(rest_[size]) && number < kNumberMax; ++size) {
      number = number * 10 + static_cast<size_t>(rest_[size] - '0');
    }
    // A zero is no number of a value: the server says what is wrong with it.
    if (number == 0) return Copy(size);
    rest_.remove_prefix(size);
    result_.text += '?';
    result_.values.push_back(number - 1);
    result_.value_count = std::max(result_.value_count, number);
  }

  void Word() {
    const size_t size = static_cast<size_t>(
        std::find_if_not(rest_.begin(), rest_.end(), IsWordPart) - rest_.begin());
    const std::string word = Lowered(rest_.substr(0, size));
    if (is_first_word_) {
      result_.is_change |= IsAmong(kChanges, word);
      if (word == "use") {
        Leave(Residue::kDatabase);
      } else if (!IsAmong(kHarmless, word)) {
        Leave(Residue::kSession);
      }
      is_first_word_ = false;
    } else if (IsAmong(kTelling, word)) {
      Leave(Residue::kSession);
    }
    Copy(size);
  }

  void Leave(Residue residue) { result_.residue = std::max(result_.residue, residue); }

  // More values than this are refused anyway.
  static constexpr size_t kNumberMax = 100'000;

  std::string_view rest_;
  const Backslashes backslashes_;
  bool is_first_word_ = true;
  MySqlText result_;
};

}  // namespace

MySqlText TranslateMySql(std::string_view sql, Backslashes backslashes) {
  return Translator(sql, backslashes).Run();
}

}  // namespace bobbin::db::internal
