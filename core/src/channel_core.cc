// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/channel_core.h>

#include <bobbin/core/channel.h>
#include <bobbin/core/status.h>

namespace bobbin::internal {

ChannelBase::ChannelBase(size_t capacity) : capacity_(capacity) {
  BOBBIN_CHECK(capacity <= kChannelCapacityMax, "a channel's capacity is beyond its limit");
}

absl::Status ChannelBase::WaitIn(WaitQueue& queue, void* slot, absl::Status (*closed)()) {
  Waiter self;
  if (self.thread().ShouldStop()) {
    lock_.Unlock();
    return self.thread().StopStatus();
  }
  self.slot = slot;
  queue.PushBack(self);
  lock_.Unlock();

  const Wake wake = self.Park();
  if (wake == Wake::kNotified) return self.amount == kServed ? absl::OkStatus() : closed();
  SpinLockHolder hold(lock_);
  queue.Forget(self);
  return Thread::StatusOf(wake);
}

void ChannelBase::WakeServed(Waiter& waiter) noexcept {
  waiter.amount = kServed;
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

absl::Status ChannelBase::ClosedForSend() {
  return MakeStatus(absl::StatusCode::kFailedPrecondition, "send: the channel is closed");
}

absl::Status ChannelBase::ClosedForReceive() {
  return MakeStatus(absl::StatusCode::kOutOfRange, "receive: the channel is closed and empty");
}

absl::Status ChannelBase::MustWait() {
  // Without a message: this is an answer, not a failure, and must not cost an allocation.
  return MakeStatus(absl::StatusCode::kUnavailable, "");
}

}  // namespace bobbin::internal
