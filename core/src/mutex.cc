// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/mutex.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

namespace bobbin {

using internal::Backoff;
using internal::Phase;
using internal::Thread;
using internal::WakeList;
using internal::Waiter;
using internal::Wake;

Mutex::~Mutex() { BOBBIN_CHECK(word_.Load() == 0, "a mutex is destroyed while it is held"); }

bool Mutex::IsHeldByCurrent() const {
  return OwnerOf(word_.Load()) == WordOf(internal::Current());
}

bool Mutex::TakeOrQueue(Waiter& waiter, Phase phase) {
  Backoff backoff;
  while (true) {
    const Word word = word_.Load();
    BOBBIN_CHECK(OwnerOf(word) != WordOf(waiter.thread()), "a thread locks a mutex that it holds");
    if (word == 0) {
      if (word_.TryChange(0, WordOf(waiter.thread()))) return true;
    } else if (!word_.IsLocked(word) && word_.TryLockIf(word)) {
      // Held by another: with the queue's lock taken nobody can free it now.
      waiters_.PushBack(waiter, phase);
      word_.Unlock(word | kHasWaiters);
      return false;
    }
    backoff.Pause();
  }
}

void Mutex::LockSlow(Thread&) {
  Waiter self;
  if (TakeOrQueue(self, Phase::kWaitingShielded)) return;
  // Unlock makes this thread the owner before it wakes it; nothing else can end the wait.
  const Wake wake = self.Park();
  BOBBIN_DCHECK(wake == Wake::kNotified && IsHeldByCurrent(), "woken without the mutex");
  static_cast<void>(wake);
}

absl::Status Mutex::LockUntil(Deadline deadline) {
  if (try_lock()) return absl::OkStatus();
  const DeadlineScope scope(deadline);
  Waiter self;
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  if (TakeOrQueue(self, Phase::kWaiting)) return absl::OkStatus();
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    const Word word = word_.Lock();
    waiters_.Forget(self);
    word_.Unlock(waiters_.empty() ? OwnerOf(word) : word);
  }
  return Thread::StatusOf(wake);
}

void Mutex::UnlockSlow() {
  const Word self = WordOf(internal::Current());
  Backoff backoff;
  Word word = word_.Load();
  while (true) {
    BOBBIN_CHECK(OwnerOf(word) == self, "a thread unlocks a mutex that it does not hold");
    if (!word_.IsLocked(word) && word_.TryLockIf(word)) break;
    backoff.Pause();
    word = word_.Load();
  }

  // The next owner, if there is one; then the mutex may be gone.
  WakeList woken;
  Word next = 0;
  if (Waiter* const waiter = waiters_.ClaimFront()) {
    woken.Add(*waiter);
    next = WordOf(waiter->thread()) | (waiters_.empty() ? 0 : kHasWaiters);
  }
  word_.Unlock(next);
  woken.Dispatch();
}

}  // namespace bobbin
