// SPDX-License-Identifier: Apache-2.0
//
// Checks: a broken promise ends the process, with a message that names the thread.
//
// BOBBIN_CHECK is always on and guards what a caller could get wrong and every state from which
// going on would corrupt memory. BOBBIN_DCHECK is on in debug, sanitizer and simulated builds
// only: it stands where a check costs more than a compare, or sits on the switch path. Neither is
// for operating errors (a full queue, a reset peer): those are absl::Status values.
//
//   Called from   any thread, also on a signal's stack.
//   Suspends      never.
//   Cost          one predictable branch while the condition holds.
//
// Example:
//   BOBBIN_CHECK(permits > 0, "Semaphore::Acquire wants at least one permit");

#ifndef BOBBIN_CORE_CHECK_H_
#define BOBBIN_CORE_CHECK_H_

#include <string_view>

namespace bobbin::internal {

// Prints where, what and on which thread, then a dump of the virtual threads where a runtime has
// registered one, then aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message) noexcept;

// What a failed check calls before it aborts; set by the runtime, which knows every virtual thread.
using DumpHook = void (*)() noexcept;
void SetDumpHook(DumpHook hook) noexcept;

}  // namespace bobbin::internal

#define BOBBIN_CHECK(condition, message)                                                  \
  (__builtin_expect(static_cast<bool>(condition), 1)                                      \
       ? static_cast<void>(0)                                                             \
       : ::bobbin::internal::CheckFailed(__FILE__, __LINE__, #condition, (message)))

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(BOBBIN_SIMULATED)
#define BOBBIN_DCHECK(condition, message) \
  static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define BOBBIN_DCHECK(condition, message) BOBBIN_CHECK(condition, message)
#endif

#endif  // BOBBIN_CORE_CHECK_H_
