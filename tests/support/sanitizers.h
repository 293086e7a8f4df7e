// SPDX-License-Identifier: Apache-2.0
//
// Sanitizers: whether a test runs under one, or in a simulation, and what it should then expect.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_SUPPORT_SANITIZERS_H_
#define BOBBIN_TESTS_SUPPORT_SANITIZERS_H_

#include <algorithm>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOBBIN_TEST_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define BOBBIN_TEST_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BOBBIN_TEST_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define BOBBIN_TEST_THREAD_SANITIZER 1
#endif

namespace bobbin::test {

#if defined(BOBBIN_TEST_ADDRESS_SANITIZER)
inline constexpr bool kUnderAddressSanitizer = true;
#else
inline constexpr bool kUnderAddressSanitizer = false;
#endif
#if defined(BOBBIN_TEST_THREAD_SANITIZER)
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif
inline constexpr bool kUnderSanitizer = kUnderAddressSanitizer || kUnderThreadSanitizer;

// In a simulation the seeds are the rounds.
#if defined(BOBBIN_SIMULATED)
inline constexpr bool kIsSimulated = true;
#else
inline constexpr bool kIsSimulated = false;
#endif

#if defined(NDEBUG) && !defined(BOBBIN_TEST_ADDRESS_SANITIZER) && \
    !defined(BOBBIN_TEST_THREAD_SANITIZER)
inline constexpr bool kChecksDebug = false;
#else
inline constexpr bool kChecksDebug = true;  // BOBBIN_DCHECK is on.
#endif

// How often a race is repeated: `rounds`, or a part of them where each takes ten times as long.
constexpr int Rounds(int rounds) {
  return kIsSimulated             ? std::max(1, rounds / 200)
         : kUnderThreadSanitizer  ? std::max(1, rounds / 20)
         : kUnderAddressSanitizer ? std::max(1, rounds / 4)
                                  : rounds;
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_SANITIZERS_H_
