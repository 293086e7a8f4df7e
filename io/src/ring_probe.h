// SPDX-License-Identifier: Apache-2.0
//
// RingProbe: whether this process can have rings that do what bobbin wants of them.
//
// It asks by doing, not by the kernel's version: kernels are patched, and filters refuse one call
// and let another pass.
//
//   Called from   any OS thread.
//   Suspends      never; a kernel that answers wrongly blocks it for some seconds.
//   Cost          some 200 us.

#ifndef BOBBIN_IO_SRC_RING_PROBE_H_
#define BOBBIN_IO_SRC_RING_PROBE_H_

#include "absl/status/status.h"

#include "io/src/ring.h"

namespace bobbin::io::internal {

// Opens a ring of that size, receives, cancels and accepts with it, and closes it. OK, or what does
// not work, and what to do about it.
absl::Status ProbeRing(Ring::Entries entries);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_RING_PROBE_H_
