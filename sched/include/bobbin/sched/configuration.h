// SPDX-License-Identifier: Apache-2.0
//
// Configuration: what a program is told from outside: by files of properties, by its environment,
// and by itself.
//
// A value comes from the strongest source that has one:
//
//   1. ConfigurationOptions::values           the program: what it was told on its command line
//   2. BOBBIN_TASK_EXECUTOR_MAIL_THREADS      the environment: capitals; "." and "-" become "_"
//   3. the key's own other variable           PORT, DATABASE_URL
//   4. application-<profile>.properties       in ConfigurationOptions::folder, for bobbin.profile
//   5. application.properties                 the same folder
//   6. the default of its ConfigurationKey
//
// Files have the syntax of Java's: `key = value`, comments, lines that go on, escapes; in UTF-8. In
// their values ${key} and ${key:fallback} stand for the environment variable of that very name, or
// else for the key's value; what the program and the environment say is taken as it is. A value of
// white space alone counts as none, unless the key takes text.
//
// Load refuses what it can: mistakes in the files, and values that known keys do not take, all at
// once and each with where it stands. Keys below bobbin. that nothing in this program knows are
// warned about. The value of a key that sounds secret (password, token, ...) is never shown, nor is
// a password in a URL.
//
//   Called from   any thread: once loaded it does not change, and copies share what they know.
//   Suspends      Load, while it reads the files, as RunBlocking does. Nothing else.
//   Cancellation  Load obeys it.
//   Errors        INVALID_ARGUMENT: a value, or a file, is wrong; the message says which, where it
//                 stands, and what is allowed. NOT_FOUND: nothing is set, and there is no default.
//                 Others: a file cannot be read.
//   Cost          a value is looked up and parsed each time: read what you need at the start.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(const auto configuration, bobbin::Configuration::Load());
//   BOBBIN_ASSIGN_OR_RETURN(absl::Duration every, configuration.Get(kReportEvery));

#ifndef BOBBIN_SCHED_CONFIGURATION_H_
#define BOBBIN_SCHED_CONFIGURATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/configuration_key.h>

namespace bobbin {

using ConfigurationValues = std::map<std::string, std::string, std::less<>>;

struct ConfigurationOptions {
  // Where the files are; without one, none is read.
  std::string folder = ".";
  // What the program itself sets.
  ConfigurationValues values = {};
  // The variables of the environment; nothing stands for the process's own, as they are now.
  std::optional<ConfigurationValues> environment = {};
  // What becomes of a key below bobbin. that no ConfigurationKey has.
  enum class UnknownKeys : uint8_t { kWarn, kRefuse };
  UnknownKeys unknown_keys = UnknownKeys::kWarn;
  // Who gets the warnings; the log (log.h) if nobody does.
  absl::AnyInvocable<void(std::string_view warning)> warn = {};
};

// A key and what it is set to, for lists.
struct ConfigurationEntry {
  std::string key;
  std::string value;   // Without what is secret.
  std::string origin;  // "application.properties:12", "environment BOBBIN_PROFILE", "default".
};

class Configuration {
 public:
  // With the defaults alone.
  Configuration();
  static absl::StatusOr<Configuration> Load(ConfigurationOptions options = {});

  // The value of a key, or its default.
  template <typename T>
  absl::StatusOr<T> Get(const ConfigurationKey<T>& key) const {
    return GetOf<T>(key, key.name());
  }
  template <typename T>
  absl::StatusOr<T> GetFor(const ConfigurationPattern<T>& pattern, std::string_view name) const {
    return GetOf<T>(pattern, pattern.For(name));
  }

  // The value that is set; nothing if none is.
  template <typename T>
  absl::StatusOr<std::optional<T>> Find(const ConfigurationKey<T>& key) const {
    return FindOf<T>(key, key.name());
  }
  template <typename T>
  absl::StatusOr<std::optional<T>> FindFor(const ConfigurationPattern<T>& pattern,
                                           std::string_view name) const {
    return FindOf<T>(pattern, pattern.For(name));
  }
  // An INVALID_ARGUMENT that says of a value which is set why it will not do, for what a key alone
  // cannot tell: "it must not be less than bobbin.task.executor.mail.threads".
  absl::Status Refuse(std::string_view key, std::string_view why) const;

  // The names for which a pattern is set by a file or by the program, in order. The environment is
  // not searched: it does not tell "." from "-".
  template <typename T>
  std::vector<std::string> NamesOf(const ConfigurationPattern<T>& pattern) const {
    return NamesOfPattern(pattern);
  }

  // The text of any key; nothing if it is not set.
  absl::StatusOr<std::optional<std::string>> Text(std::string_view key) const;
  // `text` with its placeholders replaced, as in a file.
  absl::StatusOr<std::string> Resolve(std::string_view text) const;

  // bobbin.profile; empty if there is none.
  const std::string& profile() const;
  // Each known key, and each other one that a file or the program sets, by name. A value that
  // cannot be resolved says so.
  std::vector<ConfigurationEntry> Entries() const;
  // The same for people: a line for each.
  std::string ToString() const;

 private:
  struct State;
  class Loader;

  explicit Configuration(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  template <typename T>
  absl::StatusOr<std::optional<T>> FindOf(const internal::TypedConfigurationKey<T>& key,
                                          std::string_view name) const {
    BOBBIN_ASSIGN_OR_RETURN(const std::optional<std::string> text, TextOf(key, name));
    if (!text) return std::optional<T>();
    std::optional<T> value = key.Parse(*text);
    if (!value) return Refuse(name, NotAllowed(key));
    return value;
  }
  template <typename T>
  absl::StatusOr<T> GetOf(const internal::TypedConfigurationKey<T>& key,
                          std::string_view name) const {
    BOBBIN_ASSIGN_OR_RETURN(std::optional<T> value, FindOf<T>(key, name));
    if (!value) value = key.fallback();
    if (!value) return Missing(name);
    return *std::move(value);
  }

  // The text that is set for a key, unless it counts as none.
  absl::StatusOr<std::optional<std::string>> TextOf(const internal::ConfigurationKeyBase& key,
                                                    std::string_view name) const;
  static std::string NotAllowed(const internal::ConfigurationKeyBase& key);
  static absl::Status Missing(std::string_view name);
  std::vector<std::string> NamesOfPattern(const internal::ConfigurationKeyBase& pattern) const;

  std::shared_ptr<const State> state_;
};

}  // namespace bobbin

#endif  // BOBBIN_SCHED_CONFIGURATION_H_
