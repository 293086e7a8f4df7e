// SPDX-License-Identifier: Apache-2.0
//
// TimerWheel: the deadlines of one carrier, to the tick. TimerHeap: the few that want better.
//
// The wheel has six levels of 64 slots. A slot of level 0 is one tick (2^20 ns, about a
// millisecond); a slot of level n covers 64^n ticks. A deadline goes to the level at which its tick
// first differs from the present one, and moves down a level each time the wheel reaches its slot.
// Arming and disarming are a list operation; a 64-bit word for each level says which slots are
// occupied, so that the next one is found without a search. Deadlines round up: nothing expires
// early. Most timers here are deadlines of operations that end in time, so disarming must be as
// cheap as arming.
//
// After G. Varghese and T. Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987).
//
//   Called from   the carrier.
//   Suspends      never.
//   Cost          Wheel: a few ns to arm, to disarm, to expire. Heap: logarithmic, to the
//                 nanosecond.

#ifndef BOBBIN_SCHED_SRC_TIMER_WHEEL_H_
#define BOBBIN_SCHED_SRC_TIMER_WHEEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <bobbin/core/internal/timer_node.h>

namespace bobbin::internal {

class TimerWheel {
 public:
  static constexpr int kTickBits = 20;
  static constexpr int64_t kNever = INT64_MAX;

  explicit TimerWheel(int64_t now_nanoseconds) noexcept : tick_(now_nanoseconds >> kTickBits) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // REQUIRES: `node` is unarmed.
  void Add(TimerNode& node) noexcept;
  void Remove(TimerNode& node) noexcept;

  // A node whose time has come by `now`, taken out; null when there is none left. Call until null.
  TimerNode* PopExpired(int64_t now_nanoseconds) noexcept;

  // When to look again: never later than the next expiry, and no earlier than needed but for
  // deadlines far away, which are looked at when they move down a level. kNever when empty.
  int64_t NextWake() const noexcept;
  size_t size() const noexcept { return size_; }

 private:
  static constexpr int kLevelBits = 6;
  static constexpr int kLevels = 6;
  static constexpr int kSlots = 1 << kLevelBits;

  struct Next {
    int level;
    int slot;
    int64_t tick;  // When the wheel reaches that slot.
  };
  // The slot that is reached first; false when empty.
  bool FindNext(Next& next) const noexcept;
  void Link(TimerNode& node, int level, int slot) noexcept;

  int64_t tick_;  // The present: all earlier ticks have been dealt with.
  size_t size_ = 0;
  TimerNode* expired_ = nullptr;  // Of the slot being dealt with.
  std::array<uint64_t, kLevels> occupied_{};
  std::array<TimerNode*, kLevels * kSlots> slots_{};
};

class TimerHeap {
 public:
  void Add(TimerNode& node);
  void Remove(TimerNode& node) noexcept;
  TimerNode* PopExpired(int64_t now_nanoseconds) noexcept;
  int64_t NextWake() const noexcept {
    return nodes_.empty() ? TimerWheel::kNever : nodes_.front()->deadline;
  }
  size_t size() const noexcept { return nodes_.size(); }

 private:
  static constexpr size_t kChildren = 4;
  void Put(size_t index, TimerNode& node) noexcept;
  void SiftUp(size_t index, TimerNode& node) noexcept;
  void SiftDown(size_t index, TimerNode& node) noexcept;

  std::vector<TimerNode*> nodes_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_TIMER_WHEEL_H_
