// SPDX-License-Identifier: Apache-2.0
//
// Select: waits for several things and does one of them - the first that can be done.
//
// Each case names a thing and what to do with it: OnReceive, OnSend, OnEvent, OnFuture, OnAcquire,
// OnDeadline. Exactly one case wins: its value is taken, sent or acquired, its function called, on
// the calling thread and without any lock. All others are as if nobody had looked.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Select, while no case is ready. TrySelect never.
//   Cancellation  A Select without a ready case returns CANCELLED or DEADLINE_EXCEEDED, and no
//                 function is called. A ready case is taken also by a thread that is to stop.
//   Errors        What the function of the case that won returns; OK if it returns nothing. A case
//                 may win with an error (a closed channel, a failed future): a function of the
//                 whole answer (StatusOr<T>; Status for OnSend) is called with it; one of the value
//                 alone, or of nothing, is not, and Select returns the error. TrySelect:
//                 UNAVAILABLE when no case is ready.
//   Order         Among ready cases each look begins at a random one, so none starves. In a queue a
//                 case waits its turn like any other waiter. OnDeadline wins only when nothing else
//                 is ready.
//   Memory        as the operation of the case that won.
//   Lifetime      What the cases name must live until Select returns.
//   Cost          A ready case: that case's own operation. A wait: the locks of all cases, twice,
//                 and a park. Nothing is allocated.
//
// A case whose Receiver, Sender or Future holds nothing never becomes ready: so a loop leaves out
// what has ended. A value for OnSend that was not sent is as before.
//
// Example:
//   Receiver<Photo> photos = ...;
//   while (photos) {
//     BOBBIN_RETURN_IF_ERROR(Select(
//         OnReceive(photos,
//                   [&](absl::StatusOr<Photo> photo) {
//                     photo.ok() ? Show(*photo) : void(photos = {});  // Closed and empty.
//                   }),
//         OnEvent(stop, [] { return absl::CancelledError("stopped"); }),
//         OnDeadline(Deadline::After(1s), [] { Beat(); })));
//   }

#ifndef BOBBIN_CORE_SELECT_H_
#define BOBBIN_CORE_SELECT_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
#include <bobbin/core/internal/channel_core.h>
#include <bobbin/core/internal/select_case.h>
#include <bobbin/core/semaphore.h>

namespace bobbin {

namespace internal {

struct ChannelAccess {
  template <typename End>
  static auto* CoreOf(const End& end) noexcept {
    return end.handle_.core_or_null();
  }
};

// Calls the function of a case.
template <typename F, typename... Arguments>
absl::Status CallCase(F& function, Arguments&&... arguments) {
  static_assert(std::is_invocable_v<F&, Arguments...>,
                "the function of a case takes its value, or the whole answer");
  if constexpr (std::is_void_v<std::invoke_result_t<F&, Arguments...>>) {
    function(std::forward<Arguments>(arguments)...);
    return absl::OkStatus();
  } else {
    return function(std::forward<Arguments>(arguments)...);
  }
}

// What a channel's cases share. `Self` looks at the channel.
template <typename Self, typename T, ChannelSide kSide>
class ChannelPlace : public SelectCase {
 public:
  bool TryNow() final ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Waiter* served = nullptr;
    core_->lock().Lock();
    const bool is_taken = Look(served);
    core_->lock().Unlock();
    if (served != nullptr) {
      WakeList woken;
      woken.Add(*served);
      woken.Dispatch();
    }
    return is_taken;
  }
  void Lock() noexcept final ABSL_NO_THREAD_SAFETY_ANALYSIS { core_->lock().Lock(); }
  void Unlock() noexcept final ABSL_NO_THREAD_SAFETY_ANALYSIS { core_->lock().Unlock(); }
  bool TryLocked(WakeList& woken) noexcept final {
    Waiter* served = nullptr;
    const bool is_taken = Look(served);
    if (served != nullptr) woken.Add(*served);
    return is_taken;
  }
  void Join(Waiter& waiter) noexcept final ABSL_NO_THREAD_SAFETY_ANALYSIS {
    core_->Join(kSide, waiter, static_cast<Self*>(this)->slot());
  }
  void Leave(Waiter& waiter) noexcept final {
    if (waiter.is_claimed()) {
      turn_ = ChannelBase::TurnOf(waiter);
      return;
    }
    SpinLockHolder hold(core_->lock());
    core_->Forget(kSide, waiter);
  }

 protected:
  explicit ChannelPlace(ChannelCore<T>* core) noexcept : SelectCase(core), core_(core) {}
  ~ChannelPlace() = default;

  ChannelCore<T>* const core_;
  Turn turn_ = Turn::kMustWait;  // What has come of it.

 private:
  bool Look(Waiter*& served) noexcept {
    turn_ = static_cast<Self*>(this)->LookAtChannel(served);
    if (served != nullptr) ChannelBase::NoteServed(*served);
    return turn_ != Turn::kMustWait;
  }
};

template <typename T, typename F>
class [[nodiscard]] ReceiveCase final
    : public ChannelPlace<ReceiveCase<T, F>, T, ChannelSide::kReceiver> {
 public:
  ReceiveCase(ChannelCore<T>* core, F&& function)
      : ReceiveCase::ChannelPlace(core), function_(std::move(function)) {}

  Turn LookAtChannel(Waiter*& served) noexcept ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return this->core_->TryReceiveLocked(result_, served);
  }
  void* slot() noexcept { return &result_; }

  absl::Status Finish() override {
    if (this->turn_ != Turn::kTaken) result_ = ChannelBase::StatusOfReceive(this->turn_);
    if constexpr (std::is_invocable_v<F&, absl::StatusOr<T>>) {
      return CallCase(function_, std::move(result_));
    } else {
      if (!result_.ok()) return std::move(result_).status();
      return CallCase(function_, *std::move(result_));
    }
  }

 private:
  absl::StatusOr<T> result_;
  F function_;
};

template <typename T, typename F>
class [[nodiscard]] SendCase final : public ChannelPlace<SendCase<T, F>, T, ChannelSide::kSender> {
 public:
  SendCase(ChannelCore<T>* core, T& value, F&& function)
      : SendCase::ChannelPlace(core), value_(&value), function_(std::move(function)) {}
  // Sends a copy.
  SendCase(ChannelCore<T>* core, const T& value, F&& function)
      : SendCase::ChannelPlace(core),
        copy_(value),
        value_(&*copy_),
        function_(std::move(function)) {}

  Turn LookAtChannel(Waiter*& served) noexcept ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return this->core_->TrySendLocked(*value_, served);
  }
  void* slot() noexcept { return value_; }

  absl::Status Finish() override {
    if constexpr (std::is_invocable_v<F&, absl::Status>) {
      return CallCase(function_, ChannelBase::StatusOfSend(this->turn_));
    } else {
      if (this->turn_ != Turn::kTaken) return ChannelBase::StatusOfSend(this->turn_);
      return CallCase(function_);
    }
  }

 private:
  std::optional<T> copy_;
  T* const value_;
  F function_;
};

template <typename F>
class [[nodiscard]] EventCase final : public EventPlace {
 public:
  EventCase(Event& event, F&& function) : EventPlace(event), function_(std::move(function)) {}
  absl::Status Finish() override { return CallCase(function_); }

 private:
  F function_;
};

template <typename T, typename F>
class [[nodiscard]] FutureCase final : public FuturePlace {
 public:
  FutureCase(Future<T>& future, F&& function)
      : FuturePlace(FutureAccess::StateOf(future)),
        future_(future),
        function_(std::move(function)) {}

  absl::Status Finish() override {
    FutureResult<T> result = future_.Get();
    if constexpr (std::is_invocable_v<F&, FutureResult<T>>) {
      return CallCase(function_, std::move(result));
    } else if constexpr (std::is_void_v<T>) {
      return result.ok() ? CallCase(function_) : result;
    } else {
      if (!result.ok()) return std::move(result).status();
      return CallCase(function_, *std::move(result));
    }
  }

 private:
  Future<T>& future_;
  F function_;
};

template <typename F>
class [[nodiscard]] AcquireCase final : public SemaphorePlace {
 public:
  AcquireCase(Semaphore& semaphore, int64_t permits, F&& function)
      : SemaphorePlace(semaphore, permits), function_(std::move(function)) {}
  absl::Status Finish() override { return CallCase(function_); }

 private:
  F function_;
};

template <typename F>
class [[nodiscard]] DeadlineCase final : public DeadlinePlace {
 public:
  DeadlineCase(Deadline deadline, F&& function)
      : DeadlinePlace(deadline), function_(std::move(function)) {}
  absl::Status Finish() override { return CallCase(function_); }

 private:
  F function_;
};

}  // namespace internal

// A value of a channel: `function` takes a T, or StatusOr<T> to hear of the end, too.
template <typename T, typename F>
auto OnReceive(const Receiver<T>& receiver, F function) {
  return internal::ReceiveCase<T, F>(internal::ChannelAccess::CoreOf(receiver),
                                     std::move(function));
}

// Room for a value, or a receiver: `value` is moved there, or copied if it is no rvalue. `function`
// takes nothing, or Status to hear of a closed channel, too.
template <typename T, typename F>
auto OnSend(const Sender<T>& sender, std::type_identity_t<T>&& value, F function) {
  return internal::SendCase<T, F>(internal::ChannelAccess::CoreOf(sender), value,
                                  std::move(function));
}
template <typename T, typename F>
requires std::is_copy_constructible_v<T>
auto OnSend(const Sender<T>& sender, const std::type_identity_t<T>& value, F function) {
  return internal::SendCase<T, F>(internal::ChannelAccess::CoreOf(sender), value,
                                  std::move(function));
}

// An event that is set: `function` takes nothing.
template <typename F>
auto OnEvent(Event& event, F function) {
  return internal::EventCase<F>(event, std::move(function));
}

// The result of a future, which is taken as by Get: `function` takes a T, or FutureResult<T> to
// hear of errors, too. An exception is rethrown by Select.
template <typename T, typename F>
auto OnFuture(Future<T>& future, F function) {
  return internal::FutureCase<T, F>(future, std::move(function));
}

// Permits of a semaphore, which are then the caller's: `function` takes nothing.
template <typename F>
auto OnAcquire(Semaphore& semaphore, int64_t permits, F function) {
  return internal::AcquireCase<F>(semaphore, permits, std::move(function));
}

// A point in time that passes before anything else is ready: `function` takes nothing.
template <typename F>
auto OnDeadline(Deadline deadline, F function) {
  return internal::DeadlineCase<F>(deadline, std::move(function));
}

// Waits until one of the cases is ready and does that one.
template <std::derived_from<internal::SelectCase>... Cases>
[[nodiscard]] absl::Status Select(Cases&&... cases) {
  static_assert(sizeof...(cases) > 0, "nothing to wait for");
  internal::SelectCase* const all[] = {&cases...};
  if (internal::SelectCase* const ready = internal::TakeReady(all)) return ready->Finish();
  const absl::StatusOr<internal::SelectCase*> won = [&all] {
    internal::Waiter waiters[sizeof...(Cases)];
    internal::SelectCase* by_place[sizeof...(Cases)];
    return internal::AwaitOne(all, waiters, by_place);
  }();
  return won.ok() ? (*won)->Finish() : won.status();
}

// Does one of the cases that are ready; UNAVAILABLE if none is. No deadline counts.
template <std::derived_from<internal::SelectCase>... Cases>
[[nodiscard]] absl::Status TrySelect(Cases&&... cases) {
  static_assert(sizeof...(cases) > 0, "nothing to look at");
  internal::SelectCase* const all[] = {&cases...};
  if (internal::SelectCase* const ready = internal::TakeReady(all)) return ready->Finish();
  return absl::Status(absl::StatusCode::kUnavailable, "");
}

}  // namespace bobbin

#endif  // BOBBIN_CORE_SELECT_H_
