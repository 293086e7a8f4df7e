// SPDX-License-Identifier: Apache-2.0
//
// Json: writes JSON, member after member; the commas are its business.
//
//   Called from   any thread.
//
// Example:
//   Json json;
//   json.Open('{');
//   json.Member("name", name);
//   json.Close('}');
//   return std::move(json).Take();

#ifndef BOBBIN_SCHED_SRC_JSON_H_
#define BOBBIN_SCHED_SRC_JSON_H_

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fmt/format.h"

#include "sched/src/utf8.h"

namespace bobbin::internal {

class Json {
 public:
  std::string Take() && { return std::move(text_); }

  void Open(char bracket) {
    Separate();
    text_ += bracket;
    is_first_ = true;
  }
  void Open(std::string_view key, char bracket) {
    Key(key);
    Open(bracket);
  }
  void Close(char bracket) {
    text_ += bracket;
    is_first_ = false;
  }

  void Key(std::string_view key) {
    Separate();
    Quote(key);
    text_ += ':';
    is_first_ = true;
  }
  void Value(std::string_view text) {
    Separate();
    Quote(text);
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void Value(Number number) {
    Separate();
    // JSON has no infinity, and protobuf's mapping puts it in quotes.
    if (std::isfinite(static_cast<double>(number))) {
      fmt::format_to(std::back_inserter(text_), "{}", number);
    } else {
      text_ += std::isnan(static_cast<double>(number)) ? "\"NaN\""
               : number > Number{}                     ? "\"Infinity\""
                                                       : "\"-Infinity\"";
    }
  }
  void Address(const void* address) {
    Separate();
    fmt::format_to(std::back_inserter(text_), "\"{}\"", address);
  }
  template <typename T>
  void Member(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

 private:
  void Separate() {
    if (!is_first_) text_ += ',';
    is_first_ = false;
  }
  // Texts are the user's, and may be cut in the middle of a character: what is no UTF-8 is taken
  // for Latin-1, so that the result is JSON whatever comes.
  void Quote(std::string_view text) {
    text_ += '"';
    while (!text.empty()) {
      const char c = text.front();
      const auto byte = static_cast<unsigned char>(c);
      const size_t length = Utf8Length(text);
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (length == 0 || byte < 0x20 || byte == 0x7f) {
        fmt::format_to(std::back_inserter(text_), "\\u{:04x}", byte);
      } else {
        text_ += text.substr(0, length);
      }
      text.remove_prefix(std::max(length, size_t{1}));
    }
    text_ += '"';
  }

  std::string text_;
  bool is_first_ = true;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_JSON_H_
