// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/event.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

namespace bobbin {

using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

namespace {
constexpr internal::WaitKind kEventWait = {"event", internal::WaitObject::kAddress};
}  // namespace

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
  Waiter self(kEventWait, this);
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
  // Set meanwhile: what was waited for has happened.
  return Forget(self) ? absl::OkStatus() : Thread::StatusOf(wake);
}

bool Event::Forget(Waiter& waiter) {
  Word word = word_.Lock();
  waiters_.Forget(waiter);
  if (waiters_.empty()) word &= ~kHasWaiters;
  word_.Unlock(word);
  return (word & kSet) != 0;
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
