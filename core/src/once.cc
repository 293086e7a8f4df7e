// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/once.h>

#include <bobbin/core/check.h>

namespace bobbin {

using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

Once::~Once() {
  BOBBIN_CHECK((word_.Load() & ~kDone) == 0, "a once is destroyed while a body of it runs");
}

absl::StatusOr<Once::Turn> Once::AwaitTurn() {
  const Word own = reinterpret_cast<Word>(&internal::Current());
  if (word_.TryChange(0, own)) return Turn::kMine;
  // The word, the first member, names the one that runs the body.
  static constexpr internal::WaitKind kOnceWait = {"once", internal::WaitObject::kAddress, 0};
  Waiter self(kOnceWait, this);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  const Word word = word_.Lock();
  if (word == 0 || (word & kDone) != 0) {
    word_.Unlock(word == 0 ? own : word);
    return word == 0 ? Turn::kMine : Turn::kDone;
  }
  BOBBIN_CHECK((word & ~kHasWaiters) != own, "the body of a once calls the once");
  waiters_.PushBack(self);
  word_.Unlock(word | kHasWaiters);

  const Wake wake = self.Park();
  if (wake == Wake::kNotified) return static_cast<Turn>(self.amount);
  Word now = word_.Lock();
  waiters_.Forget(self);
  if (waiters_.empty()) now &= ~kHasWaiters;
  word_.Unlock(now);
  // Done meanwhile: what was waited for has happened.
  if ((now & kDone) != 0) return Turn::kDone;
  return Thread::StatusOf(wake);
}

void Once::Finish() noexcept {
  WakeList woken;
  word_.Lock();
  while (Waiter* const waiter = waiters_.ClaimFront()) {
    waiter->amount = static_cast<int64_t>(Turn::kDone);
    woken.Add(*waiter);
  }
  word_.Unlock(kDone);
  // The once may be gone.
  woken.Dispatch();
}

void Once::HandOver() noexcept {
  WakeList woken;
  Word next = 0;
  word_.Lock();
  if (Waiter* const waiter = waiters_.ClaimFront()) {
    waiter->amount = static_cast<int64_t>(Turn::kMine);
    woken.Add(*waiter);
    next = reinterpret_cast<Word>(&waiter->thread()) | (waiters_.empty() ? 0 : kHasWaiters);
  }
  word_.Unlock(next);
  woken.Dispatch();
}

}  // namespace bobbin
