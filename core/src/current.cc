// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os_thread.h>

// The project's only thread-local. Its name is not mangled, so that the assembler statement in
// current.h can say it; its model keeps it at a fixed distance from the thread pointer. Optimising
// the whole program at once, a compiler does not see who says it: it must be told to keep it.
#if defined(__clang__)
#define BOBBIN_CURRENT_THREAD [[gnu::tls_model("initial-exec"), gnu::used]]
#else
#define BOBBIN_CURRENT_THREAD [[gnu::tls_model("initial-exec"), gnu::used, gnu::externally_visible]]
#endif
extern "C" {
BOBBIN_CURRENT_THREAD constinit thread_local bobbin::internal::Thread* bobbin_current_thread =
    nullptr;
}

namespace bobbin::internal {

#if !(defined(__x86_64__) && defined(__linux__))
[[gnu::noinline]] Thread* CurrentOrNull() noexcept { return bobbin_current_thread; }
[[gnu::noinline]] void SetCurrent(Thread* thread) noexcept { bobbin_current_thread = thread; }
#endif

[[gnu::noinline]] Thread& MakeCurrent() noexcept {
  OsThread& record = OsThread::Adopt();
  bobbin_current_thread = &record;
  return record;
}

}  // namespace bobbin::internal
