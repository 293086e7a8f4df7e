// SPDX-License-Identifier: Apache-2.0

#include "io/src/unused_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "gtest/gtest.h"

#include "tests/io/io_test.h"
#include "tests/support/sanitizers.h"

namespace bobbin::test {
namespace {

constexpr size_t kDeepBytes = 64 << 10;

// Sets `deep` to where in the stack it has been.
[[gnu::noinline]] void GoDeep(uintptr_t& deep) {
  std::array<volatile std::byte, kDeepBytes> touched;
  for (volatile std::byte& each : touched) each = std::byte{1};
  deep = reinterpret_cast<uintptr_t>(&touched[kDeepBytes / 2]);
}

bool IsResident(uintptr_t address) {
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  unsigned char state = 0;
  EXPECT_EQ(
      ::mincore(reinterpret_cast<void*>(address / page_bytes * page_bytes), page_bytes, &state), 0);
  return (state & 1) != 0;
}

BOBBIN_IO_TEST(UnusedStackTest, WhatIsBelowTheCallerGoesAndWhatIsAboveStays) {
  if constexpr (kUnderSanitizer) GTEST_SKIP() << "locals may lie elsewhere";
  std::array<int, 2000> kept;
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int>(i);
  for (int round = 0; round < 3; ++round) {
    uintptr_t deep = 0;
    GoDeep(deep);
    EXPECT_TRUE(IsResident(deep));
    io::internal::ReleaseUnusedStack();
    EXPECT_FALSE(IsResident(deep));
    for (size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(kept[i], static_cast<int>(i));
  }
}

BOBBIN_IO_FOREIGN_TEST(UnusedStackTest, ElsewhereNothingHappens) {
  uintptr_t deep = 0;
  GoDeep(deep);
  io::internal::ReleaseUnusedStack();
  EXPECT_TRUE(IsResident(deep));
}

}  // namespace
}  // namespace bobbin::test
