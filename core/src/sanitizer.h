// SPDX-License-Identifier: Apache-2.0
//
// Sanitizer: tells ASan and TSan about stacks and switches. Empty in other builds.
//
// ASan wants the bounds of the stack that is switched to, and keeps a shadow ("fake") stack per
// context; it is told with a null save that a context ends, so that it may free that. TSan wants a
// handle per context. Its switch has a choice: whether what ran before on this OS thread happens
// before what runs next. It does here: carriers hand threads from one to the next through plain
// fields. Races between two virtual threads are therefore reported when they are on different
// carriers.
//
//   Called from   the dispatcher's switch, which is itself not instrumented.
//   Suspends      never.

#ifndef BOBBIN_CORE_SRC_SANITIZER_H_
#define BOBBIN_CORE_SRC_SANITIZER_H_

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define BOBBIN_NO_SANITIZE_THREAD __attribute__((no_sanitize("thread")))
#else
#define BOBBIN_NO_SANITIZE_THREAD
#endif
// For what runs between the announcement of a switch and the switch: a call of a function that TSan
// instruments would be entered on one context and left on another.
#define BOBBIN_SWITCH_PATH BOBBIN_NO_SANITIZE_THREAD __attribute__((always_inline))
// For what belongs into the caller, except where the two are instrumented differently.
#if defined(__SANITIZE_THREAD__)
#define BOBBIN_INLINE_INTO_CALLER
#else
#define BOBBIN_INLINE_INTO_CALLER __attribute__((always_inline))
#endif

namespace bobbin::internal {

// Whether every switch must be announced.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

namespace sanitizer {

// Announces the switch to the stack [bottom, bottom + bytes). `save` keeps the leaver's fake stack,
// or is null when the leaver will not be continued.
BOBBIN_SWITCH_PATH inline void BeforeSwitch([[maybe_unused]] void** save,
                                            [[maybe_unused]] const char* bottom,
                                            [[maybe_unused]] size_t bytes) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(save, bottom, bytes);
#endif
}

// On the other side; `saved` is what the arriving context kept, null at its first entry.
BOBBIN_SWITCH_PATH inline void AfterSwitch([[maybe_unused]] void* saved) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(saved, nullptr, nullptr);
#endif
}

// A stack goes out of use: a stray pointer into it is reported. And into use again.
inline void StackIdle([[maybe_unused]] const char* bottom, [[maybe_unused]] size_t bytes) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(bottom, bytes);
#endif
}
inline void StackInUse([[maybe_unused]] const char* bottom,
                       [[maybe_unused]] size_t bytes) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bottom, bytes);
#endif
}

// What only these bytes point to is not leaked; and they are given back.
inline void RootBegins([[maybe_unused]] const void* bytes, [[maybe_unused]] size_t count) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __lsan_register_root_region(bytes, count);
#endif
}
inline void RootEnds([[maybe_unused]] const void* bytes, [[maybe_unused]] size_t count) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __lsan_unregister_root_region(bytes, count);
#endif
}

}  // namespace sanitizer

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_SRC_SANITIZER_H_
