// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <bobbin/core/internal/future_state.h>
#include <bobbin/core/status.h>

namespace bobbin::internal {

namespace {
constexpr WaitKind kFutureWait = {"future", WaitObject::kAddress};
constexpr WaitKind kAnyFutureWait = {"any of several futures", WaitObject::kNone};
}  // namespace

absl::Status FutureStateBase::Await() {
  if (IsReady()) return absl::OkStatus();
  Waiter self(kFutureWait, this);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  if (self.thread().YieldToFresh()) {
    if (IsReady()) return absl::OkStatus();
    BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  }
  const uint32_t word = word_.Lock();
  if ((word & kReady) != 0) {
    word_.Unlock(word);
    return absl::OkStatus();
  }
  self.BeginWait(Phase::kWaiting);
  EnrolLocked(self);
  word_.Unlock(word);

  const Wake wake = self.Park();
  if (wake == Wake::kNotified) return absl::OkStatus();
  const uint32_t now = word_.Lock();
  waiter_ = nullptr;
  word_.Unlock(now);
  // Set meanwhile: what was waited for has happened.
  return (now & kReady) != 0 ? absl::OkStatus() : Thread::StatusOf(wake);
}

bool FutureStateBase::Enrol(Waiter& waiter) noexcept {
  const uint32_t word = word_.Lock();
  const bool is_ready = (word & kReady) != 0;
  if (!is_ready) EnrolLocked(waiter);
  word_.Unlock(word);
  return !is_ready;
}

void FutureStateBase::Withdraw() noexcept {
  const uint32_t word = word_.Lock();
  waiter_ = nullptr;
  word_.Unlock(word);
}

void FutureStateBase::Attach(Continuation& continuation) noexcept {
  const uint32_t word = word_.Lock();
  if ((word & kReady) == 0) {
    BOBBIN_CHECK(waiter_ == nullptr, "a continuation is given to a future that a thread waits for");
    continuation_ = &continuation;
    word_.Unlock(word);
    return;
  }
  word_.Unlock(word);
  RunAll(&continuation);
}

void FutureStateBase::Drop() noexcept {
  if (IsReady()) {
    DropUnread();
    return Release();
  }
  // Along the chain to the one that somebody feeds. A state is released after it was told.
  FutureStateBase* state = this;
  while (state != nullptr) {
    FutureStateBase* const source = state->Abandon();
    state->Release();
    state = source;
  }
}

absl::Status BrokenPromise() {
  return MakeStatus(absl::StatusCode::kAborted, "future: its promise was dropped without a result");
}

Continuation* FutureStateBase::PublishToReader() noexcept {
  WakeList woken;
  if (waiter_ != nullptr && waiter_->TryNotify()) woken.Add(*waiter_);
  waiter_ = nullptr;
  Continuation* const next = std::exchange(continuation_, nullptr);
  word_.Unlock(kReady);
  woken.Dispatch();
  return next;
}

absl::StatusOr<size_t> AwaitAny(size_t count,
                                absl::FunctionRef<FutureStateBase*(size_t)> state_of) {
  const auto first_ready = [&] {
    size_t index = 0;
    while (index < count && (state_of(index) == nullptr || !state_of(index)->IsReady())) ++index;
    return index;
  };
  if (const size_t ready = first_ready(); ready < count) return ready;

  Waiter self(kAnyFutureWait);
  BOBBIN_RETURN_IF_ERROR(self.thread().StopStatus());
  self.BeginWait(Phase::kWaitingAny);
  size_t asked = 0;
  size_t enrolled = 0;
  bool must_wait = true;
  for (; must_wait && asked < count; ++asked) {
    FutureStateBase* const state = state_of(asked);
    if (state == nullptr) continue;
    must_wait = state->Enrol(self);
    ++enrolled;
  }
  BOBBIN_CHECK(enrolled > 0, "a wait for one of several futures, none of which holds anything");
  const Wake wake = must_wait ? self.Park() : self.EndOwnWait();

  // Whoever has ended the wait, what is ready now is the answer.
  for (size_t index = 0; index < asked; ++index) {
    if (FutureStateBase* const state = state_of(index)) state->Withdraw();
  }
  if (const size_t ready = first_ready(); ready < count) return ready;
  return Thread::StatusOf(wake);
}

}  // namespace bobbin::internal
