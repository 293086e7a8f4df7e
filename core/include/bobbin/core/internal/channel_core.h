// SPDX-License-Identifier: Apache-2.0
//
// ChannelCore: what the ends of a channel share - the buffer, those who wait, and who is still
// there.
//
// States (everything is guarded by one spin lock)
//
//   receivers wait   the buffer is empty, nobody waits to send
//   nobody waits     the buffer holds anything from nothing to its capacity
//   senders wait     the buffer is full, nobody waits to receive
//   closed           nobody waits; the buffer may hold values
//
// A value goes straight into the slot of a receiver that waits, if there is one; else into the
// buffer; else its sender waits, with the value where the caller has it. A receiver takes from the
// buffer and refills it from the sender that waits longest, or takes from that sender where there
// is no buffer. So values arrive in the order in which they were sent, and none is anywhere but
// with its sender, in the buffer, or with its receiver.
//
// Why no value is lost. A value moves between two threads only after one has won the other's state
// word. A thread that was won cannot run before it is dispatched, so both the value and the slot
// stay good until then. A thread whose deadline or cancel won was not won:
// its value has not been touched, its slot is empty.
//
// Why nobody touches a core that is gone. Each side owns it together, as long as it has a handle; a
// thread in a call has one.
//
// Select (select.h) waits in the queues of several channels at once. It looks and joins under the
// locks of all of them, so for each channel the above holds as it stands; what it adds is that a
// waiter may lose its thread to another channel, as it may lose it to a deadline.
//
//   Called from   any thread.
//   Suspends      Send and Receive, if they are allowed to.
//   Cost          one spin lock; a wait adds a park. Nothing is allocated.

#ifndef BOBBIN_CORE_INTERNAL_CHANNEL_CORE_H_
#define BOBBIN_CORE_INTERNAL_CHANNEL_CORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>

namespace bobbin::internal {

enum class ChannelSide : uint8_t { kSender, kReceiver };

// Whether an operation may wait for its turn, or answers UNAVAILABLE.
enum class Patience : uint8_t { kNone, kSome };

// What a look at the channel has come to.
enum class [[nodiscard]] Turn : uint8_t{kTaken, kClosed, kMustWait};

// What does not depend on the type of the values.
class ChannelBase {
 public:
  ChannelBase(const ChannelBase&) = delete;
  ChannelBase& operator=(const ChannelBase&) = delete;

  // Nothing can be sent any more; what is buffered can be received.
  void Close() noexcept;

  // One more handle of a side that has one.
  void AddHandle(ChannelSide side) noexcept {
    // relaxed: the caller has a handle, so the count is not zero and orders nothing.
    CountOf(side).fetch_add(1, std::memory_order_relaxed);
  }

  // --- For Select, which holds the locks of several channels while it looks.

  SpinLock& lock() noexcept ABSL_LOCK_RETURNED(lock_) { return lock_; }
  // Joins those who wait on `side`. REQUIRES: the wait has begun.
  void Join(ChannelSide side, Waiter& waiter, void* slot) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    waiter.slot = slot;
    QueueOf(side).Join(waiter);
  }
  // Takes a waiter out whose wait has ended, if it is still in.
  void Forget(ChannelSide side, Waiter& waiter) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    QueueOf(side).Forget(waiter);
  }
  // What a claimed waiter was told.
  static Turn TurnOf(const Waiter& waiter) noexcept {
    return waiter.amount == kServed ? Turn::kTaken : Turn::kClosed;
  }
  // Says that a claimed waiter's slot has been served; it must then be let go, without the lock.
  static void NoteServed(Waiter& waiter) noexcept { waiter.amount = kServed; }
  static absl::Status StatusOfSend(Turn turn);
  static absl::Status StatusOfReceive(Turn turn);

 protected:
  explicit ChannelBase(size_t capacity);
  ~ChannelBase() = default;

  // One handle less. True for the last one of its side.
  [[nodiscard]] bool DropHandle(ChannelSide side) noexcept {
    // What the other handles did comes before what the last one does: pairs with itself.
    return CountOf(side).fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  // One side is gone. True for the second one, which owns the core alone.
  [[nodiscard]] bool DropSide() noexcept {
    return sides_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // Pairs with itself.
  }

  // Joins `queue` with `slot`, gives up the lock and waits. OK: somebody has served the slot.
  absl::Status WaitIn(WaitQueue& queue, void* slot, absl::Status (*status_of)(Turn))
      ABSL_UNLOCK_FUNCTION(lock_);
  // Lets a claimed waiter go, whose slot has been served.
  static void WakeServed(Waiter& waiter) noexcept;

  // The buffer is a ring.
  size_t IndexOfEnd() const noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    const size_t index = first_ + count_;
    return index < capacity_ ? index : index - capacity_;
  }
  void AdvanceFirst() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    if (++first_ == capacity_) first_ = 0;
    --count_;
  }

  const size_t capacity_;
  SpinLock lock_;
  bool is_open_ ABSL_GUARDED_BY(lock_) = true;
  size_t first_ ABSL_GUARDED_BY(lock_) = 0;  // Where the oldest value is.
  size_t count_ ABSL_GUARDED_BY(lock_) = 0;  // How many there are.
  WaitQueue receivers_ ABSL_GUARDED_BY(lock_);
  WaitQueue senders_ ABSL_GUARDED_BY(lock_);

 private:
  // Waiter::amount of a claimed waiter.
  enum Answer : int64_t { kClosed, kServed };

  WaitQueue& QueueOf(ChannelSide side) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return side == ChannelSide::kSender ? senders_ : receivers_;
  }
  Atomic<size_t>& CountOf(ChannelSide side) noexcept {
    return side == ChannelSide::kSender ? sender_count_ : receiver_count_;
  }

  // Handles of either side, and sides that have any. Written by whoever copies or drops a handle;
  // the last drop is ordered after all others.
  Atomic<size_t> sender_count_{1};
  Atomic<size_t> receiver_count_{1};
  Atomic<int> sides_{2};
};

template <typename T>
class ChannelCore final : public ChannelBase {
 public:
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a channel carries values");
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                "a value must not get lost on its way: its move constructor must be noexcept");

  explicit ChannelCore(size_t capacity)
      : ChannelBase(capacity), cells_(std::make_unique_for_overwrite<Cell[]>(capacity)) {}

  // Moves from `value` if it returns OK; else leaves it as it is.
  absl::Status Send(T& value, Patience patience) {
    Waiter* receiver = nullptr;
    lock_.Lock();
    const Turn turn = TrySendLocked(value, receiver);
    if (turn == Turn::kMustWait && patience == Patience::kSome) {
      return WaitIn(senders_, &value, &StatusOfSend);
    }
    lock_.Unlock();
    if (receiver != nullptr) WakeServed(*receiver);
    return turn == Turn::kTaken ? absl::OkStatus() : StatusOfSend(turn);
  }

  absl::StatusOr<T> Receive(Patience patience) {
    absl::StatusOr<T> result;
    Waiter* sender = nullptr;
    lock_.Lock();
    const Turn turn = TryReceiveLocked(result, sender);
    if (turn == Turn::kMustWait && patience == Patience::kSome) {
      // A sender that finds this thread puts its value into `result`.
      const absl::Status status = WaitIn(receivers_, &result, &StatusOfReceive);
      if (!status.ok()) result = status;
      return result;
    }
    lock_.Unlock();
    if (sender != nullptr) WakeServed(*sender);
    if (turn != Turn::kTaken) result = StatusOfReceive(turn);
    return result;
  }

  // One look at the channel. `served`, if it is set, is a claimed waiter that has what it waits
  // for: the caller lets it go when it has given up the lock. Inlined: they are all that a channel
  // does, and a call would cost a tenth of it.
  [[gnu::always_inline]] Turn TrySendLocked(T& value, Waiter*& served) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    if (!is_open_) return Turn::kClosed;
    if (Waiter* const receiver = receivers_.ClaimFront()) {
      static_cast<absl::StatusOr<T>*>(receiver->slot)->emplace(std::move(value));
      served = receiver;
      return Turn::kTaken;
    }
    if (count_ == capacity_) return Turn::kMustWait;
    Push(value);
    return Turn::kTaken;
  }
  [[gnu::always_inline]] Turn TryReceiveLocked(absl::StatusOr<T>& result, Waiter*& served) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    if (count_ > 0) {
      Cell& cell = cells_[first_];
      result.emplace(std::move(cell.value));
      cell.value.~T();
      AdvanceFirst();
      served = senders_.ClaimFront();
      if (served != nullptr) Push(*static_cast<T*>(served->slot));
      return Turn::kTaken;
    }
    if (Waiter* const sender = senders_.ClaimFront()) {
      result.emplace(std::move(*static_cast<T*>(sender->slot)));
      served = sender;
      return Turn::kTaken;
    }
    return is_open_ ? Turn::kMustWait : Turn::kClosed;
  }

  // One handle less; after the last one of its side, the channel is closed.
  void Leave(ChannelSide side) noexcept {
    if (!DropHandle(side)) return;
    Close();
    // Nobody can receive them any more, and nobody else looks at the buffer.
    if (side == ChannelSide::kReceiver) DestroyBuffered();
    if (DropSide()) const std::unique_ptr<ChannelCore> last(this);
  }

 private:
  // Memory for one value, which is made and destroyed by hand. Defaulted, the two functions would
  // be deleted wherever T has its own.
  union Cell {
    Cell() noexcept {}  // NOLINT(modernize-use-equals-default): see above.
    ~Cell() {}          // NOLINT(modernize-use-equals-default): see above.
    T value;
  };

  void Push(T& value) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    ::new (static_cast<void*>(&cells_[IndexOfEnd()].value)) T(std::move(value));
    ++count_;
  }
  // REQUIRES: no other thread looks at the buffer. Values are destroyed without the lock.
  void DestroyBuffered() noexcept ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (count_ > 0) {
      cells_[first_].value.~T();
      AdvanceFirst();
    }
  }

  const std::unique_ptr<Cell[]> cells_;
};

// Counts as one handle of its side.
template <typename T, ChannelSide kSide>
class ChannelHandle {
 public:
  ChannelHandle() = default;
  // Takes over a handle that has been counted.
  explicit ChannelHandle(ChannelCore<T>& core) noexcept : core_(&core) {}
  ChannelHandle(const ChannelHandle& other) noexcept : core_(other.core_) {
    if (core_ != nullptr) core_->AddHandle(kSide);
  }
  ChannelHandle(ChannelHandle&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  ChannelHandle& operator=(ChannelHandle other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~ChannelHandle() {
    if (core_ != nullptr) core_->Leave(kSide);
  }

  // Null if it holds no channel.
  ChannelCore<T>* core_or_null() const noexcept { return core_; }
  ChannelCore<T>& core() const {
    BOBBIN_CHECK(core_ != nullptr, "a channel's end is used that holds no channel");
    return *core_;
  }
  bool is_empty() const noexcept { return core_ == nullptr; }

 private:
  ChannelCore<T>* core_ = nullptr;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_CHANNEL_CORE_H_
