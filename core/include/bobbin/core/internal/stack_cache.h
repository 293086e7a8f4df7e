// SPDX-License-Identifier: Apache-2.0
//
// StackPool: the stacks of one runtime. StackCache: one carrier's warm ones.
//
// A stack is a block of address space in a slab that is reserved, not allocated: only pages that
// were touched cost memory. The lowest page of each block is a guard. Where the kernel has
// MADV_GUARD_INSTALL (6.13) guards leave the mapping whole, and a million guarded stacks are a
// handful of mappings; elsewhere each guard is an mprotect that splits it, so the pool stops at a
// limit below vm.max_map_count and says so. Tops of neighbouring stacks differ by a few cache
// lines, because blocks of a power of two would otherwise put all hot frames into the same cache
// sets.
//
// Sizes. A pool has stacks of one size. That of a runtime also owns the pools of the other sizes
// that threads have asked for, which are powers of two, each with a number: its class. Class 0 is
// the runtime's own size. A carrier has a cache for each class that it has used.
//
// A carrier reuses the stack it used last. Stacks that have been idle for a whole trim period are
// cold: their pages go back to the system, many in one call, and the guards stay.
//
//   Called from   StackPool: any thread. StackCache: its carrier.
//   Suspends      never.
//   Cost          from the cache: a load. A fresh page: a page fault. A guard: 0.2 us in a batch.

#ifndef BOBBIN_CORE_INTERNAL_STACK_CACHE_H_
#define BOBBIN_CORE_INTERNAL_STACK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/task.h>

namespace bobbin::internal {

// How the page below a stack is made to fault.
enum class GuardKind : uint8_t { kMadvise, kMprotect };

class StackPool {
 public:
  struct Options {
    size_t stack_bytes = 0;  // Rounded up to whole pages; at least two.
    bool force_mprotect = false;
    size_t guards_max = 0;  // For mprotect; 0: derived from vm.max_map_count.
    size_t cached_where_scarce = 64;
  };
  explicit StackPool(const Options& options);
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // What a thread can ask for, and how many classes that makes.
  static constexpr size_t kSizeMin = size_t{16} << 10;
  static constexpr size_t kSizeMax = size_t{64} << 20;
  static constexpr size_t kSizeClasses = 13;
  static_assert(kSizeMin << (kSizeClasses - 1) == kSizeMax);
  static constexpr bool IsSize(size_t bytes) noexcept {
    return bytes >= kSizeMin && bytes <= kSizeMax;
  }
  // The class of the smallest stack that has `bytes`. REQUIRES: IsSize(bytes).
  size_t ClassOf(size_t bytes) const noexcept {
    if (bytes == stack_bytes_) return 0;
    size_t size_class = 1;
    while ((kSizeMin << (size_class - 1)) < bytes) ++size_class;
    return (kSizeMin << (size_class - 1)) == stack_bytes_ ? 0 : size_class;
  }
  // The pool of a class, made when it is first asked for. REQUIRES: this is class 0.
  StackPool& OfClass(size_t size_class) noexcept;
  const StackPool& OfTask(const Task& task) noexcept { return OfClass(task.size_class()); }
  // Calls `visit` with this pool and those of all other sizes.
  template <typename Visit>
  void ForEachSize(Visit visit) {
    visit(*this);
    for (const Atomic<StackPool*>& other : others_) {
      if (StackPool* const pool = other.load()) visit(*pool);
    }
  }

  // Threads of this size, when it is one that they asked for, count themselves, so that none is
  // admitted that would not get a stack. False: there is none for one more.
  bool TryClaim() noexcept;
  void Claim() noexcept { claimed_.fetch_add(1); }
  void Unclaim() noexcept { claimed_.fetch_sub(1); }
  size_t claimed() const noexcept { return claimed_.load(); }

  size_t stack_bytes() const noexcept { return stack_bytes_; }
  GuardKind guard_kind() const noexcept { return guard_kind_; }
  // How many stacks the pool can ever have, and whether that is a number to reckon with.
  size_t stacks_max() const noexcept { return stacks_max_; }
  bool is_limited() const noexcept { return guard_kind_ == GuardKind::kMprotect; }
  // How many idle ones a carrier may keep to itself.
  size_t cached_max() const noexcept {
    return is_limited() ? cached_where_scarce_ : std::numeric_limits<size_t>::max();
  }
  size_t guard_bytes() const noexcept { return page_bytes_; }

  // Appends up to `count` stacks, those with pages first; returns how many. Zero: the limit is
  // reached or the system refused.
  size_t Take(size_t count, std::vector<Stack>& out) noexcept;
  // Takes back the last `count` of `stacks`. With `is_cold`, their pages go back to the system.
  void Give(size_t count, std::vector<Stack>& stacks, bool is_cold) noexcept;

  // The first byte above the usable part.
  char* TopOf(Stack stack) const noexcept {
    const size_t color = reinterpret_cast<uintptr_t>(stack.base) / stack_bytes_ % kColors;
    return stack.base + stack_bytes_ - color * kCacheLineBytes;
  }
  // The lowest byte of the usable part, right above the guard.
  char* LimitOf(Stack stack) const noexcept { return stack.base + page_bytes_; }
  // The usable part's size.
  size_t BytesOf(Stack stack) const noexcept {
    return static_cast<size_t>(TopOf(stack) - LimitOf(stack));
  }

  size_t carved() noexcept;
  // Whether the system has refused to give one more.
  bool is_exhausted() const noexcept {
    return is_exhausted_.load(std::memory_order_relaxed);  // relaxed: a hint.
  }

  // What the stacks take: address space, pages that are there, and the most that one has of them.
  struct Usage {
    size_t reserved_bytes = 0;
    size_t resident_bytes = 0;
    size_t deepest_bytes = 0;
  };
  // Asks the kernel about every page; the lock is not held meanwhile.
  Usage Measure();

 private:
  friend struct DebuggerView;
  static constexpr size_t kColors = 16;

  bool ProbeGuardInstall() const noexcept;
  bool AddSlab() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  size_t Carve(size_t count, std::vector<Stack>& out) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool InstallGuards(const Stack* stacks, size_t count) noexcept;

  struct Slab {
    char* base;
    size_t bytes;
  };
  // The stacks carved so far, as ranges of address space.
  std::vector<Slab> CarvedRanges();

  const size_t page_bytes_;
  const size_t stack_bytes_;
  const GuardKind guard_kind_;
  const size_t stacks_max_;
  const size_t cached_where_scarce_;
  Atomic<size_t> claimed_{0};                // Changed by spawners, and where a thread ends.
  Atomic<StackPool*> others_[kSizeClasses];  // Each written once, under the lock.
  Atomic<bool> is_exhausted_{false};         // Written under the lock; read by anyone.
  SpinLock lock_;
  std::vector<std::unique_ptr<StackPool>> made_ ABSL_GUARDED_BY(lock_);  // Those of others_.
  std::vector<Slab> slabs_ ABSL_GUARDED_BY(lock_);
  char* carve_next_ ABSL_GUARDED_BY(lock_) = nullptr;
  char* carve_end_ ABSL_GUARDED_BY(lock_) = nullptr;
  size_t carved_ ABSL_GUARDED_BY(lock_) = 0;
  std::vector<Stack> warm_ ABSL_GUARDED_BY(lock_);
  std::vector<Stack> cold_ ABSL_GUARDED_BY(lock_);
};

class StackCache {
 public:
  explicit StackCache(StackPool& pool) noexcept : pool_(pool), cached_max_(pool.cached_max()) {}
  StackCache(const StackCache&) = delete;
  StackCache& operator=(const StackCache&) = delete;
  ~StackCache();

  StackPool& pool() const noexcept { return pool_; }
  // A stack, or one with a null base when the pool has none left.
  Stack Take() noexcept {
    if (__builtin_expect(stacks_.empty(), 0) && !Refill()) return Stack{};
    const Stack stack = stacks_.back();
    stacks_.pop_back();
    if (stacks_.size() < low_water_) low_water_ = stacks_.size();
    // The next one will be written to, if it is taken: a burst of new threads would wait for each.
    if (!stacks_.empty()) {
      const char* const top = pool_.TopOf(stacks_.back());
      for (size_t line = 1; line <= kStartLines; ++line) {
        __builtin_prefetch(top - line * kCacheLineBytes, 1);
      }
    }
    return stack;
  }
  void Give(Stack stack) noexcept {
    // Others than this one, on which the caller may stand: another carrier would begin on it.
    if (__builtin_expect(stacks_.size() >= cached_max_, 0)) {
      pool_.Give((stacks_.size() + 1) / 2, stacks_, false);
    }
    stacks_.push_back(stack);
  }
  // Give, for where it must not be inlined: then a compiler inlines it nowhere.
  void GiveOutOfLine(Stack stack) noexcept;
  // Makes sure that the next Take succeeds, if it can.
  bool Reserve() noexcept { return !stacks_.empty() || Refill(); }

  // Ends a trim period: of the stacks that were not needed since it began, one of `share` is cold.
  void EndPeriod(size_t share = 2);
  // Gives the pages of up to `batch` cold stacks back to the system. Returns whether there are
  // more.
  bool Trim(size_t batch);
  size_t size() const noexcept { return stacks_.size(); }

 private:
  friend struct DebuggerView;
  // How many lines a thread writes before it waits for the first time; as measured, not exact.
  static constexpr size_t kStartLines = 8;

  bool Refill() noexcept;

  StackPool& pool_;
  const size_t cached_max_;
  std::vector<Stack> stacks_;  // The one used last is at the back.
  size_t low_water_ = 0;       // The fewest since the period began: the cold ones are at the front.
  std::vector<Stack> cold_;    // Still with pages.
  size_t taken_ = 0;           // From the pool, ever.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_STACK_CACHE_H_
