// SPDX-License-Identifier: Apache-2.0
//
// TaskDeque: virtual threads that any carrier may take: of those that have not begun to run, or of
// those that go on anywhere, the ones that are ready on one carrier.
//
// Two ends. The owner pushes at the young end; any other carrier steals at the old end: the oldest
// is the one that has waited longest, and of new ones usually the root of the most work. Of new
// ones the owner takes the newest, which keeps a tree of a million spawns in a handful of stacks,
// and now and then the oldest, so that this does not wait for ever; of ready ones, the oldest.
//
// After D. Chase and Y. Lev, "Dynamic circular work-stealing deque" (SPAA 2005), with the orderings
// of N. Le et al., "Correct and efficient work-stealing for weak memory models" (PPoPP 2013), in
// which the two fences are replaced by sequentially consistent accesses of the same two words.
//
// Why no task is lost or taken twice. Only the last task is contended. The owner announces its
// claim by lowering `young`, then reads `old`; a thief reads `old`, then `young`, then claims by a
// compare-exchange of `old`. Both pairs are sequentially consistent: either the thief sees the
// lowered `young` and finds the deque empty, or the owner sees that it is down to the last one and
// enters the same compare-exchange.
//
// A full array is replaced by one of twice the size; the old one is kept, for a thief may be
// reading it, and freed with the deque: in all at most as much again.
//
//   Called from   Push, TakeNewest, TakeOldest: the owner's OS thread. Steal, size: any carrier.
//   Suspends      never.
//   Cost          Push: a store. TakeNewest: one exchange where there are other carriers. Steal:
//                 one compare-exchange.

#ifndef BOBBIN_SCHED_SRC_TASK_DEQUE_H_
#define BOBBIN_SCHED_SRC_TASK_DEQUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/task.h>

namespace bobbin::internal {

class TaskDeque {
 public:
  // `is_shared`: whether anybody else may steal.
  explicit TaskDeque(bool is_shared);
  TaskDeque(const TaskDeque&) = delete;
  TaskDeque& operator=(const TaskDeque&) = delete;

  // Returns how many there are now, about.
  size_t Push(Task& task);
  Task* TakeNewest() noexcept;
  Task* TakeOldest() noexcept { return Steal(); }
  // The oldest, or null when there is none or another thief was faster.
  Task* Steal() noexcept;

  // How many there are, about.
  size_t size() const noexcept {
    const int64_t young = young_.load(std::memory_order_relaxed);  // relaxed: an estimate.
    const int64_t old = old_.load(std::memory_order_relaxed);      // relaxed: an estimate.
    return young > old ? static_cast<size_t>(young - old) : 0;
  }
  // A number that the oldest one keeps as long as it is here.
  int64_t oldest() const noexcept {
    return old_.load(std::memory_order_relaxed);  // relaxed: an estimate.
  }
  // Whether there is none, for a carrier that is about to sleep.
  bool IsEmptyOrdered() const noexcept { return young_.load() <= old_.load(); }

 private:
  // A power of two of slots, indexed modulo its size.
  struct Array {
    explicit Array(size_t slot_count)
        : mask(static_cast<int64_t>(slot_count) - 1),
          slots(std::make_unique<Atomic<Task*>[]>(slot_count)) {}
    Atomic<Task*>& At(int64_t index) noexcept { return slots[static_cast<size_t>(index & mask)]; }
    const int64_t mask;
    // Written by the owner; read by the owner and by thieves.
    const std::unique_ptr<Atomic<Task*>[]> slots;
  };
  static constexpr size_t kSlotsMin = 256;

  Array& Grow(int64_t old, int64_t young);

  const bool is_shared_;
  // The young end: one past the newest. Written by the owner.
  alignas(kCacheLineBytes) Atomic<int64_t> young_{0};
  Atomic<Array*> array_;                        // Written by the owner; read by thieves.
  std::vector<std::unique_ptr<Array>> arrays_;  // The owner's: all there ever were.
  // The old end. Written by whoever takes there.
  alignas(kCacheLineBytes) Atomic<int64_t> old_{0};
};

inline TaskDeque::TaskDeque(bool is_shared) : is_shared_(is_shared) {
  arrays_.push_back(std::make_unique<Array>(kSlotsMin));
  array_.store(arrays_.back().get());
}

inline size_t TaskDeque::Push(Task& task) {
  const int64_t young = young_.load(std::memory_order_relaxed);  // relaxed: own.
  // Pairs with the exchange in Steal.
  const int64_t old = old_.load(std::memory_order_acquire);
  Array* array = array_.load(std::memory_order_relaxed);  // relaxed: own.
  if (__builtin_expect(young - old > array->mask, 0)) array = &Grow(old, young);
  array->At(young).store(&task, std::memory_order_relaxed);  // relaxed: published by the next line.
  young_.store(young + 1, std::memory_order_release);        // Pairs with the load in Steal.
  return static_cast<size_t>(young + 1 - old);
}

inline Task* TaskDeque::TakeNewest() noexcept {
  const int64_t young = young_.load(std::memory_order_relaxed) - 1;  // relaxed: own.
  // relaxed: it only grows, so empty is certain.
  int64_t old = old_.load(std::memory_order_relaxed);
  if (young < old) return nullptr;
  Array& array = *array_.load(std::memory_order_relaxed);  // relaxed: own.
  if (!is_shared_) {
    young_.store(young, std::memory_order_relaxed);          // relaxed: nobody else looks.
    return array.At(young).load(std::memory_order_relaxed);  // relaxed: own.
  }
  young_.store(young);
  old = old_.load();
  if (old > young) {
    young_.store(young + 1, std::memory_order_relaxed);  // relaxed: a thief has emptied it.
    return nullptr;
  }
  Task* const task = array.At(young).load(std::memory_order_relaxed);  // relaxed: own.
  if (old < young) return task;
  // The last one: whoever moves `old` has it.
  const bool is_mine = old_.compare_exchange_strong(old, old + 1);
  young_.store(young + 1, std::memory_order_relaxed);  // relaxed: empty either way.
  return is_mine ? task : nullptr;
}

inline Task* TaskDeque::Steal() noexcept {
  int64_t old = old_.load();
  if (old >= young_.load()) return nullptr;
  // Pairs with the store in Grow.
  Array& array = *array_.load(std::memory_order_acquire);
  // relaxed: the exchange decides.
  Task* const task = array.At(old).load(std::memory_order_relaxed);
  return old_.compare_exchange_strong(old, old + 1) ? task : nullptr;
}

inline TaskDeque::Array& TaskDeque::Grow(int64_t old, int64_t young) {
  Array& from = *arrays_.back();
  auto grown = std::make_unique<Array>(2 * static_cast<size_t>(from.mask + 1));
  for (int64_t i = old; i < young; ++i) {
    // relaxed: published by the store below.
    grown->At(i).store(from.At(i).load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  arrays_.push_back(std::move(grown));
  array_.store(arrays_.back().get(), std::memory_order_release);  // Pairs with the load in Steal.
  return *arrays_.back();
}

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_TASK_DEQUE_H_
