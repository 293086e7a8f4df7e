// SPDX-License-Identifier: Apache-2.0
//
// FaultyKernel: while one lives, the system calls of io do now and then what they seldom do.
//
// The program that links faulty_kernel.cc has these calls in the place of the C library's and of
// liburing's. They do nothing that a kernel may not do: a transfer may be short (but a short read
// of TCP means that there is no more, which an epoll relies on, so that one is left alone), a call
// may be interrupted, an event may come once more, or when nobody waits for it any longer.
//
//   Called from   any thread; one at a time.

#ifndef BOBBIN_TESTS_IO_FAULTY_KERNEL_H_
#define BOBBIN_TESTS_IO_FAULTY_KERNEL_H_

#include <cstdint>

namespace bobbin::test {

struct Faults {
  // How often a call that can go wrong does.
  uint32_t one_in = 4;
  // Reads and writes of streams and pipes move less than they could, a batch has fewer datagrams.
  bool has_short_transfers = false;
  // EINTR from everything.
  bool has_interruptions = false;
  // Epoll: events that were told before are told again, also of descriptors that were closed.
  bool has_stale_events = false;
  // Epoll: an accept fails, for one connection or for want of descriptors or memory.
  bool has_failing_accepts = false;
  // Rings: an enter does nothing, for want of memory or because completions are to be taken first.
  bool has_shortages = false;
  // Rings: an enter submits a part, and the rest comes with a later one; so do cancels.
  bool has_late_submissions = false;
  // Rings: a receive finds no buffer to choose.
  bool has_missing_buffers = false;
  // Rings: sends without a copy, and receives of datagrams that go on, are unknown.
  bool has_unknown_requests = false;
};

class FaultyKernel {
 public:
  explicit FaultyKernel(const Faults& faults, uint64_t seed);
  FaultyKernel(const FaultyKernel&) = delete;
  FaultyKernel& operator=(const FaultyKernel&) = delete;
  ~FaultyKernel();

  // How many calls have gone wrong.
  uint64_t count() const;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_FAULTY_KERNEL_H_
