// SPDX-License-Identifier: Apache-2.0

#include "io/src/unused_stack.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::io::internal {

namespace {

// What the call itself may need below its frame.
constexpr uintptr_t kMarginBytes = 512;

}  // namespace

[[gnu::noinline]] void ReleaseUnusedStack() noexcept {
  using bobbin::internal::Task;
  using bobbin::internal::Thread;
  Thread& self = bobbin::internal::Current();
  if (self.role() != Role::kVirtual) return;
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Above its guard page.
  const uintptr_t begin =
      reinterpret_cast<uintptr_t>(static_cast<Task&>(self).stack().base) + page_bytes;
  const uintptr_t used = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - kMarginBytes;
  const uintptr_t end = used / page_bytes * page_bytes;
  // Not madvise(2) itself: a sanitizer's has frames of its own.
  if (end > begin) ::syscall(SYS_madvise, begin, end - begin, MADV_DONTNEED);
}

}  // namespace bobbin::io::internal
