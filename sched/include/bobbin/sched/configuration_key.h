// SPDX-License-Identifier: Apache-2.0
//
// ConfigurationKey: a key of the configuration, as a constant with a type: its name, what it takes,
// its default, and what it is for. ConfigurationPattern: the same for keys with a <name> in them,
// of which there is one for each executor, pool, ...
//
// A key is declared where it is read, at namespace scope, and from then on the program knows it: it
// stands in ConfigurationTable, and a file that spells it wrongly is told so.
//
//   T                  options beside the common ones       takes
//   std::string        -                                    any text
//   int64_t            min, max                             a whole number
//   double             min, max                             a number, as 0.25
//   bool               -                                    true or false
//   absl::Duration     min, max                             10s, 1h30m, PT1M, or milliseconds
//   an enum            words                                one of the words, in any case
//
//   Called from   any thread. A key is made before main, or when a library is loaded.
//   Suspends      never.
//   Lifetime      A key lasts until the process ends: make it static. Its texts are literals.
//
// Example:
//   inline const bobbin::ConfigurationKey<absl::Duration> kReportEvery({
//       .name = "shop.report.every", .meaning = "How often the report is sent.",
//       .fallback = absl::Minutes(10), .min = absl::Seconds(1)});
//
//   BOBBIN_ASSIGN_OR_RETURN(absl::Duration every, configuration.Get(kReportEvery));

#ifndef BOBBIN_SCHED_CONFIGURATION_KEY_H_
#define BOBBIN_SCHED_CONFIGURATION_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"

#include <bobbin/core/check.h>

namespace bobbin {

// A word of an enum in the configuration, and what it means.
template <typename T>
struct ConfigurationWord {
  std::string_view word = {};
  T value = {};
};

// What is said about a key. The same for every T:
//
//   name          in full; of a pattern with "<name>" in it
//   meaning       what it is for, in a sentence, for the table
//   fallback      the value of Get where nothing is set; without one, Get fails there
//   default_text  what the table says of a default that depends on more than the key
//   environment   another environment variable that sets it, weaker than its own: "DATABASE_URL"
//   is_secret     its value is never shown; so is that of a key that sounds secret
template <typename T>
struct ConfigurationKeyOptions {
  static_assert(std::is_enum_v<T>,
                "text, an int64_t, a double, a bool, an absl::Duration, or an enum");
  std::string_view name;
  std::string_view meaning = {};
  std::optional<T> fallback = {};
  std::string_view default_text = {};
  std::string_view environment = {};
  bool is_secret = false;
  std::array<ConfigurationWord<T>, 8> words = {};
};

template <>
struct ConfigurationKeyOptions<std::string> {
  std::string_view name;
  std::string_view meaning = {};
  std::optional<std::string_view> fallback = {};
  std::string_view default_text = {};
  std::string_view environment = {};
  bool is_secret = false;
};

template <>
struct ConfigurationKeyOptions<int64_t> {
  std::string_view name;
  std::string_view meaning = {};
  std::optional<int64_t> fallback = {};
  std::string_view default_text = {};
  std::string_view environment = {};
  bool is_secret = false;
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
};

template <>
struct ConfigurationKeyOptions<double> {
  std::string_view name;
  std::string_view meaning = {};
  std::optional<double> fallback = {};
  std::string_view default_text = {};
  std::string_view environment = {};
  bool is_secret = false;
  double min = 0;
  double max = std::numeric_limits<double>::max();
};

template <>
struct ConfigurationKeyOptions<bool> {
  std::string_view name;
  std::string_view meaning = {};
  std::optional<bool> fallback = {};
  std::string_view default_text = {};
  std::string_view environment = {};
  bool is_secret = false;
};

template <>
struct ConfigurationKeyOptions<absl::Duration> {
  std::string_view name;
  std::string_view meaning = {};
  std::optional<absl::Duration> fallback = {};
  std::string_view default_text = {};
  std::string_view environment = {};
  bool is_secret = false;
  absl::Duration min = absl::ZeroDuration();
  absl::Duration max = absl::Hours(24 * 365 * 100);  // As far as std::chrono's nanoseconds go.
};

namespace internal {

// What is known of a key without its type.
class ConfigurationKeyBase {
 public:
  ConfigurationKeyBase(const ConfigurationKeyBase&) = delete;
  ConfigurationKeyBase& operator=(const ConfigurationKeyBase&) = delete;

  std::string_view name() const { return name_; }
  std::string_view meaning() const { return meaning_; }
  std::string_view environment() const { return environment_; }
  bool is_secret() const { return is_secret_; }
  bool is_pattern() const { return name_.find(kName) != name_.npos; }

  // "a whole number from 1 to 512": for messages and the table.
  virtual std::string Allowed() const = 0;
  // As it would be written in a file; empty if there is none.
  virtual std::string Fallback() const = 0;
  virtual bool Takes(std::string_view text) const = 0;
  // Whether white space alone is a value; else it is as if nothing were set.
  virtual bool TakesBlank() const { return false; }
  // What the table says of the default.
  std::string DefaultText() const;

  // The part of `key` that <name> stands for; nothing if this is not its pattern.
  std::optional<std::string> NameIn(std::string_view key) const;
  // The key for `name`.
  std::string For(std::string_view name) const;

  // Every key that has been made, by name.
  static std::vector<const ConfigurationKeyBase*> All();

 protected:
  static constexpr std::string_view kName = "<name>";

  template <typename T>
  explicit ConfigurationKeyBase(const ConfigurationKeyOptions<T>& options)
      : name_(options.name),
        meaning_(options.meaning),
        default_text_(options.default_text),
        environment_(options.environment),
        is_secret_(options.is_secret) {}
  ~ConfigurationKeyBase() = default;

  // Makes it one of All. The last step of making it: from then on it is seen by other threads.
  void Publish();

 private:
  const std::string_view name_;
  const std::string_view meaning_;
  const std::string_view default_text_;
  const std::string_view environment_;
  const bool is_secret_;
  const ConfigurationKeyBase* next_ = nullptr;  // Never changes once the key can be found.
};

using TextOptions = ConfigurationKeyOptions<std::string>;
using IntegerOptions = ConfigurationKeyOptions<int64_t>;
using NumberOptions = ConfigurationKeyOptions<double>;
using BoolOptions = ConfigurationKeyOptions<bool>;
using DurationOptions = ConfigurationKeyOptions<absl::Duration>;

// How a value of each type is read and written.
std::optional<std::string> ParseValue(const TextOptions& options, std::string_view text);
std::optional<int64_t> ParseValue(const IntegerOptions& options, std::string_view text);
std::optional<double> ParseValue(const NumberOptions& options, std::string_view text);
std::optional<bool> ParseValue(const BoolOptions& options, std::string_view text);
std::optional<absl::Duration> ParseValue(const DurationOptions& options, std::string_view text);
std::string AllowedValues(const TextOptions& options);
std::string AllowedValues(const IntegerOptions& options);
std::string AllowedValues(const NumberOptions& options);
std::string AllowedValues(const BoolOptions& options);
std::string AllowedValues(const DurationOptions& options);
std::string PrintValue(const TextOptions& options, std::string_view value);
std::string PrintValue(const IntegerOptions& options, int64_t value);
std::string PrintValue(const NumberOptions& options, double value);
std::string PrintValue(const BoolOptions& options, bool value);
std::string PrintValue(const DurationOptions& options, absl::Duration value);

bool IsSameWord(std::string_view word, std::string_view text);
std::string JoinWords(const std::vector<std::string_view>& words);

template <typename T>
std::optional<T> ParseValue(const ConfigurationKeyOptions<T>& options, std::string_view text) {
  for (const auto& [word, value] : options.words) {
    if (!word.empty() && IsSameWord(word, text)) return value;
  }
  return std::nullopt;
}

template <typename T>
std::string AllowedValues(const ConfigurationKeyOptions<T>& options) {
  std::vector<std::string_view> words;
  for (const auto& [word, value] : options.words) {
    if (!word.empty()) words.push_back(word);
  }
  return JoinWords(words);
}

template <typename T>
std::string PrintValue(const ConfigurationKeyOptions<T>& options, std::type_identity_t<T> value) {
  for (const auto& [word, its_value] : options.words) {
    if (!word.empty() && its_value == value) return std::string(word);
  }
  return {};
}

template <typename T>
class TypedConfigurationKey : public ConfigurationKeyBase {
 public:
  // The value that a text stands for; nothing if it is not allowed.
  std::optional<T> Parse(std::string_view text) const { return ParseValue(options_, text); }
  std::optional<T> fallback() const {
    if (!options_.fallback) return std::nullopt;
    return T(*options_.fallback);
  }

  std::string Allowed() const final { return AllowedValues(options_); }
  std::string Fallback() const final {
    return options_.fallback ? PrintValue(options_, *options_.fallback) : std::string();
  }
  bool Takes(std::string_view text) const final { return Parse(text).has_value(); }
  bool TakesBlank() const final { return std::is_same_v<T, std::string>; }

 protected:
  explicit TypedConfigurationKey(const ConfigurationKeyOptions<T>& options)
      : ConfigurationKeyBase(options), options_(options) {
    this->Publish();
  }
  ~TypedConfigurationKey() = default;

 private:
  const ConfigurationKeyOptions<T> options_;
};

}  // namespace internal

template <typename T>
class ConfigurationKey final : public internal::TypedConfigurationKey<T> {
 public:
  // REQUIRES: static storage; a name without "<name>".
  explicit ConfigurationKey(ConfigurationKeyOptions<T> options)
      : internal::TypedConfigurationKey<T>(options) {
    BOBBIN_CHECK(!this->is_pattern(), "a key with <name> in it is a ConfigurationPattern");
  }
};

template <typename T>
class ConfigurationPattern final : public internal::TypedConfigurationKey<T> {
 public:
  // REQUIRES: static storage; a name with "<name>" as one of its parts.
  explicit ConfigurationPattern(ConfigurationKeyOptions<T> options)
      : internal::TypedConfigurationKey<T>(options) {
    BOBBIN_CHECK(this->is_pattern(), "a pattern has <name> in it");
  }
};

// What is known of a key, for lists.
struct ConfigurationKeyInfo {
  std::string name;
  std::string allowed;
  std::string fallback;
  std::string meaning;
};

// Every key whose name begins with `prefix`, by name; as data, and as a table of Markdown.
std::vector<ConfigurationKeyInfo> KnownConfigurationKeys(std::string_view prefix);
std::string ConfigurationTable(std::string_view prefix);

}  // namespace bobbin

#endif  // BOBBIN_SCHED_CONFIGURATION_KEY_H_
