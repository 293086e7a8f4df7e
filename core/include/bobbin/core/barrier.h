// SPDX-License-Identifier: Apache-2.0
//
// Barrier: several threads go from phase to phase together; none begins one before all have ended
// the one before.
//
// For rounds of work in which each needs what the others have done in the last one. To wait until
// several things are done, once, use WaitGroup; for the end of virtual threads, TaskGroup.
//
//   Called from   virtual, platform and foreign threads: the parties.
//   Suspends      ArriveAndWait and Wait, until all parties have arrived.
//   Cancellation  A wait that is ended returns CANCELLED or DEADLINE_EXCEEDED and takes its thread
//                 out of the barrier: the arrival counts, the phases that follow do not expect the
//                 thread. So who stops does not stop the others. The last one to arrive does not
//                 wait, also when it is to stop.
//   Order         The last arrival calls the completion, then unparks all waiters, the one that
//                 waits longest first.
//   Memory        Every arrival of a phase happens before its completion, and that before the
//                 return of every wait for the phase.
//   Lifetime      May be destroyed by a thread that has passed it by ArriveAndWait, if all parties
//                 have arrived that way for the last time, and waits that a deadline or a cancel
//                 ends have returned. Destroying it with waiters aborts.
//   Cost          An arrival: a spin lock, and a park for all but the last.
//
// Arriving more often in a phase than there are parties aborts.
//
// Example:
//   Barrier barrier(4, [&]() noexcept { std::swap(now, next); });
//   for (int step = 0; step < steps; ++step) {
//     Compute(now, next, part);
//     BOBBIN_RETURN_IF_ERROR(barrier.ArriveAndWait());
//   }

#ifndef BOBBIN_CORE_BARRIER_H_
#define BOBBIN_CORE_BARRIER_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include <bobbin/core/internal/barrier_core.h>

namespace bobbin {

// What a phase ends with if nothing is given.
struct NoCompletion {
  void operator()() const noexcept {}
};

template <typename Completion = NoCompletion>
class Barrier {
  static_assert(std::is_nothrow_invocable_v<Completion&>,
                "the completion of a barrier is noexcept: nobody could catch what it throws");

 public:
  // That a thread has arrived, to be waited for later. Goes to Wait, once.
  class [[nodiscard]] Arrival {
   public:
    Arrival(Arrival&&) noexcept = default;
    Arrival& operator=(Arrival&&) noexcept = default;

   private:
    friend class Barrier;
    explicit Arrival(internal::BarrierCore::Place place) : place_(place) {}
    internal::BarrierCore::Place place_;
  };

  // Each phase ends with `completion()`, on the thread that arrives last, while all others wait for
  // it; it may wait itself. REQUIRES: 0 < parties.
  explicit Barrier(int64_t parties, Completion completion = Completion())
      : completion_(std::move(completion)),
        core_(parties, std::is_same_v<Completion, NoCompletion> ? nullptr : &Complete,
              &completion_) {}
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Arrives, and waits for the others.
  [[nodiscard]] absl::Status ArriveAndWait() { return core_.ArriveAndWait(); }

  // Arrives without waiting: other work can be done before the Wait, or nothing is waited for.
  Arrival Arrive() { return Arrival(core_.Arrive(internal::BarrierCore::Future::kStays)); }

  // Waits until all others have arrived in the phase of `arrival`, too.
  [[nodiscard]] absl::Status Wait(Arrival&& arrival) { return core_.Wait(arrival.place_); }

  // Arrives for the last time: the phases that follow expect one thread less.
  void ArriveAndDrop() { static_cast<void>(core_.Arrive(internal::BarrierCore::Future::kLeaves)); }

 private:
  static void Complete(void* completion) noexcept { (*static_cast<Completion*>(completion))(); }

  Completion completion_;
  internal::BarrierCore core_;
};

}  // namespace bobbin

#endif  // BOBBIN_CORE_BARRIER_H_
