// SPDX-License-Identifier: Apache-2.0
//
// UringPoller: gives each carrier of a runtime an io_uring to sleep in and to do its I/O with.
//
// Needs Linux 6.1. What later kernels have is used where it is there. Each carrier's ring is
// created on its own OS thread; ProbeUring tells beforehand whether that will work, and if not,
// why.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        A runtime whose ring cannot be created does not start; the status is
//                 ProbeUring's: UNIMPLEMENTED (the kernel is too old or has no io_uring),
//                 PERMISSION_DENIED (refused by a seccomp filter or by the sysctl
//                 kernel.io_uring_disabled), RESOURCE_EXHAUSTED (descriptors, or locked memory).
//   Cost          a ring takes some 200 KiB of kernel memory and some 100 us to set up.
//
// Example:
//   int main() { return bobbin::Run(Serve, {.poller = bobbin::io::UringPoller()}); }

#ifndef BOBBIN_IO_IO_H_
#define BOBBIN_IO_IO_H_

#include <cstdint>

#include "absl/status/status.h"

#include <bobbin/sched/poller.h>

namespace bobbin::io {

struct UringOptions {
  // Operations that one turn of a carrier can prepare before it must submit early. A power of two,
  // or it is rounded up to one.
  uint32_t submission_entries = 512;
  // Completions that can wait to be taken; more are kept by the kernel, at a price.
  uint32_t completion_entries = 8192;
  // Wakes sleeping carriers as on kernels before 6.13. For tests and comparisons.
  bool forces_eventfd_wake = false;
};

// A poller for each carrier. Pass it as RuntimeOptions::poller.
PollerFactory UringPoller(UringOptions options = {});

// Sets up a ring, uses it and closes it again. OK, or why this process cannot have one.
absl::Status ProbeUring(const UringOptions& options = {});

}  // namespace bobbin::io

#endif  // BOBBIN_IO_IO_H_
