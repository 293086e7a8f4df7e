// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/barrier_core.h>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

namespace bobbin::internal {

namespace {
constexpr WaitKind kBarrierWait = {"barrier", WaitObject::kAddress};
}  // namespace

BarrierCore::BarrierCore(int64_t parties, Completion complete, void* argument)
    : complete_(complete), argument_(argument), expected_(parties), pending_(parties) {
  BOBBIN_CHECK(parties > 0, "a barrier needs a party");
}

BarrierCore::~BarrierCore() {
  BOBBIN_CHECK((word_.Load() & (kLocked | kHasWaiters)) == 0,
               "a barrier is destroyed while threads wait at it");
}

bool BarrierCore::CountArrival() {
  BOBBIN_CHECK(pending_ > 0, "more threads arrive at a barrier than it has parties");
  return --pending_ == 0;
}

absl::Status BarrierCore::ArriveAndWait() {
  Waiter self(kBarrierWait, this);
  const absl::Status stopped = self.thread().StopStatus();
  const Word word = word_.Lock();
  if (CountArrival()) {
    EndPhase(word);
    return absl::OkStatus();
  }
  if (!stopped.ok()) {
    --expected_;
    word_.Unlock(word);
    return stopped;
  }
  waiters_.PushBack(self);
  word_.Unlock(word | kHasWaiters);
  return Park(self, PhaseOf(word));
}

BarrierCore::Place BarrierCore::Arrive(Future future) {
  const Word word = word_.Lock();
  if (future == Future::kLeaves) --expected_;
  const bool is_last = CountArrival();
  if (is_last) {
    EndPhase(word);
  } else {
    word_.Unlock(word);
  }
  return {.phase = PhaseOf(word), .is_passed = is_last};
}

absl::Status BarrierCore::Wait(Place place) {
  if (place.is_passed || PhaseOf(word_.Load()) != place.phase) return absl::OkStatus();
  Waiter self(kBarrierWait, this);
  const absl::Status stopped = self.thread().StopStatus();
  const Word word = word_.Lock();
  if (PhaseOf(word) != place.phase) {
    word_.Unlock(word);
    return absl::OkStatus();
  }
  if (!stopped.ok()) {
    --expected_;
    word_.Unlock(word);
    return stopped;
  }
  waiters_.PushBack(self);
  word_.Unlock(word | kHasWaiters);
  return Park(self, place.phase);
}

absl::Status BarrierCore::Park(Waiter& self, uint64_t phase) {
  const Wake wake = self.Park();
  if (wake == Wake::kNotified) return absl::OkStatus();
  Word now = word_.Lock();
  waiters_.Forget(self);
  if (waiters_.empty()) now &= ~kHasWaiters;
  // Ended meanwhile: what was waited for has happened.
  const bool is_passed = PhaseOf(now) != phase;
  if (!is_passed) --expected_;
  word_.Unlock(now);
  return is_passed ? absl::OkStatus() : Thread::StatusOf(wake);
}

void BarrierCore::EndPhase(Word word) {
  if (complete_ != nullptr) {
    // Nobody else's code runs under a lock of core. Nobody can arrive meanwhile.
    word_.Unlock(word);
    complete_(argument_);
    word_.Lock();
  }
  WakeList woken;
  while (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
  pending_ = expected_;
  word_.Unlock((PhaseOf(word) + 1) * kOnePhase);
  // The barrier may be gone.
  woken.Dispatch();
}

}  // namespace bobbin::internal
