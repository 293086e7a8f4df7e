// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/futex.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <limits>
#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

bool FutexWait(Atomic<uint32_t>& word, uint32_t value, int64_t deadline) noexcept {
  constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
  const timespec until{deadline / kNanosecondsPerSecond, deadline % kNanosecondsPerSecond};
  const bool is_bounded = deadline != std::numeric_limits<int64_t>::max();
  const long result =
      syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value,
              is_bounded ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

void FutexWakeOne(Atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

}  // namespace bobbin::internal
