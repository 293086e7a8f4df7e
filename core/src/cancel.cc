// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/cancel.h>

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin {

CancelShield::CancelShield() : outer_(internal::Current().governing()) {
  internal::Thread& thread = internal::Current();
  thread.EnterShield();
  thread.set_governing(nullptr);
}

CancelShield::~CancelShield() {
  internal::Thread& thread = internal::Current();
  thread.set_governing(outer_);
  thread.LeaveShield();
}

absl::Status CheckStop() {
  internal::Thread& thread = internal::Current();
  // A loop that never waits never armed its timer: look at the clock.
  internal::TimerNode* const governing = thread.governing();
  if (governing != nullptr && governing->deadline <= MonotonicNow().time_since_epoch().count()) {
    governing->has_expired = true;
  }
  return thread.StopStatus();
}

}  // namespace bobbin
