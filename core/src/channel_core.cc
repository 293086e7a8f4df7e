// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/channel_core.h>

#include <bobbin/core/channel.h>
#include <bobbin/core/status.h>

namespace bobbin::internal {

namespace {
constexpr WaitKind kSendWait = {"channel send", WaitObject::kAddress};
constexpr WaitKind kReceiveWait = {"channel receive", WaitObject::kAddress};
}  // namespace

ChannelBase::ChannelBase(size_t capacity) : capacity_(capacity) {
  BOBBIN_CHECK(capacity <= kChannelCapacityMax, "a channel's capacity is beyond its limit");
}

absl::Status ChannelBase::WaitIn(WaitQueue& queue, void* slot, absl::Status (*status_of)(Turn)) {
  Waiter self(&queue == &senders_ ? kSendWait : kReceiveWait, this);
  if (self.thread().ShouldStop()) {
    lock_.Unlock();
    return self.thread().StopStatus();
  }
  self.slot = slot;
  queue.PushBack(self);
  lock_.Unlock();

  const Wake wake = self.Park();
  if (wake == Wake::kNotified) {
    const Turn turn = TurnOf(self);
    return __builtin_expect(turn == Turn::kTaken, 1) ? absl::OkStatus() : status_of(turn);
  }
  SpinLockHolder hold(lock_);
  queue.Forget(self);
  return Thread::StatusOf(wake);
}

void ChannelBase::WakeServed(Waiter& waiter) noexcept {
  NoteServed(waiter);
  WakeList woken;
  woken.Add(waiter);
  woken.Dispatch();
}

void ChannelBase::Close() noexcept {
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    is_open_ = false;
    for (WaitQueue* const queue : {&receivers_, &senders_}) {
      while (Waiter* const waiter = queue->ClaimFront()) {
        waiter->amount = kClosed;
        woken.Add(*waiter);
      }
    }
  }
  woken.Dispatch();
}

namespace {

// Without a message: this is an answer, not a failure, and must not cost an allocation.
absl::Status MustWait() { return MakeStatus(absl::StatusCode::kUnavailable, ""); }

}  // namespace

absl::Status ChannelBase::StatusOfSend(Turn turn) {
  if (turn == Turn::kTaken) return absl::OkStatus();
  if (turn == Turn::kMustWait) return MustWait();
  return MakeStatus(absl::StatusCode::kFailedPrecondition, "send: the channel is closed");
}

absl::Status ChannelBase::StatusOfReceive(Turn turn) {
  if (turn == Turn::kTaken) return absl::OkStatus();
  if (turn == Turn::kMustWait) return MustWait();
  return MakeStatus(absl::StatusCode::kOutOfRange, "receive: the channel is closed and empty");
}

}  // namespace bobbin::internal
