// SPDX-License-Identifier: Apache-2.0
//
// TimerNode: one deadline of one thread, as a link in its carrier's timers.
//
// It lives on the stack of the thread it will interrupt. Only that thread and its carrier, which
// are the same OS thread, ever touch it: hence no atomics.
//
//   Called from   the owning thread and its carrier.
//   Suspends      never.

#ifndef BOBBIN_CORE_INTERNAL_TIMER_NODE_H_
#define BOBBIN_CORE_INTERNAL_TIMER_NODE_H_

#include <cstdint>

namespace bobbin::internal {

class Thread;

struct TimerNode {
  enum class Place : uint8_t { kUnarmed, kWheel, kHeap };

  TimerNode(Thread& owner, int64_t deadline_nanoseconds)
      : thread(&owner), deadline(deadline_nanoseconds) {}
  TimerNode(const TimerNode&) = delete;
  TimerNode& operator=(const TimerNode&) = delete;

  Thread* const thread;
  const int64_t deadline;  // On the monotonic clock, in nanoseconds.
  TimerNode* previous = nullptr;
  TimerNode* next = nullptr;
  uint32_t slot = 0;  // Where it is: the wheel's slot, or the index in the heap.
  Place place = Place::kUnarmed;
  bool has_expired = false;
  bool is_precise = false;  // Wants better than the wheel's tick.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_TIMER_NODE_H_
