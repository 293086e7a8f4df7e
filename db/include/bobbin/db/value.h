// SPDX-License-Identifier: Apache-2.0
//
// Value: what goes into a statement and comes out of it. Sql: the statement's text.
//
// Values are always bound, never pasted into the text. A Sql is made of a string literal, so that a
// text that was put together at run time does not compile; where it truly comes from elsewhere, say
// so with UncheckedSql, a name at which a reviewer stops.
//
//   to bind          as
//   nullptr          NULL; so is an empty std::optional
//   bool             0 or 1, where the database has no such type
//   an integer       an integer; one above the largest int64_t is refused by databases without such
//   float, double    a double
//   text             anything that is a view of char: std::string, std::string_view, a literal
//   a blob           anything that is a span of const std::byte: a std::vector, an array
//   absl::Time       a time; absl::CivilDay: a date; both are text in databases without such types
//   Uuid             a UUID, or its text
//   std::vector      an array of what it holds, and so is a std::span; refused by databases
//                    without arrays
//   Value            what it holds
//
//   Called from   any thread.
//   Suspends      never.
//   Lifetime      A Param and a Sql borrow: what they were made of must outlive the call they are
//                 given to.
//   Cost          no allocation.
//
// Example:
//   db.Execute("insert into page(url, body) values (?1, ?2)", url, body);
//   db.Execute(bobbin::db::UncheckedSql(migration_text));

#ifndef BOBBIN_DB_VALUE_H_
#define BOBBIN_DB_VALUE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

#include <bobbin/db/uuid.h>

namespace bobbin::db {

// A text of which the compiler cannot see that no value was pasted into it.
class UncheckedSql {
 public:
  explicit UncheckedSql(std::string_view text) : text_(text) {}
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

class Sql {
 public:
  // From a string literal.
  template <size_t kBytes>
  consteval Sql(const char (&literal)[kBytes]) : text_(literal, kBytes - 1) {}
  Sql(UncheckedSql unchecked) : text_(unchecked.text()) {}

  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// A value of its own, of whatever type a row or a program has.
using Value = std::variant<std::nullptr_t, int64_t, double, std::string, std::vector<std::byte>>;

namespace internal {

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

// What an array can be made of; void for what is none.
template <typename T>
struct ElementOf {
  using type = void;
};
template <typename T>
struct ElementOf<std::vector<T>> {
  using type = T;
};
template <typename T>
struct ElementOf<std::span<T>> {
  using type = std::remove_cv_t<T>;
};

// Those that stand for numbers: bool and the character types do not.
template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                  !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                  !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

// Text, also the view types of other libraries.
template <typename T>
concept Text = std::convertible_to<const T&, std::string_view> || requires(const T& text) {
  { text.data() } -> std::same_as<const char*>;
  { text.size() } -> std::convertible_to<size_t>;
};

template <typename T>
concept Blob = std::convertible_to<const T&, std::span<const std::byte>>;

template <typename T>
struct BindableImpl
    : std::bool_constant<std::same_as<T, std::nullptr_t> || std::same_as<T, bool> || Integer<T> ||
                         std::floating_point<T> || Text<T> || Blob<T> || std::same_as<T, Value> ||
                         std::same_as<T, absl::Time> || std::same_as<T, absl::CivilDay> ||
                         std::same_as<T, Uuid>> {};
template <typename T>
struct BindableImpl<std::optional<T>> : BindableImpl<T> {};
template <typename T>
requires(!std::is_void_v<typename ElementOf<T>::type> && !Blob<T> &&
         !Text<T>) struct BindableImpl<T> : BindableImpl<typename ElementOf<T>::type> {
};

}  // namespace internal

// What can be bound; see the table above.
template <typename T>
concept Bindable = internal::BindableImpl<std::remove_cvref_t<T>>::value;

class Param;

// The values of an array, borrowed from the caller.
struct ParamArray {
  const void* values = nullptr;
  size_t size = 0;
  // REQUIRES: index < size.
  Param (*at)(const void* values, size_t index) = nullptr;
};

// A value to be bound, borrowed from the caller.
class Param {
 public:
  // uint64_t only for what int64_t cannot hold.
  using Content =
      std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string_view,
                   std::span<const std::byte>, absl::Time, absl::CivilDay, Uuid, ParamArray>;

  template <Bindable T>
  Param(const T& value) : content_(ContentOf(value)) {}

  const Content& content() const { return content_; }

 private:
  template <typename T>
  static Content ContentOf(const T& value);
  // Not inlined: GCC 12 would see the value of an empty one being read, and warn.
  template <typename T>
  [[gnu::noinline]] static Content ContentOfOptional(const std::optional<T>& value) {
    return value.has_value() ? ContentOf(*value) : Content(nullptr);
  }

  Content content_;
};

template <typename T>
Param::Content Param::ContentOf(const T& value) {
  if constexpr (std::same_as<T, std::nullptr_t> || std::same_as<T, bool> ||
                std::same_as<T, absl::Time> || std::same_as<T, absl::CivilDay> ||
                std::same_as<T, Uuid>) {
    return value;
  } else if constexpr (internal::Integer<T>) {
    if (std::in_range<int64_t>(value)) return static_cast<int64_t>(value);
    return static_cast<uint64_t>(value);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<double>(value);
  } else if constexpr (internal::IsOptional<T>::value) {
    return ContentOfOptional(value);
  } else if constexpr (std::same_as<T, Value>) {
    return std::visit([](const auto& held) { return ContentOf(held); }, value);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return std::string_view(value);
  } else if constexpr (internal::Text<T>) {
    return std::string_view(value.data(), value.size());
  } else if constexpr (internal::Blob<T>) {
    return std::span<const std::byte>(value);
  } else {
    return ParamArray{.values = &value, .size = value.size(), .at = [](const void* all, size_t i) {
                        using Element = typename internal::ElementOf<T>::type;
                        return Param(static_cast<const Element&>((*static_cast<const T*>(all))[i]));
                      }};
  }
}

}  // namespace bobbin::db

#endif  // BOBBIN_DB_VALUE_H_
