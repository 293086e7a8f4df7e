// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/text.h"

#include <cmath>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace bobbin::compare {

std::string Grouped(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string Threads(uint64_t count, std::string_view kind) {
  return fmt::format("{} {}{}thread{}", Grouped(count), kind, kind.empty() ? "" : " ",
                     count == 1 ? "" : "s");
}

std::string Rounded(double number) {
  // What rounds up to the next power of ten takes that one's decimals: 9.996 is 10.0.
  if (number >= 99.95) return Grouped(static_cast<uint64_t>(std::llround(number)));
  if (number >= 9.995) return fmt::format("{:.1f}", number);
  if (number >= 0.9995) return fmt::format("{:.2f}", number);
  if (number >= 0.09995) return fmt::format("{:.3f}", number);
  return number == 0 ? "0" : fmt::format("{:.4f}", number);
}

std::string Duration(double microseconds) {
  if (microseconds >= 999'500) return Rounded(microseconds / 1'000'000) + " s";
  if (microseconds >= 999.5) return Rounded(microseconds / 1000) + " ms";
  if (microseconds >= 0.9995) return Rounded(microseconds) + " us";
  return Rounded(microseconds * 1000) + " ns";
}

std::string Size(double bytes) {
  constexpr double kStep = 1024;
  if (bytes < kStep) return fmt::format("{:.0f} B", bytes);
  if (bytes < kStep * kStep) return Rounded(bytes / kStep) + " KiB";
  if (bytes < kStep * kStep * kStep) return Rounded(bytes / kStep / kStep) + " MiB";
  return Rounded(bytes / kStep / kStep / kStep) + " GiB";
}

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    if (comma == text.npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string Listed(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace bobbin::compare
