// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/wait_group.h>

#include <bobbin/core/status.h>

namespace bobbin {

using internal::Backoff;
using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

namespace {
constexpr internal::WaitKind kWaitGroupWait = {"wait group", internal::WaitObject::kAddress};
}  // namespace

WaitGroup::~WaitGroup() {
  BOBBIN_CHECK((word_.Load() & (kLocked | kHasWaiters)) == 0,
               "a wait group is destroyed while threads wait for it");
}

void WaitGroup::Add(int64_t count) {
  BOBBIN_CHECK(count > 0 && count <= kCountMax, "so much cannot be added to a wait group");
  Backoff backoff;
  Word word = word_.Load();
  while (true) {
    BOBBIN_CHECK(CountOf(word) + count <= kCountMax, "a wait group counts more than it can");
    const bool is_locked = (word & kLocked) != 0;
    if (!is_locked && word_.TryChange(word, word + static_cast<Word>(count) * kOne)) return;
    if (is_locked) backoff.Pause();
    word = word_.Load();
  }
}

void WaitGroup::DoneSlow() {
  WakeList woken;
  Word word = word_.Lock();
  BOBBIN_CHECK(CountOf(word) > 0, "Done of a wait group whose count is zero");
  word -= kOne;
  if (CountOf(word) == 0) {
    while (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
    word = 0;
  }
  word_.Unlock(word);
  // The wait group may be gone.
  woken.Dispatch();
}

absl::Status WaitGroup::WaitUntil(Deadline deadline) {
  if (count() == 0) return absl::OkStatus();
  const DeadlineScope scope(deadline);
  return WaitSlow();
}

absl::Status WaitGroup::WaitSlow() {
  Waiter self(kWaitGroupWait, this);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  const Word word = word_.Lock();
  if (CountOf(word) == 0) {
    word_.Unlock(word);
    return absl::OkStatus();
  }
  waiters_.PushBack(self);
  word_.Unlock(word | kHasWaiters);

  const Wake wake = self.Park();
  if (wake == Wake::kNotified) return absl::OkStatus();
  Word now = word_.Lock();
  waiters_.Forget(self);
  if (waiters_.empty()) now &= ~kHasWaiters;
  word_.Unlock(now);
  // Zero meanwhile: what was waited for has happened.
  return CountOf(now) == 0 ? absl::OkStatus() : Thread::StatusOf(wake);
}

}  // namespace bobbin
