// SPDX-License-Identifier: Apache-2.0
//
// Kind: what a body runs on. The two things that this program compares.

#ifndef BOBBIN_BENCH_COMPARE_KIND_H_
#define BOBBIN_BENCH_COMPARE_KIND_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bobbin::compare {

enum class Kind : uint8_t {
  kVirtual,   // Virtual threads, on as many carriers as there are CPUs.
  kPlatform,  // One OS thread each.
};

inline constexpr std::array kKinds = {Kind::kVirtual, Kind::kPlatform};

// "virtual" or "platform".
constexpr std::string_view KindName(Kind kind) {
  return kind == Kind::kVirtual ? "virtual" : "platform";
}

constexpr std::optional<Kind> KindNamed(std::string_view name) {
  for (const Kind kind : kKinds) {
    if (KindName(kind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_KIND_H_
