// SPDX-License-Identifier: Apache-2.0

#include "io/src/host_name.h"

#include <algorithm>

#include <fmt/format.h>

#include <bobbin/core/status.h>

#include "io/src/printable.h"

namespace bobbin::io::internal {

namespace {

constexpr size_t kNameBytesMax = 253;
constexpr size_t kLabelBytesMax = 63;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsLetter(char c) { return ToLower(c) >= 'a' && ToLower(c) <= 'z'; }

std::string_view WithoutLastDot(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

std::string_view LastLabel(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0.
}

// No name of a host ends in a number, decimal or hexadecimal: what does was meant as an address.
bool IsNumber(std::string_view label) {
  if (label.starts_with("0x") || label.starts_with("0X")) {
    return std::all_of(label.begin() + 2, label.end(), [](char c) {
      return IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'f');
    });
  }
  return !label.empty() && std::all_of(label.begin(), label.end(), IsDigit);
}

// What is wrong with it; empty if nothing is.
std::string_view Mistake(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.find(':') != name.npos) {
    return "it looks like an IPv6 address, but is none";
  }
  if (IsNumber(LastLabel(WithoutLastDot(name)))) {
    return "it looks like an IPv4 address, but is none: that has four numbers from 0 to 255";
  }
  if (WithoutLastDot(name).size() > kNameBytesMax) return "it is longer than 253 bytes";
  for (std::string_view rest = WithoutLastDot(name);;) {
    const size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (label.empty()) return "there is nothing between two dots, or before the first one";
    if (label.size() > kLabelBytesMax) return "there are more than 63 bytes between two dots";
    if (!std::all_of(label.begin(), label.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '_'; })) {
      return "a name has letters, digits, hyphens and dots; write others as xn--...";
    }
    if (dot == rest.npos) return {};
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace

absl::Status CheckHostName(std::string_view name) {
  const std::string_view mistake = Mistake(name);
  if (mistake.empty()) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format("resolve {}: {}", Printable(name), mistake));
}

std::string CanonicalName(std::string_view name) {
  std::string canonical(WithoutLastDot(name));
  for (char& c : canonical) c = ToLower(c);
  return canonical;
}

bool IsLocalhost(std::string_view name) {
  return name == "localhost" || name.ends_with(".localhost");
}

std::vector<std::string> SearchedNames(std::string_view name, std::span<const std::string> search,
                                       int dots_min) {
  const std::string canonical = CanonicalName(name);
  if (name.ends_with('.')) return {canonical};
  std::vector<std::string> names;
  for (const std::string& suffix : search) {
    std::string longer = suffix.empty() ? canonical : canonical + "." + suffix;
    if (longer.size() <= kNameBytesMax) names.push_back(std::move(longer));
  }
  const bool is_first = std::count(name.begin(), name.end(), '.') >= dots_min;
  names.insert(is_first ? names.begin() : names.end(), canonical);
  return names;
}

}  // namespace bobbin::io::internal
