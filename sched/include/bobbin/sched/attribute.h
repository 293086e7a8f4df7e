// SPDX-License-Identifier: Apache-2.0
//
// Attribute: something that is said about a span, a log line or a metric: a key, and a text, a
// number or a truth value.
//
//   Called from   any thread: it is a value.
//
// Example:
//   span.Set("rows", rows.size());

#ifndef BOBBIN_SCHED_ATTRIBUTE_H_
#define BOBBIN_SCHED_ATTRIBUTE_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace bobbin {

class AttributeValue {
 public:
  AttributeValue(const char* text) : value_(std::string(text)) {}       // NOLINT: implicit, as all
  AttributeValue(std::string_view text) : value_(std::string(text)) {}  // NOLINT
  AttributeValue(std::string text) : value_(std::move(text)) {}         // NOLINT
  AttributeValue(bool truth) : value_(truth) {}                         // NOLINT
  AttributeValue(double number) : value_(number) {}                     // NOLINT
  template <std::integral T>
  requires(!std::same_as<T, bool>) AttributeValue(T number)
      : value_(static_cast<int64_t>(number)) {}  // NOLINT

  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const bool* truth() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  const double* number() const { return std::get_if<double>(&value_); }
  // Whichever it is, as text.
  std::string ToString() const;

  friend bool operator==(const AttributeValue&, const AttributeValue&) = default;

 private:
  std::variant<std::string, bool, int64_t, double> value_;
};

struct Attribute {
  std::string key;
  AttributeValue value;

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_ATTRIBUTE_H_
