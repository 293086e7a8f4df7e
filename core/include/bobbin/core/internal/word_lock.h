// SPDX-License-Identifier: Apache-2.0
//
// WordLock: a value and a spin lock in one word, so that giving up the lock and publishing the
// value are one store, the last touch of the object.
//
// Primitives that may be destroyed by whoever sees their last value need exactly that: with a
// separate lock, a thread that saw "done" on a fast path could free the object while the one that
// made it so is still unlocking it.
//
//   Called from   any thread; the holder must not wait.
//   Suspends      never.
//   Cost          Lock: one read-modify-write. Unlock: one store.

#ifndef BOBBIN_CORE_INTERNAL_WORD_LOCK_H_
#define BOBBIN_CORE_INTERNAL_WORD_LOCK_H_

#include <bobbin/core/check.h>
#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

// Spins politely: pauses, and gives the time slice away when the holder seems to have lost its own.
class Backoff {
 public:
  void Pause() noexcept;

 private:
  int rounds_ = 0;
};

// Whether this process has more than one CPU, so that it can help to look again; a thread that is
// bound to one has the others, too.
bool OthersRunMeanwhile() noexcept;

// `kLockBit` is the bit of `Word` that the value never uses.
template <typename Word, Word kLockBit>
class WordLock {
 public:
  explicit WordLock(Word value) noexcept : word_(value) {}
  WordLock(const WordLock&) = delete;
  WordLock& operator=(const WordLock&) = delete;

  // Takes the lock and returns the value.
  Word Lock() noexcept {
    // Pairs with the release in Unlock.
    Word word = word_.fetch_or(kLockBit, std::memory_order_acquire);
    if (__builtin_expect((word & kLockBit) != 0, 0)) word = LockSlow();
    return word;
  }
  // Takes the lock only if the value is still `value`.
  [[nodiscard]] bool TryLockIf(Word value) noexcept {
    // Pairs with the release in Unlock.
    return word_.compare_exchange_strong(value, value | kLockBit, std::memory_order_acquire,
                                         std::memory_order_relaxed);  // relaxed: nothing was taken.
  }
  // Publishes `value` and gives up the lock. The object is not touched after this.
  void Unlock(Word value) noexcept {
    BOBBIN_DCHECK((value & kLockBit) == 0, "the value uses the lock's bit");
    // Pairs with the acquires in Lock, TryLockIf, TryChange and Load.
    word_.store(value, std::memory_order_release);
  }

  // The same, with the value as it is.
  void Unlock() noexcept { Unlock(ValueOf(Load())); }
  // With the lock held: the value to go on with.
  void SetLocked(Word value) noexcept {
    // relaxed: Unlock publishes it.
    word_.store(value | kLockBit, std::memory_order_relaxed);
  }

  // Without the lock: from `from` to `to`, if the value is `from` and nobody holds the lock.
  [[nodiscard]] bool TryChange(Word from, Word to) noexcept {
    // The acquire and the release pair with those of Lock and Unlock.
    return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                         // relaxed: the caller looks anew.
                                         std::memory_order_relaxed);
  }
  // The value, perhaps with the lock bit.
  Word Load() const noexcept {
    return word_.load(std::memory_order_acquire);  // Pairs with the release in Unlock.
  }
  static constexpr bool IsLocked(Word word) noexcept { return (word & kLockBit) != 0; }
  static constexpr Word ValueOf(Word word) noexcept { return word & ~kLockBit; }

  // For an object that nobody else sees yet.
  void Reset(Word value) noexcept {
    word_.store(value, std::memory_order_relaxed);  // relaxed: private.
  }

 private:
  [[gnu::noinline]] Word LockSlow() noexcept {
    Backoff backoff;
    while (true) {
      Word word = word_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
      // Pairs with the release in Unlock.
      if (!IsLocked(word) &&
          word_.compare_exchange_weak(word, word | kLockBit, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return word;
      }
      backoff.Pause();
    }
  }

  Atomic<Word> word_;  // Written by whoever holds the lock, or changes it without.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_WORD_LOCK_H_
