// SPDX-License-Identifier: Apache-2.0
//
// Channel: a bounded queue with two ends, Sender and Receiver; MakeChannel makes both.
//
// The ends are handles: copy them, move them, keep them where they are needed. A function that has
// only a Receiver cannot send. A full channel makes senders wait, so the slower side sets the pace;
// there is no unbounded channel. With capacity 0 a Send returns when a receiver has the value. To
// wait for several channels at once use Select.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Send while the channel is full, Receive while it is empty; their Until twins
//                 likewise.
//   Cancellation  An operation that would have to wait returns CANCELLED or DEADLINE_EXCEEDED. One
//                 that need not wait succeeds, also in a thread that is to stop; a range-for ends
//                 there. A value that was handed over wins: the Receive returns it, the Send says
//                 OK.
//   Errors        Send: FAILED_PRECONDITION once the channel is closed. Receive: OUT_OF_RANGE once
//                 it is closed and empty. TrySend and TryReceive: UNAVAILABLE when they would have
//                 to wait.
//   Order         First in, first out; waiting senders and receivers are served in the order they
//                 came.
//   Memory        A Send happens before the Receive that gets its value.
//   Lifetime      The channel lives as long as an end of it. It is closed by Close, or when its
//                 last Sender or its last Receiver is destroyed. What is buffered can still be
//                 received; with the last Receiver it is destroyed.
//   Cost          A spin lock. To a waiting receiver the value goes directly, without the buffer.
//                 Nothing is allocated after MakeChannel.
//
// No value gets lost on the way: a Send that does not return OK has not touched it. The move
// constructor of T must be noexcept and must not wait; it may run while a spin lock is held.
//
// Example:
//   auto [sender, receiver] = MakeChannel<Photo>({.capacity = 16});
//   group.Spawn([in = receiver] {
//     for (Photo& photo : in) Shrink(photo);  // Ends when the channel is closed and empty.
//   });
//   for (Photo& photo : photos) BOBBIN_RETURN_IF_ERROR(sender.Send(std::move(photo)));
//   sender.Close();

#ifndef BOBBIN_CORE_CHANNEL_H_
#define BOBBIN_CORE_CHANNEL_H_

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/channel_core.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin {

namespace internal {
struct ChannelAccess;
}  // namespace internal

// The memory for the buffer is allocated at once: this keeps a slip from asking for all there is.
inline constexpr size_t kChannelCapacityMax = size_t{1} << 28;

struct ChannelOptions {
  // How many values may wait for a receiver. 0: none; each Send waits for its receiver.
  size_t capacity = 0;
};

// The end that values go into.
template <typename T>
class Sender {
 public:
  // Holds no channel, until one is assigned.
  Sender() = default;
  // For MakeChannel.
  explicit Sender(internal::ChannelCore<T>& core) : handle_(core) {}

  // Waits until there is room, or a receiver, and moves `value` there. `value` is as before if it
  // does not return OK.
  [[nodiscard]] absl::Status Send(T&& value) const {
    return handle_.core().Send(value, internal::Patience::kSome);
  }
  // Sends a copy.
  [[nodiscard]] absl::Status Send(const T& value) const requires std::is_copy_constructible_v<T> {
    T copy(value);
    return Send(std::move(copy));
  }

  // The same as the first, until `deadline` at most.
  [[nodiscard]] absl::Status SendUntil(T&& value, Deadline deadline) const {
    internal::ChannelCore<T>& core = handle_.core();
    absl::Status tried = core.Send(value, internal::Patience::kNone);
    if (!absl::IsUnavailable(tried)) return tried;
    const DeadlineScope scope(deadline);
    return core.Send(value, internal::Patience::kSome);
  }

  // Moves `value` if there is room or a receiver waits; never suspends.
  [[nodiscard]] absl::Status TrySend(T&& value) const {
    return handle_.core().Send(value, internal::Patience::kNone);
  }

  // Ends the channel: every other Send, also one that waits, returns FAILED_PRECONDITION, and
  // receivers get what is left. Closing it again does nothing.
  void Close() const { handle_.core().Close(); }

  // Whether it holds a channel: not after it was moved from.
  explicit operator bool() const { return !handle_.is_empty(); }

 private:
  friend struct internal::ChannelAccess;
  internal::ChannelHandle<T, internal::ChannelSide::kSender> handle_;
};

// The end that values come out of.
template <typename T>
class Receiver {
 public:
  class Iterator;

  // Holds no channel, until one is assigned.
  Receiver() = default;
  // For MakeChannel.
  explicit Receiver(internal::ChannelCore<T>& core) : handle_(core) {}

  // Waits until there is a value and takes the oldest.
  [[nodiscard]] absl::StatusOr<T> Receive() const {
    return handle_.core().Receive(internal::Patience::kSome);
  }

  // The same, until `deadline` at most.
  [[nodiscard]] absl::StatusOr<T> ReceiveUntil(Deadline deadline) const {
    absl::StatusOr<T> tried = TryReceive();
    if (!absl::IsUnavailable(tried.status())) return tried;
    const DeadlineScope scope(deadline);
    return Receive();
  }

  // Takes the oldest value if there is one; never suspends.
  [[nodiscard]] absl::StatusOr<T> TryReceive() const {
    return handle_.core().Receive(internal::Patience::kNone);
  }

  // For range-for: the values as they come, each until the next one is asked for. Ends when the
  // channel is closed and empty, or when the thread is to stop (see CheckStop), even if there are
  // values left.
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return std::default_sentinel; }

  // Whether it holds a channel: not after it was moved from.
  explicit operator bool() const { return !handle_.is_empty(); }

 private:
  friend struct internal::ChannelAccess;
  internal::ChannelHandle<T, internal::ChannelSide::kReceiver> handle_;
};

// What range-for uses: the value that was received last.
template <typename T>
class Receiver<T>::Iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(const Receiver& receiver) : receiver_(&receiver) { ++*this; }

  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  Iterator& operator++() {
    // Nothing is held while waiting for the next.
    value_.reset();
    // Who has a deadline looks at the clock, for a loop that never waits would not hear of it.
    internal::Thread& self = internal::Current();
    if (self.ShouldStop() || (self.governing() != nullptr && !CheckStop().ok())) return *this;
    absl::StatusOr<T> received = receiver_->Receive();
    if (received.ok()) value_.emplace(*std::move(received));
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& iterator, std::default_sentinel_t) {
    return !iterator.value_.has_value();
  }

 private:
  const Receiver* receiver_;
  std::optional<T> value_;
};

// Both ends of one channel.
template <typename T>
struct ChannelEnds {
  Sender<T> sender;
  Receiver<T> receiver;
};

// Makes a channel. REQUIRES: the capacity is at most kChannelCapacityMax.
template <typename T>
ChannelEnds<T> MakeChannel(ChannelOptions options = {}) {
  // Each side owns it through its handles; the last one frees it.
  internal::ChannelCore<T>& core =
      *std::make_unique<internal::ChannelCore<T>>(options.capacity).release();
  return {Sender<T>(core), Receiver<T>(core)};
}

}  // namespace bobbin

#endif  // BOBBIN_CORE_CHANNEL_H_
