// SPDX-License-Identifier: Apache-2.0

#include "tests/support/seed.h"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace bobbin::test {

uint64_t Seed() {
  static const uint64_t seed = [] {
    const char* const given = std::getenv("BOBBIN_TEST_SEED");
    const uint64_t made =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
    std::fprintf(stderr, "BOBBIN_TEST_SEED=%llu\n", static_cast<unsigned long long>(made));
    return made;
  }();
  return seed;
}

}  // namespace bobbin::test
