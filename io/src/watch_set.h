// SPDX-License-Identifier: Apache-2.0
//
// WatchSet: several descriptors, and a wait for the first of them that is ready.
//
// An epoll of its own, which is itself a descriptor that becomes readable: whoever can wait for one
// can wait for all of them, on a ring, on epoll, and on threads that block.
//
//   Called from   any thread that may wait; one at a time.
//   Suspends      AwaitUntil.
//   Cancellation  AwaitUntil returns CANCELLED or DEADLINE_EXCEEDED.
//   Lifetime      A descriptor that is closed leaves the set by itself.
//   Cost          A descriptor; a system call a change; a wait is that of WaitReadable and a system
//                 call.

#ifndef BOBBIN_IO_SRC_WATCH_SET_H_
#define BOBBIN_IO_SRC_WATCH_SET_H_

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/deadline.h>

#include "io/src/file_descriptor.h"
#include "io/src/result.h"

namespace bobbin::io::internal {

class WatchSet {
 public:
  WatchSet();
  WatchSet(const WatchSet&) = delete;
  WatchSet& operator=(const WatchSet&) = delete;

  // Why there is none, or OK. REQUIRES of all other calls: it is OK.
  const absl::Status& status() const { return status_; }
  // Watches `fd` for `events` (EPOLLIN, EPOLLOUT), and for nothing else if it did before; 0 if that
  // goes.
  Result Watch(int fd, uint32_t events);
  void Forget(int fd);

  // Waits until something is ready, or until `deadline`: then nothing is returned. The result is
  // good until the next call.
  absl::StatusOr<std::span<const epoll_event>> AwaitUntil(Deadline deadline);

 private:
  FileDescriptor epoll_;
  absl::Status status_;
  std::array<epoll_event, 16> ready_;  // Those that do not fit come next time.
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_WATCH_SET_H_
