// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/condition.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

namespace bobbin {

using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

namespace {
constexpr internal::WaitKind kConditionWait = {"condition", internal::WaitObject::kAddress};
}  // namespace

Condition::~Condition() {
  BOBBIN_CHECK(word_.Load() == 0, "a condition is destroyed while threads wait for it");
}

absl::Status Condition::Wait(Mutex& mutex) {
  BOBBIN_CHECK(mutex.IsHeldByCurrent(), "a thread waits with a mutex that it does not hold");
  Waiter self(kConditionWait, this);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  word_.Lock();
  waiters_.PushBack(self);
  word_.Unlock(kHasWaiters);

  // The wait has begun: whoever gets the mutex now can end it.
  mutex.unlock();
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    word_.Lock();
    waiters_.Forget(self);
    word_.Unlock(Flags());
  }
  mutex.lock();
  return Thread::StatusOf(wake);
}

absl::Status Condition::WaitUntil(Mutex& mutex, Deadline deadline) {
  const DeadlineScope scope(deadline);
  return Wait(mutex);
}

void Condition::NotifyOneSlow() {
  WakeList woken;
  word_.Lock();
  if (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
  word_.Unlock(Flags());
  // The condition may be gone.
  woken.Dispatch();
}

void Condition::NotifyAllSlow() {
  WakeList woken;
  word_.Lock();
  while (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
  word_.Unlock(0);
  // The condition may be gone.
  woken.Dispatch();
}

}  // namespace bobbin
