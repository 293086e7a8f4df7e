// SPDX-License-Identifier: Apache-2.0
//
// Seed: where all the randomness of a test process comes from.
//
// A failing run is repeated by BOBBIN_TEST_SEED=<what it printed>.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_SUPPORT_SEED_H_
#define BOBBIN_TESTS_SUPPORT_SEED_H_

#include <cstdint>

namespace bobbin::test {

// The number in the environment variable, or a fresh one; the first call prints it.
uint64_t Seed();

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_SEED_H_
