// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/event.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

namespace bobbin {

using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

Event::~Event() {
  BOBBIN_CHECK((word_.Load() & (kLocked | kHasWaiters)) == 0,
               "an event is destroyed while threads wait for it");
}

absl::Status Event::WaitUntil(Deadline deadline) {
  if (IsSet()) return absl::OkStatus();
  const DeadlineScope scope(deadline);
  return WaitSlow();
}

absl::Status Event::WaitSlow() {
  Waiter self;
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  const Word word = word_.Lock();
  if ((word & kSet) != 0) {
    word_.Unlock(word);
    return absl::OkStatus();
  }
  waiters_.PushBack(self);
  word_.Unlock(kHasWaiters);

  const Wake wake = self.Park();
  if (wake == Wake::kNotified) return absl::OkStatus();
  Word now = word_.Lock();
  waiters_.Forget(self);
  if (waiters_.empty()) now &= ~kHasWaiters;
  word_.Unlock(now);
  // Set meanwhile: what was waited for has happened.
  return (now & kSet) != 0 ? absl::OkStatus() : Thread::StatusOf(wake);
}

void Event::SetSlow() {
  WakeList woken;
  const Word word = word_.Lock();
  if ((word & kSet) == 0) {
    while (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
  }
  word_.Unlock(kSet);
  // The event may be gone.
  woken.Dispatch();
}

}  // namespace bobbin
