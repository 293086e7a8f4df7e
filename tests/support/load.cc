// SPDX-License-Identifier: Apache-2.0

#include "tests/support/load.h"

#include <cstdlib>
#include <optional>

namespace bobbin::test {

namespace {

constexpr int64_t kMegabyte = 1'000'000;
// Even a slow machine under a sanitizer moves so much.
constexpr int64_t kMegabytesPerSecond = 2;

std::optional<int64_t> Asked(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::atoll(text);
}

std::optional<int64_t> AskedSeconds() { return Asked("BOBBIN_SOAK_SECONDS"); }
std::optional<int64_t> AskedMegabytes() { return Asked("BOBBIN_BULK_MEGABYTES"); }

}  // namespace

std::chrono::seconds SoakTime(std::chrono::seconds otherwise) {
  return std::chrono::seconds(AskedSeconds().value_or(otherwise.count()));
}

int64_t BulkBytes(int64_t otherwise) {
  const std::optional<int64_t> megabytes = AskedMegabytes();
  return megabytes ? *megabytes * kMegabyte : otherwise;
}

std::chrono::seconds TimeForLoad() {
  return std::chrono::seconds(AskedSeconds().value_or(0) +
                              AskedMegabytes().value_or(0) / kMegabytesPerSecond);
}

}  // namespace bobbin::test
