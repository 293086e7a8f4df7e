// SPDX-License-Identifier: Apache-2.0
//
// AutoPoller: gives each carrier of a runtime an io_uring to sleep in and to do its I/O with, or an
// epoll where io_uring cannot be had. UringPoller, EpollPoller: the one or the other, whatever
// happens.
//
// Programs behave the same with both; with a ring they are faster. A container's default seccomp
// profile refuses io_uring, as do some distributions' settings, so AutoPoller tries it out before
// the first carrier starts: it sets a ring up and receives, accepts and cancels with it. If that
// does not work, all carriers of the runtime use epoll; the reason is a line of the log (log.h)
// once a process, and Runtime::poller_reason has it.
//
// The environment variable BOBBIN_IO has a say where AutoPoller decides: `auto`, `uring` (the
// runtime does not start without) or `epoll`. Anything else is an error of the runtime's start.
//
// A ring needs Linux 6.1. What later kernels have is used where it is there; epoll wants 5.11, and
// before that sleeps for whole milliseconds.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        A runtime whose poller cannot start does not start. With a ring the status is
//                 ProbeUring's: UNIMPLEMENTED (the kernel is too old or has no io_uring),
//                 PERMISSION_DENIED (refused by a seccomp filter or by the sysctl
//                 kernel.io_uring_disabled), RESOURCE_EXHAUSTED (descriptors, or locked memory).
//                 INVALID_ARGUMENT: BOBBIN_IO says something else than above.
//   Cost          A ring takes some 200 KiB of kernel memory and some 100 us to set up; trying one
//                 out takes about as long again. An epoll takes two descriptors a carrier.
//
// Example:
//   int main() { return bobbin::Run(Serve, {.poller = bobbin::io::AutoPoller()}); }

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

// A poller for each carrier: pass one of these as RuntimeOptions::poller. The options are of rings.
PollerFactory AutoPoller(UringOptions options = {});
PollerFactory UringPoller(UringOptions options = {});
PollerFactory EpollPoller();

// Sets up a ring, uses it and closes it again. OK, or why this process cannot have one.
absl::Status ProbeUring(const UringOptions& options = {});

}  // namespace bobbin::io

#endif  // BOBBIN_IO_IO_H_
