// SPDX-License-Identifier: Apache-2.0
//
// How much the tests that put something under load do: seconds of work and little data, unless a
// longer run is asked for. The Watchdog gives a test so much more time.
//
//   BOBBIN_SOAK_SECONDS     how long they work
//   BOBBIN_BULK_MEGABYTES   how much data they move
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_SUPPORT_LOAD_H_
#define BOBBIN_TESTS_SUPPORT_LOAD_H_

#include <chrono>
#include <cstdint>

namespace bobbin::test {

// What was asked for, or `otherwise`.
std::chrono::seconds SoakTime(std::chrono::seconds otherwise);
int64_t BulkBytes(int64_t otherwise);

// How much longer than others a test may take that does what was asked for.
std::chrono::seconds TimeForLoad();

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_LOAD_H_
