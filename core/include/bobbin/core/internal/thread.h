// SPDX-License-Identifier: Apache-2.0
//
// Thread: what the four roles have in common - a state to wait in, a deadline, a request to stop.
//
// Every primitive is written against this class, so that a virtual thread, a platform thread and a
// foreign thread can meet at one mutex. A virtual thread's is the first cache line of its Task; an
// OS thread's is its OsThread; a carrier has one, too, so that "who runs here?" always has an
// answer.
//
// How a request to stop finds a virtual thread that waits. Cancel sets a flag, then posts a
// message to the carrier the thread belongs to, and that carrier, between two runs, ends the wait.
// So the thread itself needs no fence between "look at the flag" and "begin to wait": the carrier
// handles the message after the thread has switched away. The one gap is a thread that has no
// carrier when it is cancelled: one that has not begun, or a migrating one that is ready. Once it
// has one, there is a read-modify-write of the flag: its first check, or that of the carrier that
// took it. Cancel's exchange comes either before it (then the thread's next check sees the flag)
// or after it (then Cancel sees the carrier that was set before). A message to a carrier that the
// thread has left since was sent before the flag was modified there, so it may be dropped.
//
// An OS thread is woken by Cancel, looks at the flag, and ends its wait itself.
//
// Whom a thread belongs to. A carrier writes itself into `dispatcher_`, and takes itself out again;
// nobody else overwrites it while the thread lives. So a carrier always knows for certain which
// threads are its own.
//
//   Called from   the thread itself, unless said otherwise.
//   Suspends      Park.

#ifndef BOBBIN_CORE_INTERNAL_THREAD_H_
#define BOBBIN_CORE_INTERNAL_THREAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

#include <bobbin/core/check.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/timer_node.h>
#include <bobbin/core/internal/wait_reason.h>
#include <bobbin/core/internal/wait_state.h>
#include <bobbin/core/role.h>

namespace bobbin::internal {

inline constexpr size_t kCacheLineBytes = 64;

class Dispatcher;
class Task;

// One block of stack memory, named by its low end; null is none.
struct Stack {
  char* base = nullptr;
};

// What a carrier asks of a wait for the kernel that is to end early: request it, and keep waiting.
// What such a wait parks with is one of these.
class KernelWait : public WaitReason {
 public:
  virtual void RequestStop(Wake cause) noexcept = 0;

 protected:
  ~KernelWait() = default;
};

class alignas(kCacheLineBytes) Thread {
 public:
  Thread(Role role, Dispatcher* dispatcher) noexcept : dispatcher_(dispatcher), role_(role) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  Role role() const noexcept { return role_; }
  WaitState& state() noexcept { return state_; }
  const WaitState& state() const noexcept { return state_; }

  // The carrier it belongs to; null for OS threads, for virtual threads that have not begun, and
  // for migrating ones that are ready.
  Dispatcher* dispatcher() const noexcept {
    return dispatcher_.load(std::memory_order_relaxed);  // relaxed: Cancel orders it, see above.
  }

  // A small number for its carrier, by which two threads see that they cannot run at the same time;
  // zero for OS threads and for virtual threads that have not begun. Of a migrating thread that is
  // ready, the last one's.
  uint8_t carrier_tag() const noexcept {
    return carrier_tag_.load(std::memory_order_relaxed);  // relaxed: an estimate.
  }
  // Whether it may go on on another carrier after each wait. Set before it is launched.
  bool migrates() const noexcept { return migrates_ != 0; }
  void set_migrates(bool migrates) noexcept { migrates_ = migrates ? 1 : 0; }
  // Where it goes on, while it is parked: what Backtrace::OfParked takes. Null: it has not begun.
  // Called from: its carrier.
  const void* parked_context() const noexcept { return context_; }

  // Called by who is about to wait for something that a task does. Lets one that has never run go
  // first, if nobody else is ready; false if there was none. It is no wait: whether the thread is
  // to stop must be asked after it.
  bool YieldToFresh() noexcept;
  // Leaves the stack until somebody ends the wait that was begun, and says who did. `reason` is for
  // dumps. REQUIRES: state().BeginWait() was called; with kWaitingKernel, `reason` is a KernelWait.
  Wake Park(WaitReason& reason) noexcept;
  // What it parked with; of meaning only while it waits. Called from: its carrier, while it is
  // parked; from elsewhere, what it points to may be gone.
  const WaitReason* wait_reason() const noexcept {
    return wait_.load(std::memory_order_relaxed);  // relaxed: same OS thread, or a guess.
  }

  // What a wait must answer before it begins: OK, CANCELLED or DEADLINE_EXCEEDED.
  [[nodiscard]] bool ShouldStop() noexcept {
    return __builtin_expect(governing_ != nullptr && governing_->has_expired, 0) ||
           __builtin_expect(IsCancelled(), 0);
  }
  absl::Status StopStatus() noexcept;
  static absl::Status StatusOf(Wake wake) noexcept;

  // A request to stop. Called from: any thread that knows the thread cannot end meanwhile.
  void Cancel() noexcept;

  // Whether it waits on `carrier`, and so does until that makes it ready. Called from: the
  // carrier's OS thread; the record may be used anew at any time.
  bool WaitsOn(const Dispatcher& carrier) const noexcept {
    // In this order: whoever waits has told before on which carrier. Pairs with BeginWait.
    return IsWaiting(state_.phase()) && dispatcher() == &carrier;
  }
  // On its carrier: ends its wait, if it has one that may be ended for `cause`.
  void Interrupt(Wake cause) noexcept;

  void EnterNoSuspend() noexcept { ++no_suspend_depth_; }
  void LeaveNoSuspend() noexcept { --no_suspend_depth_; }
  // The same for a lock of the operating system; somebody else may give it back.
  void EnterOsLock() noexcept { no_suspend_depth_ += kOsLock; }
  void LeaveOsLock() noexcept {
    if (no_suspend_depth_ >= kOsLock) no_suspend_depth_ -= kOsLock;
  }
  // From now on each wait aborts: the process is a copy, made by fork, in which nobody can end it.
  void ForbidWaits() noexcept { no_suspend_depth_ |= kForked; }
  // Aborts when the thread must not wait here.
  void CheckMayWait() const noexcept {
    if (__builtin_expect(no_suspend_depth_ != 0 || role_ == Role::kCarrier, 0)) MustNotWait();
  }

  // From 0 to `choices` - 1, without a pattern: for whoever must not always prefer the same one.
  uint32_t NextChoice(uint32_t choices) noexcept {
    choice_ = static_cast<uint8_t>(choice_ * 141U + 67U);  // Takes every value in turn.
    return choice_ * choices >> 8;
  }

  // The earliest deadline in force, or null.
  TimerNode* governing() const noexcept { return governing_; }
  void set_governing(TimerNode* node) noexcept { governing_ = node; }
  bool is_shielded() const noexcept { return shield_depth_ != 0; }
  bool is_cancelled() const noexcept {
    // relaxed: for dumps.
    return cancel_.load(std::memory_order_relaxed) == CancelState::kRequested;
  }
  void EnterShield() noexcept {
    ++shield_depth_;
    BOBBIN_CHECK(shield_depth_ != 0, "CancelShields are nested too deep");
  }
  void LeaveShield() noexcept { --shield_depth_; }

 protected:
  // Whether it was asked to stop. The first check of a virtual thread has yet to come, in the
  // beginning: see above.
  enum class CancelState : uint8_t { kUnchecked, kNone, kRequested };

  friend class Dispatcher;
  friend class WakeList;
  friend struct DebuggerView;

  static constexpr uint16_t kOsLock = 0x100;
  static constexpr uint16_t kForked = 0x8000;

  [[noreturn]] void MustNotWait() const noexcept;
  bool IsCancelled() noexcept {
    if (shield_depth_ != 0) return false;
    // relaxed: the carrier's message follows.
    const CancelState state = cancel_.load(std::memory_order_relaxed);
    if (__builtin_expect(state == CancelState::kNone, 1)) return false;
    return state == CancelState::kRequested || FirstCheckCancel();
  }
  bool FirstCheckCancel() noexcept;
  // The same for a thread that has been taken by another carrier.
  void RecheckCancel() noexcept;
  Wake ParkOsThread() noexcept;
  KernelWait& kernel_wait() noexcept {
    // relaxed: same OS thread.
    return static_cast<KernelWait&>(*wait_.load(std::memory_order_relaxed));
  }

  WaitState state_;
  void* context_ = nullptr;  // Where to continue; what jump_fcontext takes.
  // Written by carriers, see above; read by Cancel and by wakers, who find it waiting.
  Atomic<Dispatcher*> dispatcher_;
  // In the ready queue or a wake list; a thread is in one of them at most.
  Thread* next_ = nullptr;
  TimerNode* governing_ = nullptr;
  // Written by the thread itself when it parks; read by dumps.
  Atomic<WaitReason*> wait_{nullptr};
  // A virtual thread's: messages to its carrier, see task.h. Here, because who wakes it from
  // another carrier touches this line anyway.
  Task* link_ = nullptr;
  Atomic<uint8_t> attention_{0};  // Written by any thread.
  // Written by Cancel on any thread, and by the thread's first check; read by the thread itself.
  Atomic<CancelState> cancel_{CancelState::kUnchecked};
  Role role_;
  Atomic<uint8_t> carrier_tag_{0};  // Written with the dispatcher; read by who wants its mutex.
  // The thread's own, in a word of their own: a compiler may read both depths at once.
  uint8_t shield_depth_ : 7 = 0;
  uint8_t migrates_ : 1 = 0;
  uint8_t choice_ = 0;
  uint16_t no_suspend_depth_ = 0;  // Scopes; kOsLock for each lock of the system; kForked.
#if defined(__SANITIZE_THREAD__)
  void* sanitizer_context_ = nullptr;
#endif
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_THREAD_H_
