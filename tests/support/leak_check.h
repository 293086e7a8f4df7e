// SPDX-License-Identifier: Apache-2.0
//
// Leak check: what the kernel says the process has - descriptors, mappings, memory, OS threads.
//
//   Called from   any thread; they read files in /proc and block for that long.

#ifndef BOBBIN_TESTS_SUPPORT_LEAK_CHECK_H_
#define BOBBIN_TESTS_SUPPORT_LEAK_CHECK_H_

#include <cstddef>

namespace bobbin::test {

// Open file descriptors.
size_t OpenDescriptors();
// Lines of /proc/self/maps.
size_t Mappings();
// Memory that is really there.
size_t ResidentBytes();
// OS threads.
size_t OsThreadCount();

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_LEAK_CHECK_H_
