// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/sched/configuration_key.h>
#include <bobbin/sched/internal/texts.h>

namespace bobbin {

namespace internal {

namespace {

// The key that was published last. Written by Publish, read by All; what a key says is written
// before it.
constinit Atomic<const ConfigurationKeyBase*> newest_key{nullptr};

}  // namespace

void ConfigurationKeyBase::Publish() {
  const ConfigurationKeyBase* newest = newest_key.load();
  do {
    next_ = newest;
  } while (!newest_key.compare_exchange_strong(newest, this));
}

std::string ConfigurationKeyBase::DefaultText() const {
  return default_text_.empty() ? Fallback() : std::string(default_text_);
}

std::optional<std::string> ConfigurationKeyBase::NameIn(std::string_view key) const {
  const size_t at = name_.find(kName);
  if (at == name_.npos) return std::nullopt;
  const std::string_view before = name_.substr(0, at);
  const std::string_view after = name_.substr(at + kName.size());
  if (key.size() <= before.size() + after.size() || !key.starts_with(before) ||
      !key.ends_with(after)) {
    return std::nullopt;
  }
  return std::string(key.substr(at, key.size() - before.size() - after.size()));
}

std::string ConfigurationKeyBase::For(std::string_view name) const {
  std::string key(name_);
  const size_t at = key.find(kName);
  if (at != key.npos) key.replace(at, kName.size(), name.data(), name.size());
  return key;
}

std::vector<const ConfigurationKeyBase*> ConfigurationKeyBase::All() {
  std::vector<const ConfigurationKeyBase*> keys;
  for (const auto* key = newest_key.load(); key != nullptr; key = key->next_) keys.push_back(key);
  const auto before = [](const auto* a, const auto* b) { return a->name_ < b->name_; };
  std::sort(keys.begin(), keys.end(), before);
  return keys;
}

std::optional<std::string> ParseValue(const TextOptions&, std::string_view text) {
  return std::string(text);
}

std::optional<int64_t> ParseValue(const IntegerOptions& options, std::string_view text) {
  text = Trimmed(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < options.min || value > options.max) return std::nullopt;
  return value;
}

std::optional<double> ParseValue(const NumberOptions& options, std::string_view text) {
  text = Trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  // Not what is not a number, either.
  if (!(value >= options.min && value <= options.max)) return std::nullopt;
  return value;
}

std::optional<bool> ParseValue(const BoolOptions&, std::string_view text) {
  if (IsSameWord("true", text)) return true;
  if (IsSameWord("false", text)) return false;
  return std::nullopt;
}

std::optional<absl::Duration> ParseValue(const DurationOptions& options, std::string_view text) {
  const absl::StatusOr<absl::Duration> value = ParsePeriod(Trimmed(text));
  if (!value.ok() || *value < options.min || *value > options.max) return std::nullopt;
  return *value;
}

std::string AllowedValues(const TextOptions&) { return "text"; }

std::string AllowedValues(const IntegerOptions& options) {
  if (options.max == std::numeric_limits<int64_t>::max()) {
    return fmt::format("a whole number, {} or more", options.min);
  }
  return fmt::format("a whole number from {} to {}", options.min, options.max);
}

std::string AllowedValues(const NumberOptions& options) {
  if (options.max == std::numeric_limits<double>::max()) {
    return fmt::format("a number, {} or more", options.min);
  }
  return fmt::format("a number from {} to {}", options.min, options.max);
}

std::string AllowedValues(const BoolOptions&) { return "true or false"; }

std::string AllowedValues(const DurationOptions& options) {
  std::string allowed = "a length of time (10s, PT1M, 500)";
  const bool has_min = options.min > absl::ZeroDuration();
  const bool has_max = options.max < DurationOptions().max;
  if (has_min) allowed += " from " + absl::FormatDuration(options.min);
  if (has_max) allowed += " to " + absl::FormatDuration(options.max);
  if (has_min && !has_max) allowed += " on";
  return allowed;
}

std::string PrintValue(const TextOptions&, std::string_view value) { return std::string(value); }
std::string PrintValue(const IntegerOptions&, int64_t value) { return std::to_string(value); }
std::string PrintValue(const NumberOptions&, double value) { return fmt::format("{}", value); }
std::string PrintValue(const BoolOptions&, bool value) { return value ? "true" : "false"; }
std::string PrintValue(const DurationOptions&, absl::Duration value) {
  return absl::FormatDuration(value);
}

bool IsSameWord(std::string_view word, std::string_view text) {
  return LowerCase(word) == LowerCase(Trimmed(text));
}

std::string JoinWords(const std::vector<std::string_view>& words) {
  std::string joined;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) joined += i + 1 == words.size() ? " or " : ", ";
    joined += words[i];
  }
  return joined;
}

}  // namespace internal

std::vector<ConfigurationKeyInfo> KnownConfigurationKeys(std::string_view prefix) {
  std::vector<ConfigurationKeyInfo> infos;
  for (const internal::ConfigurationKeyBase* key : internal::ConfigurationKeyBase::All()) {
    if (!key->name().starts_with(prefix)) continue;
    infos.push_back({.name = std::string(key->name()),
                     .allowed = key->Allowed(),
                     .fallback = key->DefaultText(),
                     .meaning = std::string(key->meaning())});
  }
  return infos;
}

std::string ConfigurationTable(std::string_view prefix) {
  std::string table = "| key | takes | default | |\n|---|---|---|---|\n";
  for (const ConfigurationKeyInfo& key : KnownConfigurationKeys(prefix)) {
    table += fmt::format("| `{}` | {} | {} | {} |\n", key.name, key.allowed,
                         key.fallback.empty() ? "none" : key.fallback, key.meaning);
  }
  return table;
}

}  // namespace bobbin
