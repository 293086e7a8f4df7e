// SPDX-License-Identifier: Apache-2.0
//
// Semaphore: a count of permits; Acquire takes some, Release gives them back. SemaphorePermit:
// gives them back at the end of a scope.
//
// Use it to bound how many threads are inside a section (connections, buffers, requests). To
// protect data use Mutex; to hand over values use Channel.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Acquire and AcquireUntil, while too few permits are free or others wait already.
//   Cancellation  An acquire that would have to wait returns CANCELLED or DEADLINE_EXCEEDED and
//                 then holds no permit. Permits that are free are taken also by a thread that is to
//                 stop.
//   Order         First come, first served. A large request at the head holds back the small ones
//                 behind it, so that it cannot starve; when it gives up, those that fit go on.
//   Memory        A Release happens before the Acquire that it lets through.
//   Lifetime      May be destroyed by a thread that an acquire let through, if no other thread is
//                 in one: a Release does not touch it once others can have its permits. Destroying
//                 it with waiters aborts.
//   Cost          Uncontended: one compare-exchange each way. Contended: a spin lock and a park.
//
// Example:
//   Semaphore slots(16);
//   BOBBIN_ASSIGN_OR_RETURN(const SemaphorePermit slot, slots.AcquirePermit());

#ifndef BOBBIN_CORE_SEMAPHORE_H_
#define BOBBIN_CORE_SEMAPHORE_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin {

namespace internal {
class SemaphorePlace;
}  // namespace internal

class SemaphorePermit;

class Semaphore {
 public:
  // Leaves room for the word's two flags, and makes sums of permits safe from overflow.
  static constexpr int64_t kPermitsMax = int64_t{1} << 40;

  // Starts with `permits` free. REQUIRES: 0 <= permits <= kPermitsMax.
  explicit Semaphore(int64_t permits);
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore();

  // Waits until `permits` are free and takes them. REQUIRES: 0 < permits <= kPermitsMax.
  [[nodiscard]] absl::Status Acquire(int64_t permits = 1) {
    if (__builtin_expect(TryAcquire(permits), 1)) return absl::OkStatus();
    return AcquireSlow(permits);
  }

  // The same, until `deadline` at most.
  [[nodiscard]] absl::Status AcquireUntil(int64_t permits, Deadline deadline);

  // As Acquire; the permits go back when what is returned ends.
  [[nodiscard]] absl::StatusOr<SemaphorePermit> AcquirePermit(int64_t permits = 1);

  // Takes `permits` if they are free and nobody waits; never suspends.
  [[nodiscard]] bool TryAcquire(int64_t permits = 1) {
    CheckAmount(permits);
    internal::Backoff backoff;
    Word word = word_.Load();
    while (FreeOf(word) >= permits && (word & kHasWaiters) == 0) {
      if ((word & kLocked) != 0) {
        backoff.Pause();
      } else if (word_.TryChange(word, word - WordOf(permits))) {
        return true;
      }
      word = word_.Load();
    }
    return false;
  }

  // Gives `permits` back and unparks those whose turn it now is. REQUIRES: 0 < permits, and not
  // more than kPermitsMax are free afterwards.
  void Release(int64_t permits = 1) {
    CheckAmount(permits);
    Word word = word_.Load();
    while ((word & (kLocked | kHasWaiters)) == 0) {
      CheckFree(FreeOf(word) + permits);
      if (word_.TryChange(word, word + WordOf(permits))) return;
      word = word_.Load();
    }
    ReleaseSlow(permits);
  }

  // How many permits are free at this moment. For people and tests: it is old when it is read.
  int64_t available() const { return FreeOf(word_.Load()); }

 private:
  friend class internal::SemaphorePlace;

  // The word: the free permits, above two flags.
  using Word = uint64_t;
  static constexpr Word kLocked = 1;
  static constexpr Word kHasWaiters = 2;
  static constexpr int kFlagBits = 2;

  static constexpr Word WordOf(int64_t permits) { return static_cast<Word>(permits) << kFlagBits; }
  static constexpr int64_t FreeOf(Word word) { return static_cast<int64_t>(word >> kFlagBits); }
  static void CheckAmount(int64_t permits) {
    BOBBIN_CHECK(permits > 0 && permits <= kPermitsMax, "so many permits cannot be asked for");
  }
  static void CheckFree(int64_t permits) {
    BOBBIN_CHECK(permits <= kPermitsMax, "more permits are given back than a semaphore can hold");
  }

  absl::Status AcquireSlow(int64_t permits);
  void ReleaseSlow(int64_t permits);
  // Takes out a waiter whose wait has ended without its permits.
  void Forget(internal::Waiter& waiter);
  // With the lock held: gives `free` permits to those whose turn it is, and returns the word to
  // unlock with.
  Word Grant(int64_t free, internal::WakeList& woken);

  // Invariant, when unlocked: with kHasWaiters, the one at the head wants more than is free, or has
  // been interrupted and is about to leave.
  internal::WordLock<Word, kLocked> word_;
  internal::WaitQueue waiters_;  // Guarded by the lock in word_. Waiter::amount: permits wanted.
};

// Permits that go back when it ends.
class [[nodiscard]] SemaphorePermit {
 public:
  // Holds none.
  SemaphorePermit() = default;
  // Takes over `permits` that the caller has acquired, by TryAcquire or AcquireUntil.
  explicit SemaphorePermit(Semaphore& semaphore, int64_t permits = 1)
      : semaphore_(&semaphore), permits_(permits) {}
  SemaphorePermit(SemaphorePermit&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)),
        permits_(std::exchange(other.permits_, 0)) {}
  SemaphorePermit& operator=(SemaphorePermit&& other) noexcept {
    if (this == &other) return *this;
    Release();
    semaphore_ = std::exchange(other.semaphore_, nullptr);
    permits_ = std::exchange(other.permits_, 0);
    return *this;
  }
  ~SemaphorePermit() { Release(); }

  // Gives them back now; does nothing if it holds none.
  void Release() {
    if (semaphore_ != nullptr) {
      std::exchange(semaphore_, nullptr)->Release(std::exchange(permits_, 0));
    }
  }

  // How many it holds.
  int64_t permits() const { return permits_; }

 private:
  Semaphore* semaphore_ = nullptr;  // Null: holds none.
  int64_t permits_ = 0;
};

inline absl::StatusOr<SemaphorePermit> Semaphore::AcquirePermit(int64_t permits) {
  absl::Status acquired = Acquire(permits);
  if (!acquired.ok()) return acquired;
  return SemaphorePermit(*this, permits);
}

}  // namespace bobbin

#endif  // BOBBIN_CORE_SEMAPHORE_H_
