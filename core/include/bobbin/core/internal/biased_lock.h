// SPDX-License-Identifier: Apache-2.0
//
// BiasedLock: a spin lock that one OS thread, its owner, takes with two stores, as long as nobody
// else wants it.
//
// States
//
//   biased    the owner enters by is_inside_; nobody else
//   revoked   whoever wants it, the owner too, takes the spin lock
//
// Transitions
//
//   biased  -> revoked   Lock         who is not the owner, with the spin lock
//   revoked -> biased    LockAsOwner  the owner, with the spin lock, when it has taken it so often
//                                     without anybody else's doing so: from the next time on
//
// Why only one is inside. Two with the spin lock exclude each other. Between the owner without it
// and another one stand, in this order,
//
//      owner                               another one, with the spin lock
//      O1  is_inside_ = true               R1  is_revoked_ = true
//          LightFence                          HeavyFence
//      O2  read is_revoked_                R2  read is_inside_, until it is false
//
//   so that O2 sees R1, and the owner leaves again; or R2 sees O1, and waits until it has left.
//   Where it was revoked before, R1 and the fence were somebody else's, whom the spin lock has
//   ordered before this one, and the owner has not taken that back.
//
// Where there is no heavy fence it is always revoked.
//
//   Called from   ...AsOwner: the owner. The rest: any thread, the owner outside of it among them.
//   Suspends      never; its holder must not wait.
//   Cost          the owner's: two stores and a load; else that of a spin lock, and at most one
//                 HeavyFence for as many turns of the owner as it takes to be biased again.

#ifndef BOBBIN_CORE_INTERNAL_BIASED_LOCK_H_
#define BOBBIN_CORE_INTERNAL_BIASED_LOCK_H_

#include <cstdint>
#include <limits>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/internal/asymmetric_fence.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/spin_lock.h>

namespace bobbin::internal {

class ABSL_LOCKABLE BiasedLock {
 public:
  BiasedLock() = default;
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  // Lets it have an owner. Called before anybody uses it. REQUIRES: HasHeavyFence().
  void AllowBias() noexcept { may_be_biased_ = true; }

  // --- The owner's.

  // Only if it is biased: true, and LeaveAsOwner ends it.
  [[nodiscard]] bool TryEnterAsOwner() noexcept ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    is_inside_.store(true, std::memory_order_relaxed);  // relaxed: the fence orders it.
    LightFence();
    // relaxed: the fence orders it. That it is false, only the owner writes, who has seen by then
    // what others had done.
    if (__builtin_expect(!is_revoked_.load(std::memory_order_relaxed), 1)) return true;
    is_inside_.store(false, std::memory_order_release);  // Pairs with AwaitOwner.
    return false;
  }
  void LeaveAsOwner() noexcept ABSL_UNLOCK_FUNCTION() {
    is_inside_.store(false, std::memory_order_release);  // Pairs with AwaitOwner.
  }
  // Where it is not; Unlock ends it.
  void LockAsOwner() noexcept ABSL_EXCLUSIVE_LOCK_FUNCTION();

  // --- Anybody's.

  void Lock() noexcept ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (__builtin_expect(LockWithoutFence(), 0)) HeavyFence();
    AwaitOwner();
  }
  // The same in three parts, for who takes several: LockWithoutFence of all; a HeavyFence, if one
  // of them has returned true; AwaitOwner of all.
  bool LockWithoutFence() noexcept ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    lock_.Lock();
    uses_ = 0;
    // relaxed: changes under the lock.
    if (__builtin_expect(is_revoked_.load(std::memory_order_relaxed), 1)) return false;
    is_revoked_.store(true, std::memory_order_relaxed);  // relaxed: the heavy fence orders it.
    return true;
  }
  void AwaitOwner() noexcept {
    // Pairs with the releases of the owner.
    if (__builtin_expect(is_inside_.load(std::memory_order_acquire), 0)) AwaitOwnerSlow();
  }
  void Unlock() noexcept ABSL_UNLOCK_FUNCTION() { lock_.Unlock(); }

 private:
  // How often the owner takes it as a spin lock before it is biased again: as long as the fence
  // takes. Not tuned. A simulation is to meet both states often.
#if defined(BOBBIN_SIMULATED)
  static constexpr uint32_t kUsesToBias = 2;
#else
  static constexpr uint32_t kUsesToBias = 256;
#endif

  void AwaitOwnerSlow() noexcept;

  Atomic<bool> is_inside_{false};  // Written by the owner; read by whoever has the spin lock.
  bool may_be_biased_ = false;     // Never changes.
  // Written with the spin lock; read by the owner.
  Atomic<bool> is_revoked_{true};
  SpinLock lock_;
  uint32_t uses_ = 0;  // Guarded by lock_: the owner's, since somebody else's.
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_BIASED_LOCK_H_
