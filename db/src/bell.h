// SPDX-License-Identifier: Apache-2.0
//
// Bell: says to one who waits that there may be something to do. Bells: all those who wait for the
// same.
//
// A bell that has been rung, once or often, ends the next wait, or the one that goes on.
//
//   Called from   Ring: any thread. Await: virtual, platform and foreign threads; one at a time.
//   Suspends      Await, until it is rung; Bells, while another thread is in it.
//   Cancellation  Await returns CANCELLED or DEADLINE_EXCEEDED, the second also for its own
//                 deadline.
//   Memory        What was done before a Ring is seen after the Await that it ends.
//   Lifetime      Bells must outlive the bells in it.
//   Cost          Ring: an exchange, and a release of a semaphore if nobody has rung before.
//
// Why no ring is lost: whoever rings, and finds that it has been rung, knows that the one who waits
// has yet to take that back; he looks for work only after he has.

#ifndef BOBBIN_DB_SRC_BELL_H_
#define BOBBIN_DB_SRC_BELL_H_

#include <algorithm>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>

namespace bobbin::db::internal {

class Bell {
 public:
  Bell() = default;
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void Ring() {
    if (!is_rung_.exchange(true)) rings_.Release();
  }

  absl::Status Await(Deadline deadline) {
    const DeadlineScope scope(deadline);
    absl::Status status = rings_.Acquire();
    if (status.ok()) is_rung_.exchange(false);
    return status;
  }

 private:
  // Written by both sides. True: the semaphore has a permit, or has just given it.
  bobbin::internal::Atomic<bool> is_rung_{false};
  Semaphore rings_{0};
};

class Bells {
 public:
  void Add(Bell& bell) {
    const MutexLock lock(mutex_);
    bells_.push_back(&bell);
  }
  void Remove(Bell& bell) {
    const MutexLock lock(mutex_);
    bells_.erase(std::remove(bells_.begin(), bells_.end(), &bell), bells_.end());
  }
  void RingAll() {
    const MutexLock lock(mutex_);
    for (Bell* const bell : bells_) bell->Ring();
  }

 private:
  Mutex mutex_;
  std::vector<Bell*> bells_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_BELL_H_
