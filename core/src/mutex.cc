// SPDX-License-Identifier: Apache-2.0
//
// Who gets a contended mutex. Three ways, from the cheapest on:
//
//   Look again.   The owner runs on another carrier, or is an OS thread: it will be through soon,
//                 so the contender looks a few times, with pauses that leave the cache line to the
//                 owner. On the owner's own carrier that would be in vain.
//   Try again.    Unlock frees the mutex and wakes the first of the queue as a runner, one at a
//                 time. Whoever is running meanwhile may take it first: a thread that locks and
//                 unlocks often goes on at full speed, while a wake takes microseconds.
//   Hand over.    Unlock makes a waiter the owner. It does so if the section has suspended and a
//                 waiter of the same carrier is there, which will run next anyway - who was woken
//                 in vain would only be one switch more -, and if the first of the queue is
//                 overdue.
//
// Why nobody starves. A runner that comes too late goes back to the head of the queue. Once it has
// been there for kPatience, it marks the mutex overdue, and the next unlock hands it over. Waiters
// of another carrier that are passed by hand-overs are counted in the first of them, and it is
// overdue after the same time.
//
// Why no wake-up is lost. A waiter joins the queue under its lock, while the mutex is held: so the
// owner's unlock comes later and finds kHasWaiters. An unlock that finds waiters and no runner
// wakes one or hands over. One that finds a runner may leave, because the runner has yet to look:
// it takes the mutex, or finds it held, and clears kHasRunner before it waits or gives up.

#include <chrono>
#include <cstddef>

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>

namespace bobbin {

using internal::Backoff;
using internal::Dispatcher;
using internal::Phase;
using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

namespace {

// How long a waiter may be overtaken.
constexpr std::chrono::nanoseconds kPatience = std::chrono::milliseconds(1);
// The clock is read only once in so many hand-overs that pass the first waiter.
constexpr uint32_t kPassesPerLook = 16;
// How many waiters an unlock looks at for one of its own carrier.
constexpr int kLooksForNeighbour = 8;
// How often a contender looks whether a running owner has gone, and how long it pauses in between:
// long enough that the owner gets through some short sections. Tuned with Mutex/64Threads.
constexpr int kLooks = 10;
constexpr int kPausesPerLook = 16;

void PauseBetweenLooks() noexcept {
  for (int i = 0; i < kPausesPerLook; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace

class Mutex::Contender : public Waiter {
 public:
  explicit Contender(const Mutex& mutex) noexcept : Waiter(kWaitKind, &mutex) {}

  // Whether two threads can never run at the same time, as far as the tags tell.
  bool SharesCarrierWith(uint8_t tag) const noexcept {
    return tag != 0 && tag == thread().carrier_tag();
  }
  // Begins to be impatient, or says whether it has been for too long.
  bool IsOverdue() noexcept {
    const MonotonicTime now = MonotonicNow();
    if (impatient_since_ == MonotonicTime()) impatient_since_ = now;
    return now - impatient_since_ > kPatience;
  }
  // Counts that somebody who came later gets the mutex first.
  bool IsOverdueAfterPass() noexcept { return passes_++ % kPassesPerLook == 0 && IsOverdue(); }

  // Written by who ended its wait: it owns the mutex, or is the runner.
  bool is_owner = false;
  bool is_runner = false;

 private:
  uint32_t passes_ = 0;  // Guarded by the lock of the queue, as all of the rest.
  MonotonicTime impatient_since_;
};

Mutex::~Mutex() {
  static_assert(offsetof(Mutex, word_) == 0 && kWaitKind.holder_word == 0);
  BOBBIN_CHECK(word_.Load() == 0, "a mutex is destroyed while it is held");
}

bool Mutex::IsHeldByCurrent() const {
  return OwnerOf(word_.Load()) == OwnerOf(WordOf(internal::Current()));
}

void Mutex::AssertHeld() const {
  BOBBIN_CHECK(IsHeldByCurrent(), "the thread does not hold the mutex");
}

void Mutex::LockSlow() {
  Contender self(*this);
  const absl::Status status = Contend(self, Phase::kWaitingShielded);
  BOBBIN_DCHECK(status.ok() && IsHeldByCurrent(), "woken without the mutex");
}

bool Mutex::TryLockSlow() {
  const Word self = WordOf(internal::Current());
  Backoff backoff;
  while (true) {
    const Word word = word_.Load();
    if (OwnerOf(word) != 0) return false;
    if (!word_.IsLocked(word) && word_.TryChange(word, self | word)) return true;
    backoff.Pause();
  }
}

absl::Status Mutex::LockUntil(Deadline deadline) {
  if (try_lock()) return absl::OkStatus();
  const DeadlineScope scope(deadline);
  Contender self(*this);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  return Contend(self, Phase::kWaiting);
}

absl::Status Mutex::Contend(Contender& self, Phase phase) {
  while (!TryTake(self)) {
    if (self.is_runner && phase == Phase::kWaiting && self.thread().ShouldStop()) {
      if (StepBack()) return self.thread().StopStatus();
      continue;
    }
    if (!Join(self, phase)) continue;
    const Wake wake = self.Park();
    if (wake != Wake::kNotified) {
      Leave(self);
      return Thread::StatusOf(wake);
    }
    if (self.is_owner) break;
  }
  if (const Dispatcher* const carrier = self.thread().dispatcher()) {
    picks_when_taken_ = carrier->picks();
  }
  return absl::OkStatus();
}

bool Mutex::TryTake(Contender& self) {
  const Word owned = WordOf(self.thread());
  const Word mine = self.is_runner ? kHasRunner : 0;
  Backoff backoff;
  for (int look = 0;;) {
    const Word word = word_.Load();
    if (OwnerOf(word) == 0) {
      if (!word_.IsLocked(word) && word_.TryChange(word, owned | (word & ~mine))) return true;
      backoff.Pause();
      continue;
    }
    BOBBIN_CHECK(OwnerOf(word) != OwnerOf(owned), "a thread locks a mutex that it holds");
    if (self.SharesCarrierWith(TagOf(word)) || !internal::OthersRunMeanwhile()) return false;
    if (look++ == kLooks) return false;
    PauseBetweenLooks();
  }
}

Mutex::Word Mutex::LockQueueOfHeld() {
  Backoff backoff;
  while (true) {
    const Word word = word_.Load();
    if (OwnerOf(word) == 0) return 0;
    if (!word_.IsLocked(word) && word_.TryLockIf(word)) return word;
    backoff.Pause();
  }
}

bool Mutex::Join(Contender& self, Phase phase) {
  Word word = LockQueueOfHeld();
  if (word == 0) return false;
  if (self.is_runner) {
    // It comes too late: somebody else was faster.
    self.is_runner = false;
    waiters_.PushFront(self, phase);
    word &= ~kHasRunner;
    if (self.IsOverdue()) word |= kIsOverdue;
  } else {
    waiters_.PushBack(self, phase);
  }
  word_.Unlock(word | kHasWaiters);
  return true;
}

bool Mutex::StepBack() {
  const Word word = LockQueueOfHeld();
  if (word == 0) return false;
  word_.Unlock(word & ~kHasRunner);
  return true;
}

void Mutex::Leave(Contender& self) {
  const Word word = word_.Lock();
  waiters_.Forget(self);
  word_.Unlock(waiters_.empty() ? word & ~(kHasWaiters | kIsOverdue) : word);
}

void Mutex::UnlockSlow() {
  const Thread& self = internal::Current();
  Backoff backoff;
  Word word;
  while (true) {
    word = word_.Load();
    BOBBIN_CHECK(OwnerOf(word) == OwnerOf(WordOf(self)),
                 "a thread unlocks a mutex that it does not hold");
    if (!word_.IsLocked(word)) {
      const Word flags = word & kFlags;
      const bool must_choose =
          (flags & kHasWaiters) != 0 && (flags & (kHasRunner | kIsOverdue)) != kHasRunner;
      if (must_choose ? word_.TryLockIf(word) : word_.TryChange(word, flags)) {
        if (must_choose) break;
        return;
      }
    }
    backoff.Pause();
  }

  // Once the word is unlocked, the mutex may be gone.
  WakeList woken;
  Word next = word & kHasRunner;
  if (Contender* const chosen = ClaimNext(self, word)) {
    woken.Add(*chosen);
    next |= chosen->is_owner ? WordOf(chosen->thread()) : kHasRunner;
  }
  word_.Unlock(waiters_.empty() ? next : next | kHasWaiters);
  woken.Dispatch();
}

Mutex::Contender* Mutex::ClaimNext(const Thread& self, Word word) {
  while (Contender* const chosen = ChooseNext(self, word)) {
    if (waiters_.Claim(*chosen)) return chosen;
    // Lost to a deadline or a cancel.
  }
  return nullptr;
}

Mutex::Contender* Mutex::ChooseNext(const Thread& self, Word word) {
  auto* const first = static_cast<Contender*>(waiters_.Front());
  if (first == nullptr) return nullptr;
  const auto become = [](Contender& chosen, bool is_owner) {
    chosen.is_owner = is_owner;
    chosen.is_runner = !is_owner;
    return &chosen;
  };
  if ((word & kIsOverdue) != 0) return become(*first, true);

  // Nobody else of this carrier has run since the section began: it does not suspend.
  const Dispatcher* const carrier = self.dispatcher();
  if (carrier == nullptr || carrier->picks() == picks_when_taken_) return become(*first, false);

  Waiter* neighbour = first;
  for (int look = 0; look < kLooksForNeighbour && neighbour != nullptr; ++look) {
    auto& candidate = static_cast<Contender&>(*neighbour);
    if (candidate.SharesCarrierWith(self.carrier_tag())) {
      if (&candidate != first && first->IsOverdueAfterPass()) return become(*first, true);
      return become(candidate, true);
    }
    neighbour = waiters_.Next(*neighbour);
  }
  return become(*first, false);
}

}  // namespace bobbin
