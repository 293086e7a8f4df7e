// SPDX-License-Identifier: Apache-2.0
//
// PoolTask: one task as a pool of platform threads sees it.
//
// Lives with its submitter (RunBlocking), or by itself (Submit, Async).
//
//   Called from   as each member says.
//   Suspends      Run: as the body does. Nothing else.

#ifndef BOBBIN_SCHED_INTERNAL_POOL_TASK_H_
#define BOBBIN_SCHED_INTERNAL_POOL_TASK_H_

#include <cstdint>

#include "absl/status/status.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/intrusive_list.h>

namespace bobbin::internal {

class PlatformPoolCore;
class Thread;

class PoolTask : public IntrusiveLink {
 public:
  // Runs the body: on a platform thread, or on the submitter's.
  virtual void Run() noexcept = 0;
  // After Run, when the pool has counted it. The task is not touched after this.
  virtual void Finish() noexcept = 0;
  // Instead of Run and Finish: it was dropped.
  virtual void Discard(absl::Status reason) noexcept = 0;
  // Who waits for it, or null. Stays good until Finish or Discard.
  virtual const Thread* caller() const noexcept { return nullptr; }

 protected:
  ~PoolTask() = default;
  // When the pool was given it.
  MonotonicTime offered_at() const noexcept { return offered_at_; }

 private:
  friend class PlatformPoolCore;
  MonotonicTime offered_at_;
  uint64_t number_ = 0;  // Unique in its pool, unlike its address.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_POOL_TASK_H_
