// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include <bobbin/sched/configuration.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/internal/texts.h>
#include <bobbin/sched/run_blocking.h>

#include "sched/src/letters.h"
#include "sched/src/limits.h"
#include "sched/src/properties.h"

namespace bobbin {

namespace {

using internal::ConfigurationKeyBase;
using internal::LowerCase;
using internal::Quoted;

constexpr std::string_view kHidden = "******";
constexpr std::string_view kOurs = "bobbin.";

const ConfigurationKey<std::string> kProfile({
    .name = "bobbin.profile",
    .meaning = "The profile: `application-<profile>.properties` is read, too, and is stronger than "
               "`application.properties`.",
});

absl::Status Wrong(std::string_view message) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, message);
}

// The key that `name` is an instance of, or null.
const ConfigurationKeyBase* KnownKey(std::string_view name) {
  for (const ConfigurationKeyBase* key : ConfigurationKeyBase::All()) {
    if (key->name() == name || key->NameIn(name)) return key;
  }
  return nullptr;
}

bool IsSecret(std::string_view name) {
  const std::string lower = LowerCase(name);
  for (std::string_view word : {"password", "passwd", "passphrase", "secret", "token", "credential",
                                "apikey", "api-key", "api_key", "private-key", "private_key"}) {
    if (lower.find(word) != lower.npos) return true;
  }
  const ConfigurationKeyBase* const key = KnownKey(name);
  return key != nullptr && key->is_secret();
}

// A value without the passwords that it may hold: that of a URL, and those of a connection string.
std::string WithoutPasswords(std::string_view value) {
  const std::string lower = LowerCase(value);
  for (std::string_view word : {"password=", "passwd=", "pwd=", "secret=", "token="}) {
    if (lower.find(word) != lower.npos) return std::string(kHidden);
  }
  const size_t scheme = value.find("://");
  const size_t at = value.rfind('@');
  if (scheme == value.npos || at == value.npos || at < scheme) return std::string(value);
  const size_t colon = value.find(':', scheme + 3);
  if (colon > at) return std::string(value);
  return fmt::format("{}:{}{}", value.substr(0, colon), kHidden, value.substr(at));
}

bool IsProfileName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return internal::IsLetter(c) || internal::IsDigit(c) || c == '-' || c == '_';
  });
}

ConfigurationValues ProcessEnvironment() {
  ConfigurationValues variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t equals = text.find('=');
    if (equals == text.npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// The known key that was probably meant by `name`; empty if none is near.
std::string NearestKey(std::string_view name) {
  std::string nearest;
  size_t fewest = 2 + name.size() / 8;
  for (const ConfigurationKeyBase* key : ConfigurationKeyBase::All()) {
    std::string candidate(key->name());
    if (key->is_pattern()) {
      // The part of `name` that stands where the pattern has <name>.
      const auto parts =
          std::count(candidate.begin(),
                     candidate.begin() + static_cast<ptrdiff_t>(candidate.find("<name>")), '.');
      size_t begin = 0;
      for (ptrdiff_t i = 0; i < parts && begin != name.npos; ++i) {
        begin = name.find('.', begin + (i > 0 ? 1 : 0));
      }
      if (begin == name.npos) continue;
      ++begin;
      const size_t end = std::min(name.find('.', begin), name.size());
      candidate = key->For(name.substr(begin, end - begin));
    }
    const size_t edits = internal::EditsBetween(name, candidate);
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = std::move(candidate);
  }
  return nearest;
}

}  // namespace

struct Configuration::State {
  struct Value {
    std::string text;
    std::string origin;
  };
  // A file: its placeholders are replaced. Or the program.
  struct Source {
    enum class Kind : uint8_t { kProgram, kFile };
    Kind kind = Kind::kProgram;
    std::map<std::string, Value, std::less<>> values;
  };
  struct Found {
    const Value* value = nullptr;
    Source::Kind kind = Source::Kind::kProgram;
  };
  // A text whose placeholders have been replaced, and whether a secret went into it.
  struct Resolved {
    std::string text;
    bool is_secret = false;
  };
  using Chain = std::vector<std::string>;

  // All of them never change once loaded.
  Source program;
  std::map<std::string, Value, std::less<>> environment;
  Source profile_file;
  Source file;
  std::string profile;

  Found Find(std::string_view key) const;
  // The value of a key, replaced; nothing if none is set. `chain` are the keys that led to it.
  absl::StatusOr<std::optional<Resolved>> Resolve(std::string_view key, const Chain& chain) const;
  absl::StatusOr<Resolved> Replace(std::string_view text, const Chain& chain) const;

  std::string Shown(std::string_view key, const Resolved& value) const {
    if (value.is_secret || IsSecret(key)) return std::string(kHidden);
    return WithoutPasswords(value.text);
  }
  // Keys that the program or a file sets.
  std::set<std::string, std::less<>> KeysSet() const {
    std::set<std::string, std::less<>> keys;
    for (const Source* source : {&program, &profile_file, &file}) {
      for (const auto& [key, value] : source->values) keys.insert(key);
    }
    return keys;
  }
};

Configuration::State::Found Configuration::State::Find(std::string_view key) const {
  if (const auto at = program.values.find(key); at != program.values.end()) {
    return {&at->second, Source::Kind::kProgram};
  }
  if (const auto at = environment.find(internal::EnvironmentName(key)); at != environment.end()) {
    return {&at->second, Source::Kind::kProgram};
  }
  if (const ConfigurationKeyBase* const known = KnownKey(key); known != nullptr) {
    const auto at = environment.find(known->environment());
    if (at != environment.end()) return {&at->second, Source::Kind::kProgram};
  }
  for (const Source* source : {&profile_file, &file}) {
    if (const auto at = source->values.find(key); at != source->values.end()) {
      return {&at->second, Source::Kind::kFile};
    }
  }
  return {};
}

absl::StatusOr<std::optional<Configuration::State::Resolved>> Configuration::State::Resolve(
    std::string_view key, const Chain& chain) const {
  const Found found = Find(key);
  if (found.value == nullptr) return std::optional<Resolved>();
  Resolved result{found.value->text, IsSecret(key)};
  if (found.kind == Source::Kind::kProgram) return std::optional(std::move(result));

  // Chains end: by the bound, if not before.
  Chain longer = chain;
  longer.emplace_back(key);
  if (std::find(chain.begin(), chain.end(), key) != chain.end()) {
    return Wrong(fmt::format("it refers to itself: {}", fmt::join(longer, " -> ")));
  }
  if (chain.size() > internal::kPlaceholderDepthMax) {
    return Wrong(fmt::format("references are more than {} deep: {}", internal::kPlaceholderDepthMax,
                             fmt::join(longer, " -> ")));
  }
  absl::StatusOr<Resolved> replaced = Replace(result.text, longer);
  if (!replaced.ok()) {
    return chain.empty() ? Wrong(fmt::format("configuration {} ({}): {}", key, found.value->origin,
                                             MessageOf(replaced.status())))
                         : replaced.status();
  }
  result.text = std::move(replaced->text);
  result.is_secret |= replaced->is_secret;
  return std::optional(std::move(result));
}

absl::StatusOr<Configuration::State::Resolved> Configuration::State::Replace(
    std::string_view text, const Chain& chain) const {
  Resolved result;
  BOBBIN_ASSIGN_OR_RETURN(
      result.text,
      internal::ReplacePlaceholders(
          text, [&](std::string_view key) -> absl::StatusOr<std::optional<std::string>> {
            if (const auto at = environment.find(key); at != environment.end()) {
              result.is_secret |= IsSecret(key);
              return std::optional(at->second.text);
            }
            BOBBIN_ASSIGN_OR_RETURN(std::optional<Resolved> value, Resolve(key, chain));
            if (!value) return std::optional<std::string>();
            result.is_secret |= value->is_secret;
            return std::optional(std::move(value->text));
          }));
  return result;
}

// Reads the files and looks at everything once.
class Configuration::Loader {
 public:
  explicit Loader(ConfigurationOptions options) : options_(std::move(options)) {}

  absl::StatusOr<Configuration> Load() {
    for (const auto& [key, value] : options_.values) {
      state_->program.values[key] = {value, "the program"};
    }
    for (auto& [name, value] :
         options_.environment ? *options_.environment : ProcessEnvironment()) {
      state_->environment[name] = {value, "environment " + name};
    }
    state_->file.kind = state_->profile_file.kind = State::Source::Kind::kFile;

    // The profile may stand in the file that is for all of them.
    BOBBIN_RETURN_IF_ERROR(ReadFile("application.properties", state_->file));
    const Configuration so_far(state_);
    const absl::StatusOr<std::optional<std::string>> profile = so_far.Find(kProfile);
    if (!profile.ok()) {
      mistakes_.emplace_back(MessageOf(profile.status()));
    } else if (*profile && !internal::Trimmed(**profile).empty()) {
      state_->profile = internal::Trimmed(**profile);
      if (IsProfileName(state_->profile)) {
        BOBBIN_RETURN_IF_ERROR(ReadFile(fmt::format("application-{}.properties", state_->profile),
                                        state_->profile_file));
      } else {
        const absl::Status refused =
            so_far.Refuse(kProfile.name(), "a profile is made of letters, digits, - and _");
        mistakes_.emplace_back(MessageOf(refused));
      }
    }
    const auto again = state_->profile_file.values.find(kProfile.name());
    if (again != state_->profile_file.values.end()) {
      mistakes_.push_back(again->second.origin +
                          ": bobbin.profile is set in the file of a profile");
    }

    CheckKeys();
    if (!mistakes_.empty()) return Mistakes();
    return so_far;
  }

 private:
  absl::Status ReadFile(const std::string& name, State::Source& source) {
    if (options_.folder.empty()) return absl::OkStatus();
    const std::string path = options_.folder + "/" + name;
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      const int error = errno;
      if (error == ENOENT || error == ENOTDIR) return absl::OkStatus();
      return ErrnoStatus(error, "read " + path);
    }
    std::string text(internal::kPropertiesBytesMax + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) return ErrnoStatus(EIO, "read " + path);
    text.resize(static_cast<size_t>(file.gcount()));
    if (text.size() > internal::kPropertiesBytesMax) {
      return Wrong(
          fmt::format("read {}: it has more than {} bytes", path, internal::kPropertiesBytesMax));
    }

    internal::Properties properties = internal::ParseProperties(text, name);
    for (internal::Property& property : properties.properties) {
      source.values[std::move(property.key)] = {std::move(property.value),
                                                fmt::format("{}:{}", name, property.line)};
    }
    std::move(properties.mistakes.begin(), properties.mistakes.end(),
              std::back_inserter(mistakes_));
    return absl::OkStatus();
  }

  void CheckKeys() {
    const Configuration loaded(state_);
    std::set<std::string, std::less<>> keys = state_->KeysSet();
    for (const ConfigurationKeyBase* known : ConfigurationKeyBase::All()) {
      if (!known->is_pattern()) keys.emplace(known->name());
    }
    for (const std::string& key : keys) {
      const ConfigurationKeyBase* const known = KnownKey(key);
      if (known == nullptr) {
        if (key.starts_with(kOurs)) Unknown(key);
        continue;
      }
      const absl::StatusOr<std::optional<std::string>> text = loaded.TextOf(*known, key);
      if (!text.ok()) {
        mistakes_.emplace_back(MessageOf(text.status()));
      } else if (*text && !known->Takes(**text)) {
        const absl::Status refused = loaded.Refuse(key, NotAllowed(*known));
        mistakes_.emplace_back(MessageOf(refused));
      }
    }
  }

  void Unknown(const std::string& key) {
    const std::string nearest = NearestKey(key);
    const std::string message =
        fmt::format("configuration {} ({}): nothing in this program knows this key{}", key,
                    state_->Find(key).value->origin,
                    nearest.empty() ? "" : fmt::format("; is it {}?", nearest));
    if (options_.unknown_keys == ConfigurationOptions::UnknownKeys::kRefuse) {
      mistakes_.push_back(message);
    } else if (options_.warn != nullptr) {
      options_.warn(message);
    } else {
      internal::Tell({.text = message, .fields = {{"key", key}}});
    }
  }

  absl::Status Mistakes() const {
    const size_t told = std::min(mistakes_.size(), internal::kMistakesTold);
    std::string message = fmt::format(
        "{}", fmt::join(mistakes_.begin(), mistakes_.begin() + static_cast<ptrdiff_t>(told), "\n"));
    if (told < mistakes_.size()) message += fmt::format("\nand {} more", mistakes_.size() - told);
    return Wrong(message);
  }

  ConfigurationOptions options_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::vector<std::string> mistakes_;
};

Configuration::Configuration() : state_(std::make_shared<State>()) {}

absl::StatusOr<Configuration> Configuration::Load(ConfigurationOptions options) {
  return RunBlocking([&] { return Loader(std::move(options)).Load(); });
}

absl::Status Configuration::Refuse(std::string_view key, std::string_view why) const {
  const State::Found found = state_->Find(key);
  if (found.value == nullptr) return Wrong(fmt::format("configuration {}: {}", key, why));
  const auto resolved = state_->Resolve(key, {});
  const bool is_shown = resolved.ok() && *resolved;
  const std::string shown = is_shown ? state_->Shown(key, **resolved) : std::string(kHidden);
  return Wrong(
      fmt::format("configuration {} = {} ({}): {}", key, Quoted(shown), found.value->origin, why));
}

std::string Configuration::NotAllowed(const internal::ConfigurationKeyBase& key) {
  return "allowed is " + key.Allowed();
}

absl::Status Configuration::Missing(std::string_view name) {
  return MakeStatus(
      absl::StatusCode::kNotFound,
      fmt::format("configuration {}: it is not set; write it into application.properties, or set "
                  "{} in the environment",
                  name, internal::EnvironmentName(name)));
}

absl::StatusOr<std::optional<std::string>> Configuration::TextOf(
    const internal::ConfigurationKeyBase& key, std::string_view name) const {
  BOBBIN_ASSIGN_OR_RETURN(std::optional<std::string> text, Text(name));
  if (text && !key.TakesBlank() && internal::Trimmed(*text).empty()) text.reset();
  return text;
}

std::vector<std::string> Configuration::NamesOfPattern(
    const internal::ConfigurationKeyBase& pattern) const {
  std::vector<std::string> names;
  for (const std::string& key : state_->KeysSet()) {
    if (std::optional<std::string> name = pattern.NameIn(key)) names.push_back(*std::move(name));
  }
  return names;
}

absl::StatusOr<std::optional<std::string>> Configuration::Text(std::string_view key) const {
  BOBBIN_ASSIGN_OR_RETURN(std::optional<State::Resolved> value, state_->Resolve(key, {}));
  if (!value) return std::optional<std::string>();
  return std::optional(std::move(value->text));
}

absl::StatusOr<std::string> Configuration::Resolve(std::string_view text) const {
  BOBBIN_ASSIGN_OR_RETURN(State::Resolved resolved, state_->Replace(text, {}));
  return std::move(resolved.text);
}

const std::string& Configuration::profile() const { return state_->profile; }

std::vector<ConfigurationEntry> Configuration::Entries() const {
  std::set<std::string, std::less<>> keys = state_->KeysSet();
  for (const ConfigurationKeyBase* known : ConfigurationKeyBase::All()) {
    if (!known->is_pattern()) keys.emplace(known->name());
  }
  std::vector<ConfigurationEntry> entries;
  for (const std::string& key : keys) {
    const State::Found found = state_->Find(key);
    if (found.value == nullptr) {
      const ConfigurationKeyBase* const known = KnownKey(key);
      const std::string fallback = known->is_secret() ? "" : known->DefaultText();
      entries.push_back({.key = key, .value = fallback, .origin = "default"});
      continue;
    }
    const auto resolved = state_->Resolve(key, {});
    entries.push_back(
        {.key = key,
         .value = resolved.ok() ? state_->Shown(key, **resolved) : "(cannot be resolved)",
         .origin = found.value->origin});
  }
  return entries;
}

std::string Configuration::ToString() const {
  std::string text;
  for (const ConfigurationEntry& entry : Entries()) {
    text += fmt::format("{} = {}  ({})\n", entry.key, entry.value, entry.origin);
  }
  return text;
}

}  // namespace bobbin
