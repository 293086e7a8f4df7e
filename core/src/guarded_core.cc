// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/guarded_core.h>

#include <bobbin/core/check.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>

namespace bobbin::internal {

bool GuardedPredicate::IsTrue() const noexcept {
  const NoSuspendScope scope;
  return call(function, value);
}

GuardedCore::~GuardedCore() {
  BOBBIN_CHECK(awaiters_.empty(), "a guarded value is destroyed while threads wait for it");
}

void GuardedCore::UnlockAfterChange() {
  WakeList woken;
  ClaimSatisfied(woken);
  mutex_.unlock();
  // The value may be gone.
  woken.Dispatch();
}

absl::Status GuardedCore::Await(const GuardedPredicate& predicate) {
  while (!predicate.IsTrue()) {
    Awaiter self(predicate);
    BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
    // Unlocks, as UnlockAfterChange does; from here on others can end the wait.
    WakeList woken;
    ClaimSatisfied(woken);
    self.BeginWait(Phase::kWaiting);
    awaiters_.PushBack(self);
    mutex_.unlock();
    woken.Dispatch();

    const Wake wake = self.Park();
    mutex_.lock();
    if (self.is_linked()) awaiters_.Remove(self);
    if (wake != Wake::kNotified) {
      return predicate.IsTrue() ? absl::OkStatus() : Thread::StatusOf(wake);
    }
  }
  return absl::OkStatus();
}

void GuardedCore::ClaimSatisfied(WakeList& woken) {
  for (Awaiter* awaiter = awaiters_.Front(); awaiter != nullptr;) {
    Awaiter& asked = *awaiter;
    awaiter = awaiters_.Next(asked);
    if (!asked.predicate.IsTrue()) continue;
    awaiters_.Remove(asked);
    if (!asked.TryNotify()) continue;
    woken.Add(asked);
    return;
  }
}

}  // namespace bobbin::internal
