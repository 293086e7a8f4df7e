// SPDX-License-Identifier: Apache-2.0
//
// WaitState: the one state word of a thread, and every way it changes.
//
// States (the low byte of the word; the rest is the ticket, a number that grows with every wait)
//
//   kIdle             a block that is not in use
//   kFresh            spawned, never run
//   kRunning          running, or ready to run
//   kWaiting          waits; a notify, its deadline or a cancel may end it
//   kWaitingShielded  waits; only a notify may end it
//   kWaitingAny       waits in several places at once; as kWaiting
//   kWaitingKernel    waits for a completion that only its own carrier can deliver
//   kNotified         somebody won the right to end the wait, and owes it exactly one dispatch
//   kExpired          the same; the deadline won
//   kCancelled        the same; a cancel won
//   kDone             its body has returned
//
// Transitions
//
//   kFresh           -> kRunning          Start         its carrier
//   kRunning         -> kWaiting...       BeginWait     the thread itself
//   kWaiting...      -> kNotified         TryNotify     anybody who holds the wait's ticket
//   kWaitingAny      -> kNotified         TryNotifyAny  the same
//   kWaiting, ...Any -> kExpired, kCancelled TryInterrupt  its own carrier, or itself
//   kWaitingKernel   -> kNotified         Complete      its own carrier
//   woken            -> kRunning          EndWait       the thread itself, when it runs again
//   kRunning         -> kDone             Finish        its carrier
//
// Why one wait ends exactly once. A wait ends by a compare-exchange from (ticket, waiting). One
// wins; the others find another word and do nothing. A notifier that is late by a whole wait holds
// an old ticket and cannot match. On the waiting thread's own carrier the exchange is not needed:
// interrupts come from that OS thread only, and a wait has one notifier at a time (the one that
// took the waiter out of its queue), so a load and a store do. A wait in several places can have
// several, on different carriers: it is a state of its own, in which everybody exchanges.
//
// Why no wake-up is lost and no stack runs twice. BeginWait comes before the wait is published
// (under the lock of the queue it is put in), so whoever finds the waiter finds the state waiting.
// The winner hands the thread to the carrier it waits on, through that carrier's ready queue or
// inbox, and only that carrier's OS thread takes from there. The waiting thread runs on the same OS
// thread until it has switched away: so it is never resumed before its context has been saved,
// without a second state change after the switch. One that migrates: see dispatcher.h.
//
//   Called from   as the table says.
//   Suspends      never.
//   Cost          a notify: one compare-exchange. Beginning and ending a wait: plain stores.

#ifndef BOBBIN_CORE_INTERNAL_WAIT_STATE_H_
#define BOBBIN_CORE_INTERNAL_WAIT_STATE_H_

#include <cstdint>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/atomic.h>

namespace bobbin::internal {

enum class Phase : uint8_t {
  kIdle,
  kFresh,
  kRunning,
  kWaiting,
  kWaitingShielded,
  kWaitingAny,
  kWaitingKernel,
  kNotified,
  kExpired,
  kCancelled,
  kDone,
};

constexpr bool IsWaiting(Phase phase) noexcept {
  return phase == Phase::kWaiting || phase == Phase::kWaitingAny ||
         phase == Phase::kWaitingShielded || phase == Phase::kWaitingKernel;
}

// Who ended a wait.
enum class [[nodiscard]] Wake : uint8_t{kNotified, kExpired, kCancelled};

// The number of one wait of one thread.
using Ticket = uint64_t;

class WaitState {
 public:
  Phase phase() const noexcept { return PhaseOf(word_.load(std::memory_order_acquire)); }  // pairs
  // with the releases below, for a reader that goes on to look at what the thread wrote before.

  // Whether it is the same wait, or the same run, as in a copy that was made before.
  bool is_same(const WaitState& copy) const noexcept { return Load() == copy.Load(); }

  // For a record that is used anew. Keeps the ticket growing, so that old tickets stay dead.
  void Reset(Phase phase) noexcept {
    word_.store(Word(TicketOf(Load()) + 1, phase), std::memory_order_relaxed);  // relaxed: private.
  }

  void Start() noexcept {
    BOBBIN_DCHECK(PhaseOf(Load()) == Phase::kFresh, "started twice");
    word_.store(Word(TicketOf(Load()), Phase::kRunning), std::memory_order_relaxed);  // relaxed:
    // nobody else changes the word of a thread that does not wait.
  }

  // Begins a wait and returns its ticket. `phase` is one of the kWaiting states.
  Ticket BeginWait(Phase phase) noexcept {
    BOBBIN_DCHECK(PhaseOf(Load()) == Phase::kRunning, "a thread waits for two things at once");
    const Ticket ticket = TicketOf(Load()) + 1;
    // Pairs with the acquire in TryNotify; on this side usually covered by a queue's lock as well.
    word_.store(Word(ticket, phase), std::memory_order_release);
    return ticket;
  }

  // True if this call ended the wait `ticket`: the caller must now dispatch the thread, once.
  // `is_local`: the caller runs on the carrier of the waiting thread.
  [[nodiscard]] bool TryNotify(Ticket ticket, bool is_local) noexcept {
    uint64_t word = word_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
    if (word != Word(ticket, Phase::kWaiting) && word != Word(ticket, Phase::kWaitingShielded)) {
      return false;
    }
    if (!is_local) return Change(word, Word(ticket, Phase::kNotified));
    // relaxed: one OS thread.
    word_.store(Word(ticket, Phase::kNotified), std::memory_order_relaxed);
    return true;
  }

  // The same for a wait in several places.
  [[nodiscard]] bool TryNotifyAny(Ticket ticket) noexcept {
    uint64_t word = Word(ticket, Phase::kWaitingAny);
    return Load() == word && Change(word, Word(ticket, Phase::kNotified));
  }

  // True if this call ended whatever interruptible wait the thread is in. Only the OS thread on
  // which the thread waits may call it, so the ticket need not be named.
  [[nodiscard]] bool TryInterrupt(Wake cause) noexcept {
    uint64_t word = word_.load(std::memory_order_relaxed);  // relaxed: the exchange decides.
    if (PhaseOf(word) != Phase::kWaiting && PhaseOf(word) != Phase::kWaitingAny) return false;
    return Change(
        word, Word(TicketOf(word), cause == Wake::kExpired ? Phase::kExpired : Phase::kCancelled));
  }

  // Ends a wait for the kernel. Nobody else can end it, so no exchange is needed.
  void Complete() noexcept {
    BOBBIN_DCHECK(PhaseOf(Load()) == Phase::kWaitingKernel, "a completion nobody waits for");
    // relaxed: own.
    word_.store(Word(TicketOf(Load()), Phase::kNotified), std::memory_order_relaxed);
  }

  // Back to running; says who ended the wait.
  Wake EndWait() noexcept {
    // Pairs with the release in Change.
    const uint64_t word = word_.load(std::memory_order_acquire);
    word_.store(Word(TicketOf(word), Phase::kRunning), std::memory_order_relaxed);  // relaxed: own.
    switch (PhaseOf(word)) {
      case Phase::kNotified:
        return Wake::kNotified;
      case Phase::kExpired:
        return Wake::kExpired;
      case Phase::kCancelled:
        return Wake::kCancelled;
      default:
        CheckFailed(__FILE__, __LINE__, "woken", "a thread was resumed although nobody woke it");
    }
  }

  void Finish() noexcept {
    // relaxed: for dumps.
    word_.store(Word(TicketOf(Load()), Phase::kDone), std::memory_order_relaxed);
  }

 private:
  static constexpr int kPhaseBits = 8;
  static constexpr uint64_t Word(Ticket ticket, Phase phase) noexcept {
    return ticket << kPhaseBits | static_cast<uint64_t>(phase);
  }
  static constexpr Phase PhaseOf(uint64_t word) noexcept { return static_cast<Phase>(word & 0xff); }
  static constexpr Ticket TicketOf(uint64_t word) noexcept { return word >> kPhaseBits; }

  uint64_t Load() const noexcept { return word_.load(std::memory_order_relaxed); }  // relaxed: own.
  bool Change(uint64_t& from, uint64_t to) noexcept {
    // The release lets the woken thread see what its notifier did (pairs with the acquire in
    // EndWait); the acquire pairs with the release in BeginWait.
    return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);  // relaxed: a lost race.
  }

  // Written by the thread itself, except while it waits: then by whoever ends the wait.
  Atomic<uint64_t> word_{Word(0, Phase::kIdle)};
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_WAIT_STATE_H_
