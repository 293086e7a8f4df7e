// SPDX-License-Identifier: Apache-2.0
//
// CrossOver: has the calling migrating thread go on on another carrier.
//
// It lets another thread end its wait, which then does not leave the carrier before the caller has
// been taken elsewhere.
//
//   Called from   migrating threads of a runtime with several carriers, of which one is idle.
//   Suspends      several times.

#ifndef BOBBIN_TESTS_SUPPORT_CROSS_OVER_H_
#define BOBBIN_TESTS_SUPPORT_CROSS_OVER_H_

namespace bobbin::test {

void CrossOver();

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_CROSS_OVER_H_
