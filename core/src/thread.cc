// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::internal {

bool Thread::YieldToFresh() noexcept {
  if (role_ != Role::kVirtual) return false;
  // In this order: GCC would make one load of the two fields, and of `cancel_` between them, which
  // others write.
  Dispatcher& here = *dispatcher();
  // Where it must not suspend, the wait that follows says so.
  return no_suspend_depth_ == 0 && here.YieldToFresh(*this);
}

Wake Thread::Park(WaitReason& reason) noexcept {
  BOBBIN_DCHECK(this == &Current(), "a thread can park only itself");
  wait_.store(&reason, std::memory_order_relaxed);  // relaxed: for this OS thread, and guesses.
  if (role_ != Role::kVirtual) {
    reason.since = MonotonicNow().time_since_epoch().count();
    return ParkOsThread();
  }
  Dispatcher& here = *dispatcher();
  reason.since = here.turn_time();
  TimerNode* const timer = governing_;
  // A scope's one timer is armed at the first wait that suspends.
  if (timer != nullptr && timer->place == TimerNode::Place::kUnarmed &&
      state_.phase() != Phase::kWaitingShielded && !here.ArmTimer(*timer)) {
    timer->has_expired = true;
    if (state_.TryInterrupt(Wake::kExpired)) return state_.EndWait();
    if (state_.phase() == Phase::kWaitingKernel) {
      kernel_wait().RequestStop(Wake::kExpired);
    }
  }
  here.Suspend(*this);
  return state_.EndWait();
}

Wake Thread::ParkOsThread() noexcept {
  static_cast<OsThread*>(this)->BlockUntilWoken();
  return state_.EndWait();
}

void Thread::Interrupt(Wake cause) noexcept {
  if (cause == Wake::kCancelled && shield_depth_ != 0) return;
  if (state_.TryInterrupt(cause)) {
    dispatcher()->MakeReady(*this);
  } else if (state_.phase() == Phase::kWaitingKernel) {
    kernel_wait().RequestStop(cause);
  }
}

void Thread::Cancel() noexcept {
  // Pairs with the exchange in FirstCheckCancel, before or after it: thread.h says why that is
  // enough.
  if (cancel_.exchange(CancelState::kRequested, std::memory_order_acq_rel) ==
      CancelState::kRequested) {
    return;
  }
  if (role_ != Role::kVirtual) {
    if (role_ != Role::kCarrier) static_cast<OsThread*>(this)->Poke();
    return;
  }
  // Pairs with the releases in Dispatcher::Begin and Dispatcher::Own.
  Dispatcher* const carrier = dispatcher_.load(std::memory_order_acquire);
  if (carrier == nullptr) return;
  if (carrier == Current().dispatcher()) {
    Interrupt(Wake::kCancelled);
  } else {
    carrier->PostCancel(static_cast<Task&>(*this));
  }
}

void Thread::RecheckCancel() noexcept {
  CancelState state = CancelState::kNone;
  // It changes nothing, but comes before or after the exchange in Cancel. Pairs with that. Where it
  // fails, Cancel was first, or the first check has yet to come.
  cancel_.compare_exchange_strong(state, CancelState::kNone, std::memory_order_acq_rel);
}

bool Thread::FirstCheckCancel() noexcept {
  CancelState state = CancelState::kUnchecked;
  // A read-modify-write, which pairs with the one in Cancel. Where it fails, Cancel was first.
  return !cancel_.compare_exchange_strong(state, CancelState::kNone, std::memory_order_acq_rel);
}

absl::Status Thread::StopStatus() noexcept {
  if (governing_ != nullptr && governing_->has_expired) return StatusOf(Wake::kExpired);
  return IsCancelled() ? StatusOf(Wake::kCancelled) : absl::OkStatus();
}

absl::Status Thread::StatusOf(Wake wake) noexcept {
  // Without a message a status is one word: stopping a hundred thousand threads allocates nothing.
  switch (wake) {
    case Wake::kNotified:
      return absl::OkStatus();
    case Wake::kExpired:
      return absl::Status(absl::StatusCode::kDeadlineExceeded, "");
    case Wake::kCancelled:
      return absl::Status(absl::StatusCode::kCancelled, "");
  }
  return absl::OkStatus();
}

void Thread::MustNotWait() const noexcept {
  BOBBIN_CHECK(role_ != Role::kCarrier, "a wait on a carrier's own stack would stop the carrier");
  BOBBIN_CHECK((no_suspend_depth_ & kForked) == 0,
               "a wait in a process that was made by fork of one that uses bobbin: it may only "
               "call exec, exit or _exit");
  BOBBIN_CHECK(no_suspend_depth_ % kOsLock == 0, "a wait inside a NoSuspendScope");
  BOBBIN_CHECK(no_suspend_depth_ == 0,
               "a wait while a lock of the operating system is held: who wants it next on this "
               "carrier would stop it for ever; use bobbin::Mutex, or unlock before the wait");
  __builtin_unreachable();
}

}  // namespace bobbin::internal
