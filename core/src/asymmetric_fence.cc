// SPDX-License-Identifier: Apache-2.0

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/asymmetric_fence.h>

namespace bobbin::internal {

bool HasHeavyFence() noexcept {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  static const bool is_registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return is_registered;
#endif
}

void HeavyFence() noexcept {
  const long result = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  BOBBIN_CHECK(result == 0, "a fence that the system has promised");
}

}  // namespace bobbin::internal
