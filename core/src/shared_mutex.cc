// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/shared_mutex.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

namespace bobbin {

using internal::Backoff;
using internal::Phase;
using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

namespace {
// Its word, the first member, names the writer. Readers it only counts.
constexpr internal::WaitKind kSharedMutexWait = {"shared mutex", internal::WaitObject::kAddress,
                                                 0};
}  // namespace

SharedMutex::~SharedMutex() {
  BOBBIN_CHECK(word_.Load() == 0, "a shared mutex is destroyed while it is held");
}

bool SharedMutex::IsHeldByCurrent() const {
  return WriterOf(word_.Load()) == WordOf(internal::Current());
}

void SharedMutex::AssertHeld() const {
  BOBBIN_CHECK(IsHeldByCurrent(), "the thread does not hold the shared mutex exclusively");
}

void SharedMutex::AssertSharedHeld() const {
  BOBBIN_CHECK((word_.Load() & kShared) != 0 || IsHeldByCurrent(),
               "the thread does not hold the shared mutex");
}

bool SharedMutex::try_lock_shared() {
  Backoff backoff;
  while (true) {
    const Word word = word_.Load();
    if (CanShare(word)) {
      if (word_.TryChange(word, WithReader(word))) return true;
    } else if ((word & kQueueLocked) == 0) {
      return false;
    }
    // Somebody is at the queue, or another reader was faster: neither says no.
    backoff.Pause();
  }
}

bool SharedMutex::TakeOrQueue(Waiter& waiter, Access access, Phase phase) {
  const Word word = word_.Lock();
  const Word self = WordOf(waiter.thread());
  BOBBIN_CHECK(WriterOf(word) != self, "a thread locks a shared mutex that it holds");
  if (access == Access::kShared ? CanShare(word) : word == 0) {
    word_.Unlock(access == Access::kShared ? WithReader(word) : self);
    return true;
  }
  waiter.amount = static_cast<int64_t>(access);
  waiters_.PushBack(waiter, phase);
  word_.Unlock(word | kHasWaiters);
  return false;
}

void SharedMutex::LockSlow(Access access) {
  Waiter self(kSharedMutexWait, this);
  if (TakeOrQueue(self, access, Phase::kWaitingShielded)) return;
  // Whoever makes room lets this thread in before it wakes it; nothing else can end the wait.
  const Wake wake = self.Park();
  BOBBIN_DCHECK(wake == Wake::kNotified, "woken without the shared mutex");
  static_cast<void>(wake);
}

absl::Status SharedMutex::LockUntil(Deadline deadline) {
  return try_lock() ? absl::OkStatus() : WaitUntil(deadline, Access::kExclusive);
}

absl::Status SharedMutex::LockSharedUntil(Deadline deadline) {
  return try_lock_shared() ? absl::OkStatus() : WaitUntil(deadline, Access::kShared);
}

absl::Status SharedMutex::WaitUntil(Deadline deadline, Access access) {
  const DeadlineScope scope(deadline);
  Waiter self(kSharedMutexWait, this);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  if (TakeOrQueue(self, access, Phase::kWaiting)) return absl::OkStatus();
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    // A writer that gives up may have held back readers.
    WakeList woken;
    const Word word = word_.Lock();
    waiters_.Forget(self);
    word_.Unlock(Admit(word & ~kHasWaiters, woken));
    woken.Dispatch();
  }
  return Thread::StatusOf(wake);
}

void SharedMutex::UnlockSlow() {
  WakeList woken;
  const Word word = word_.Lock();
  BOBBIN_CHECK(WriterOf(word) == WordOf(internal::Current()),
               "a thread unlocks a shared mutex that it does not hold exclusively");
  word_.Unlock(Admit(0, woken));
  // The mutex may be gone.
  woken.Dispatch();
}

void SharedMutex::UnlockSharedSlow() {
  WakeList woken;
  const Word word = word_.Lock();
  BOBBIN_CHECK((word & kShared) != 0, "a thread unlocks a shared mutex that nobody holds shared");
  word_.Unlock(Admit(WithoutReader(word & ~kHasWaiters), woken));
  // The mutex may be gone.
  woken.Dispatch();
}

SharedMutex::Word SharedMutex::Admit(Word inside, WakeList& woken) {
  while (Waiter* const next = waiters_.Front()) {
    const bool is_reader = next->amount == static_cast<int64_t>(Access::kShared);
    const bool has_room = inside == 0 || (is_reader && (inside & kShared) != 0);
    if (!has_room) break;
    if (!waiters_.Claim(*next)) continue;
    inside = is_reader ? WithReader(inside) : WordOf(next->thread());
    woken.Add(*next);
  }
  return inside | (waiters_.empty() ? 0 : kHasWaiters);
}

}  // namespace bobbin
