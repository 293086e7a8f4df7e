// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/deadline.h>

#include <algorithm>

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin {

Deadline Deadline::After(std::chrono::nanoseconds delay) {
  const int64_t now = MonotonicNow().time_since_epoch().count();
  if (delay.count() <= 0) return Deadline(now);
  if (delay.count() >= kNever - now) return Never();
  return Deadline(now + delay.count());
}

DeadlineScope::DeadlineScope(Deadline deadline)
    : node_(internal::Current(), deadline.nanoseconds()), outer_(node_.thread->governing()) {
  // The governing deadline is the earliest; a later one inside it changes nothing.
  if (!deadline.is_never() && (outer_ == nullptr || node_.deadline < outer_->deadline)) {
    node_.thread->set_governing(&node_);
  }
}

DeadlineScope::~DeadlineScope() {
  if (node_.place != internal::TimerNode::Place::kUnarmed) {
    node_.thread->dispatcher()->DisarmTimer(node_);
  }
  node_.thread->set_governing(outer_);
}

Deadline DeadlineScope::effective() const {
  const int64_t earliest =
      outer_ == nullptr ? node_.deadline : std::min(node_.deadline, outer_->deadline);
  return Deadline::At(MonotonicTime(std::chrono::nanoseconds(earliest)));
}

}  // namespace bobbin
