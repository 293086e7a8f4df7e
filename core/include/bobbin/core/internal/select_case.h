// SPDX-License-Identifier: Apache-2.0
//
// SelectCase: one of the things that a Select waits for, and how it comes to exactly one of them.
//
// Steps of a Select
//
//   1  looks at the cases, each under its own lock, from a random one on; takes the first that is
//      ready
//   2  takes the locks of all cases, in the order of their addresses
//   3  looks at them again; takes the first that is ready, else begins one wait and leaves a waiter
//      in each
//   4  gives the locks up; parks
//   5  takes what is left of its waiters out, under their locks
//
// Why exactly one case wins. Until step 3 has left its waiters the thread is in no queue, so nobody
// can give it anything: what it takes in 1 or 3 it takes alone. From then on it takes nothing any
// more. All its waiters share one ticket, and of those who find them - senders, receivers, setters,
// on any carriers, and the deadline and a cancel - one wins the state word (wait_state.h). Only the
// winner hands over, through the waiter that it has found; the others pass over theirs, as over one
// whose deadline has passed, and what they have goes elsewhere.
//
// Why no wake-up is lost. The second look and the leaving of the waiters are one critical section
// for all cases together. Whatever makes a case ready needs its lock: it comes before, and is seen,
// or after, and finds the waiter.
//
// Why two Selects that face each other neither block each other nor win one-sidedly. Say X offers
// to send where Y would receive. To meet there one of them must find the other's waiter, under the
// channel's lock; say Y finds X's. Then Y is in no queue itself: it can lose to nobody, and gives
// up nothing by trying. One exchange, on the state word of X, decides for both. Won, X is woken
// with this case and Y returns with it. Lost, because X was won elsewhere, Y has promised nothing
// and goes on looking. They cannot miss each other either: both hold the channel's lock while they
// look and join, so the later one sees the earlier one. There is no state in which each waits for
// the other's decision, hence no retry and no livelock. A Select does not meet itself: when it
// looks, it is in no queue.
//
// Why the locks cannot deadlock. A spin lock's holder waits for nothing but, here, further locks at
// higher addresses; all others take one at a time.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      AwaitOne.
//   Cost          a ready case: its own lock. A wait: each case's lock, twice.

#ifndef BOBBIN_CORE_INTERNAL_SELECT_CASE_H_
#define BOBBIN_CORE_INTERNAL_SELECT_CASE_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/future_state.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/semaphore.h>

namespace bobbin::internal {

class SelectCase {
 public:
  SelectCase(const SelectCase&) = delete;
  SelectCase& operator=(const SelectCase&) = delete;

  // The object it is about, which is also what is locked; null for a case that is never ready.
  const void* place() const noexcept { return place_; }

  // Takes its turn if that needs no wait; true if it did.
  [[nodiscard]] virtual bool TryNow() = 0;

  // REQUIRES, of these five: place() is not null.
  virtual void Lock() noexcept = 0;
  virtual void Unlock() noexcept = 0;
  // With the lock held: as TryNow. Whoever is thereby let go is added to `woken`.
  [[nodiscard]] virtual bool TryLocked(WakeList& woken) noexcept = 0;
  // With the lock held: leaves `waiter`, whose wait has begun.
  virtual void Join(Waiter& waiter) noexcept = 0;
  // After the wait: takes `waiter` out, or keeps what it was given if it is the one that was
  // claimed. Takes the lock itself.
  virtual void Leave(Waiter& waiter) noexcept = 0;

  // When it is this case's turn without anything else being ready.
  virtual Deadline deadline() const noexcept { return Deadline::Never(); }

  // Calls the user's function with what has come of it.
  virtual absl::Status Finish() = 0;

 protected:
  explicit SelectCase(const void* place) noexcept : place_(place) {}
  ~SelectCase() = default;

 private:
  const void* const place_;
};

// Step 1: the case whose turn was taken, or null.
SelectCase* TakeReady(std::span<SelectCase* const> cases);

// Steps 2 to 5. `waiters` and `by_place` are as many as the cases.
absl::StatusOr<SelectCase*> AwaitOne(std::span<SelectCase* const> cases, std::span<Waiter> waiters,
                                     std::span<SelectCase*> by_place);

// An event that is set.
class EventPlace : public SelectCase {
 public:
  bool TryNow() final { return event_.IsSet(); }
  void Lock() noexcept final { event_.word_.Lock(); }
  void Unlock() noexcept final { event_.word_.Unlock(); }
  bool TryLocked(WakeList& woken) noexcept final;
  void Join(Waiter& waiter) noexcept final;
  void Leave(Waiter& waiter) noexcept final;

 protected:
  explicit EventPlace(Event& event) noexcept : SelectCase(&event), event_(event) {}
  ~EventPlace() = default;

 private:
  Event& event_;
};

// Permits of a semaphore.
class SemaphorePlace : public SelectCase {
 public:
  bool TryNow() final { return semaphore_.TryAcquire(permits_); }
  void Lock() noexcept final { semaphore_.word_.Lock(); }
  void Unlock() noexcept final { semaphore_.word_.Unlock(); }
  bool TryLocked(WakeList& woken) noexcept final;
  void Join(Waiter& waiter) noexcept final;
  void Leave(Waiter& waiter) noexcept final;

 protected:
  SemaphorePlace(Semaphore& semaphore, int64_t permits) noexcept
      : SelectCase(&semaphore), semaphore_(semaphore), permits_(permits) {
    Semaphore::CheckAmount(permits);
  }
  ~SemaphorePlace() = default;

 private:
  Semaphore& semaphore_;
  const int64_t permits_;
};

// A future that is ready.
class FuturePlace : public SelectCase {
 public:
  bool TryNow() final { return state_->IsReady(); }
  void Lock() noexcept final { state_->Lock(); }
  void Unlock() noexcept final { state_->Unlock(); }
  bool TryLocked(WakeList& woken) noexcept final;
  void Join(Waiter& waiter) noexcept final;
  void Leave(Waiter& waiter) noexcept final;

 protected:
  explicit FuturePlace(FutureStateBase* state) noexcept : SelectCase(state), state_(state) {}
  ~FuturePlace() = default;

 private:
  FutureStateBase* const state_;
};

// A point in time. It is in no queue: the wait as a whole ends by it.
class DeadlinePlace : public SelectCase {
 public:
  bool TryNow() final { return false; }
  void Lock() noexcept final {}
  void Unlock() noexcept final {}
  bool TryLocked(WakeList& woken) noexcept final;
  void Join(Waiter& waiter) noexcept final;
  void Leave(Waiter& waiter) noexcept final;
  Deadline deadline() const noexcept final { return deadline_; }

 protected:
  explicit DeadlinePlace(Deadline deadline) noexcept : SelectCase(nullptr), deadline_(deadline) {}
  ~DeadlinePlace() = default;

 private:
  const Deadline deadline_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_SELECT_CASE_H_
