// SPDX-License-Identifier: Apache-2.0
//
// BarrierCore: what all barriers have in common, whatever their completion is.
//
// States
//
//   open        some parties have yet to arrive in the phase
//   completing  all have arrived, and the last one calls the completion
//
// Transitions, all under the lock
//
//   open       -> open        an arrival that is not the last; a wait that is ended
//   open       -> completing  the last arrival
//   completing -> completing  a wait that is ended
//   completing -> open        the end of the completion: the next phase
//
// Why no wake-up is lost. ArriveAndWait arrives and joins the queue under one lock; Wait looks at
// the phase and joins under one. The phase changes under that lock, too, which also empties the
// queue. So a thread either sees the new phase or is in the queue when the phase ends. Nobody can
// miss a whole phase: it cannot end without an arrival of each party, and a thread that waits
// arrives no more. A wait that is ended looks once more, under the lock: either the phase has ended
// meanwhile, then it was waited for with success, or the thread is taken out of the count of those
// that the next one expects.
//
//   Called from   the parties.
//   Suspends      ArriveAndWait, Wait.

#ifndef BOBBIN_CORE_INTERNAL_BARRIER_CORE_H_
#define BOBBIN_CORE_INTERNAL_BARRIER_CORE_H_

#include <cstdint>

#include "absl/status/status.h"

#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin::internal {

class BarrierCore {
 public:
  using Completion = void (*)(void* argument) noexcept;
  // Whether a thread that arrives comes again.
  enum class Future : uint8_t { kStays, kLeaves };

  // Where a thread has arrived.
  struct Place {
    uint64_t phase;
    bool is_passed;  // It was the last one, and the phase has ended.
  };

  // `complete` may be null.
  BarrierCore(int64_t parties, Completion complete, void* argument);
  BarrierCore(const BarrierCore&) = delete;
  BarrierCore& operator=(const BarrierCore&) = delete;
  ~BarrierCore();

  absl::Status ArriveAndWait();
  Place Arrive(Future future);
  absl::Status Wait(Place place);

 private:
  // The word: the number of the phase, above two flags.
  using Word = uint64_t;
  static constexpr Word kLocked = 1;
  static constexpr Word kHasWaiters = 2;
  static constexpr Word kOnePhase = 4;

  static uint64_t PhaseOf(Word word) { return word / kOnePhase; }

  // With the lock held: counts one arrival, and returns whether it was the last one.
  bool CountArrival();
  // With the lock held, which it gives up.
  void EndPhase(Word word);
  // Parks `self`, which is in the queue, until `phase` has ended.
  absl::Status Park(Waiter& self, uint64_t phase);

  const Completion complete_;
  void* const argument_;
  WordLock<Word, kLocked> word_{0};
  // Guarded by the lock in word_.
  int64_t expected_;  // How many arrivals a phase takes, from the next one on.
  int64_t pending_;   // How many are missing in this one.
  WaitQueue waiters_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_BARRIER_CORE_H_
