// SPDX-License-Identifier: Apache-2.0
//
// WaitQueue: the threads that wait at one primitive, first come, first served.
//
// Every primitive sleeps here. The pattern, in which `lock` is the primitive's own spin lock:
//
//   Waiter self;                                 // On the waiting thread's stack: no allocation.
//   {
//     SpinLockHolder hold(lock);
//     if (TryTake()) return absl::OkStatus();    // The condition and the queue: one lock, no gap.
//     queue.PushBack(self);                      // Begins the wait.
//   }
//   const Wake wake = self.Park();
//   if (wake == Wake::kNotified) return absl::OkStatus();
//   SpinLockHolder hold(lock);
//   queue.Forget(self);                          // A notifier may have taken it out already.
//   return Thread::StatusOf(wake);
//
// and on the other side:
//
//   WakeList woken;
//   {
//     SpinLockHolder hold(lock);
//     if (Waiter* next = queue.ClaimFront()) { hand over to *next; woken.Add(*next); }
//   }
//   woken.Dispatch();                            // The primitive is not touched after this.
//
// Why nothing is handed to a thread that has left. ClaimFront takes waiters out until it ends one's
// wait by winning its state word; those it loses to a deadline or a cancel are passed over. A
// claimed thread cannot run before it is dispatched, so the notifier may use its Waiter until then.
//
// A thread may wait at several primitives at once, with a Waiter for each: the first begins the
// wait (kWaitingAny), the others share its ticket, so whoever claims one of them has claimed the
// thread, and that Waiter says so. The thread takes the others out of their queues, under their
// locks, before it goes on; until then they can be found, and are passed over.
//
//   Called from   with the lock of the primitive held, except Park and Dispatch.
//   Suspends      Waiter::Park.
//   Cost          a list operation; a claim is one compare-exchange.

#ifndef BOBBIN_CORE_INTERNAL_WAIT_QUEUE_H_
#define BOBBIN_CORE_INTERNAL_WAIT_QUEUE_H_

#include <cstdint>

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/thread.h>

namespace bobbin::internal {

// One wait of the calling thread.
class Waiter : public IntrusiveLink {
 public:
  // What is waited for, as a dump says it: the kind and, if that has one, its object.
  explicit Waiter(const WaitKind& kind, const void* object = nullptr) noexcept
      : thread_(Current()), reason_{.kind = &kind, .object = object} {
    thread_.CheckMayWait();
  }
  Waiter() noexcept : Waiter(kUnnamedWait) {}
  // For those that are made many at a time.
  void Name(const WaitKind& kind) noexcept { reason_.kind = &kind; }

  Thread& thread() const noexcept { return thread_; }
  // Leaves the stack until somebody ends the wait.
  Wake Park() noexcept { return thread_.Park(reason_); }

  // For a wait outside a queue: begins it, and ends it from elsewhere.
  void BeginWait(Phase phase) noexcept { ticket_ = thread_.state().BeginWait(phase); }
  [[nodiscard]] bool TryNotify() noexcept {
    const Dispatcher* const carrier = thread_.dispatcher();
    const bool is_local = carrier != nullptr && carrier == Current().dispatcher();
    if (__builtin_expect(thread_.state().TryNotify(ticket_, is_local), 1)) return true;
    if (!thread_.state().TryNotifyAny(ticket_)) return false;
    is_claimed_ = true;
    return true;
  }

  // For a thread that finds, after its wait has begun, that it need not wait: ends the wait itself;
  // or, if somebody else has ended it, parks until that one's dispatch comes.
  Wake EndOwnWait() noexcept { return TryNotify() ? thread_.state().EndWait() : Park(); }

  // One of the Waiters of the wait that `first`, which is one of them, has begun.
  void ShareWait(const Waiter& first) noexcept {
    ticket_ = first.ticket_;
    is_claimed_ = false;
  }
  // Whether it was this one that somebody has claimed. REQUIRES: ShareWait; the wait has ended.
  bool is_claimed() const noexcept { return is_claimed_; }

  // What the waiter wants and what it is given; their meaning is the primitive's.
  int64_t amount = 0;
  void* slot = nullptr;

 private:
  Thread& thread_;
  Ticket ticket_ = 0;
  bool is_claimed_;  // From ShareWait on: a wait in one place need not pay for it.
  WaitReason reason_;
};

class WaitQueue {
 public:
  bool empty() const noexcept { return waiters_.empty(); }
  Waiter* Front() noexcept { return waiters_.Front(); }
  Waiter* Next(Waiter& waiter) noexcept { return waiters_.Next(waiter); }

  // Begins the wait and joins the queue. `phase`: kWaiting, or kWaitingShielded for waits that
  // neither deadline nor cancel may end.
  void PushBack(Waiter& waiter, Phase phase = Phase::kWaiting) noexcept {
    waiter.BeginWait(phase);
    Join(waiter);
  }
  // Joins the queue. REQUIRES: the wait has begun.
  void Join(Waiter& waiter) noexcept { waiters_.PushBack(waiter); }

  // The same at the head of the queue, for one who has waited before.
  void PushFront(Waiter& waiter, Phase phase) noexcept {
    waiter.BeginWait(phase);
    waiters_.PushFront(waiter);
  }

  // Takes out the first waiter whose wait this call could end, or null. The caller owes its thread
  // one dispatch.
  [[nodiscard]] Waiter* ClaimFront() noexcept {
    while (Waiter* const waiter = waiters_.PopFront()) {
      if (waiter->TryNotify()) return waiter;
    }
    return nullptr;
  }

  // The same for one waiter that is in the queue; false if it was lost to a deadline or a cancel.
  [[nodiscard]] bool Claim(Waiter& waiter) noexcept {
    waiters_.Remove(waiter);
    return waiter.TryNotify();
  }

  // Takes out a waiter whose wait has been ended by its deadline or a cancel, if it is still in.
  void Forget(Waiter& waiter) noexcept {
    if (waiter.is_linked()) waiters_.Remove(waiter);
  }

 private:
  IntrusiveList<Waiter> waiters_;
};

// Threads whose wait has been ended and who have yet to be made ready.
class WakeList {
 public:
  WakeList() = default;
  WakeList(const WakeList&) = delete;
  WakeList& operator=(const WakeList&) = delete;
  ~WakeList() { BOBBIN_DCHECK(first_ == nullptr, "claimed threads were never dispatched"); }

  bool empty() const noexcept { return first_ == nullptr; }
  void Add(Waiter& claimed) noexcept { Add(claimed.thread()); }
  void Add(Thread& claimed) noexcept {
    claimed.next_ = nullptr;
    *(first_ == nullptr ? &first_ : &last_->next_) = &claimed;
    last_ = &claimed;
  }
  // Makes them ready, in the order they were added.
  void Dispatch() noexcept {
    if (first_ != nullptr) DispatchAll();
  }

 private:
  void DispatchAll() noexcept;

  Thread* first_ = nullptr;
  Thread* last_ = nullptr;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_WAIT_QUEUE_H_
