// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/semaphore.h>

#include <bobbin/core/status.h>

namespace bobbin {

using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

namespace {
constexpr internal::WaitKind kSemaphoreWait = {"semaphore", internal::WaitObject::kAddress};
}  // namespace

Semaphore::Semaphore(int64_t permits) : word_(WordOf(permits)) {
  BOBBIN_CHECK(permits >= 0 && permits <= kPermitsMax, "a semaphore cannot hold so many permits");
}

Semaphore::~Semaphore() {
  BOBBIN_CHECK((word_.Load() & (kLocked | kHasWaiters)) == 0,
               "a semaphore is destroyed while threads wait for it");
}

absl::Status Semaphore::AcquireUntil(int64_t permits, Deadline deadline) {
  if (TryAcquire(permits)) return absl::OkStatus();
  const DeadlineScope scope(deadline);
  return AcquireSlow(permits);
}

absl::Status Semaphore::AcquireSlow(int64_t permits) {
  Waiter self(kSemaphoreWait, this);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  const Word word = word_.Lock();
  if (FreeOf(word) >= permits && (word & kHasWaiters) == 0) {
    word_.Unlock(word - WordOf(permits));
    return absl::OkStatus();
  }
  self.amount = permits;
  waiters_.PushBack(self);
  word_.Unlock(word | kHasWaiters);

  // Whoever ends the wait by a notify has taken the permits out for this thread.
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) Forget(self);
  return Thread::StatusOf(wake);
}

void Semaphore::Forget(Waiter& waiter) {
  WakeList woken;
  const Word word = word_.Lock();
  waiters_.Forget(waiter);
  // It may have held back smaller requests.
  word_.Unlock(Grant(FreeOf(word), woken));
  woken.Dispatch();
}

void Semaphore::ReleaseSlow(int64_t permits) {
  WakeList woken;
  const Word word = word_.Lock();
  CheckFree(FreeOf(word) + permits);
  word_.Unlock(Grant(FreeOf(word) + permits, woken));
  // The semaphore may be gone.
  woken.Dispatch();
}

Semaphore::Word Semaphore::Grant(int64_t free, WakeList& woken) {
  while (Waiter* const next = waiters_.Front()) {
    if (next->amount > free) break;
    if (!waiters_.Claim(*next)) continue;
    free -= next->amount;
    woken.Add(*next);
  }
  return WordOf(free) | (waiters_.empty() ? 0 : kHasWaiters);
}

}  // namespace bobbin
