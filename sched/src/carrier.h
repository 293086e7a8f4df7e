// SPDX-License-Identifier: Apache-2.0
//
// Carrier: an OS thread that runs virtual threads, and its life as a loop.
//
// Sleeping and waking
//
//   kAwake      runs, or looks for work
//   kAsleep     in its poller, or about to be
//   kNotified   somebody has work for it and owes its poller one Wake
//   kSummoned   the same, and it holds the search token (see idle.h)
//
//   kAwake    -> kAsleep     Sleep            the carrier, before its last look
//   kAsleep   -> kNotified   Ring             whoever has put work where this carrier looks
//   kAsleep   -> kSummoned   IdleCarriers     whoever has more work than one carrier can do
//   any       -> kAwake      Sleep            the carrier, after its last look or its sleep
//
// Why no wake-up is lost. Two sides, each a write, then a read of what the other writes; all four
// are sequentially consistent, so they have one total order:
//
//      somebody with work                      carrier
//      W1  push to the inbox or the intake     C1  state = kAsleep
//      W2  read state                          C2  read inbox, intake and every deque
//
//   If W1 comes before C2, the carrier sees the work and does not sleep. Otherwise C1 < C2 < W1 <
//   W2, so W2 reads kAsleep (or what a third party has made of it, who then wakes the carrier). The
//   wake itself is kept by the poller if it comes before the sleep.
//
// A push to a carrier's own deque, by the carrier itself, has no such duty: the carrier will run
// it. Waking another one to share the work is a matter of speed; the monitor repairs a missed
// chance.
//
//   Called from   its own OS thread, except Post..., Give and the readers named below.
//   Suspends      Sleep blocks the OS thread, in the poller.

#ifndef BOBBIN_SCHED_SRC_CARRIER_H_
#define BOBBIN_SCHED_SRC_CARRIER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/counter.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/sched/poller.h>

#include "sched/src/block_cache.h"
#include "sched/src/intake.h"
#include "sched/src/limits.h"
#include "sched/src/loot.h"
#include "sched/src/run_length.h"
#include "sched/src/task_deque.h"
#include "sched/src/timer_wheel.h"

namespace bobbin::internal {

class DumpPart;
class RuntimeCore;

class Carrier final : public Dispatcher {
 public:
  enum class State : uint32_t { kAwake, kAsleep, kNotified, kSummoned };

  struct Counters {
    Counter spawned, turns, sleeps, woken, stolen, migrated;
  };

  Carrier(RuntimeCore& runtime, int index, std::unique_ptr<Poller> poller);

  // The body of its OS thread: from Bind to the end of the runtime.
  void Run() noexcept;

  // --- Its own OS thread, also from virtual threads there.

  bool ArmTimer(TimerNode& node) noexcept override;
  void DisarmTimer(TimerNode& node) noexcept override;
  // A prepared block, without a look at the limit; null when the system has no memory.
  Task* NewTask(std::string_view name) {
    Task* const task = tasks().Take();
    if (__builtin_expect(task != nullptr, 1)) task->Prepare(tasks().TakeId(), name);
    return task;
  }
  // Offers a new virtual thread, here first.
  void PushFresh(Task& task) noexcept {
    counts_.spawned.add(1);
    if (fresh_.Push(task) >= share_from_) Share();
  }
  // Where spawners wait at the limit of live virtual threads, or null.
  using Dispatcher::live_limit;
  using Dispatcher::set_live_limit;
  BlockCache& blocks() noexcept { return blocks_; }
  Poller& poller() noexcept { return *poller_; }
  const Poller& poller() const noexcept { return *poller_; }
  // Whether the turn has taken as long as it should.
  bool TurnIsOver() const noexcept;
  Counters& counters() noexcept { return counts_; }

  // --- Any thread.

  // Hands over a new virtual thread.
  void Give(Task& task) noexcept;
  // Has it cancel every virtual thread that belongs to it, now and from now on.
  void RequestCancelAll() noexcept;
  // Has it leave its loop once nothing is in flight.
  void RequestEnd() noexcept;
  // Has it describe its threads. A carrier that has ended finishes the part at once.
  void RequestDump(std::shared_ptr<DumpPart> part) noexcept;
  // On its OS thread, from a virtual thread that will not return to it: describes them here.
  void DescribeFromInside() noexcept;
  // Whether there is something for another carrier to take.
  bool HasStealable() const noexcept {
    return fresh_.size() != 0 || intake_.has_any() || migrants_.size() != 0;
  }
  // Wakes it if it sleeps, as `State::kNotified` or `kSummoned`. Returns whether it did.
  bool WakeIfAsleep(State as) noexcept;
  State state() const noexcept { return state_.load(); }

  RuntimeCore& runtime() const noexcept { return runtime_; }
  int index() const noexcept { return index_; }
  // Its OS thread; 0 until it runs.
  pid_t os_thread() const noexcept { return os_thread_.load(); }
  const Counters& counters() const noexcept { return counts_; }
  const DispatchCounters& dispatch_counters() const noexcept { return counters_; }
  uint64_t timers_armed() const noexcept { return timers_armed_.value(); }
  uint64_t in_flight() const noexcept { return in_flight_.value(); }
  // New virtual threads for which there is no stack of the size that they need.
  uint64_t starving() const noexcept { return starving_count_.value(); }

 private:
  // How long the same task has been the oldest of a deque, as seen at the ends of turns.
  class Age {
   public:
    // Whether that is too long.
    bool HasPassed(const TaskDeque& deque, int64_t now) noexcept;

   private:
    int64_t oldest_ = 0;
    int64_t since_ = 0;
  };

  Task* TakeFresh() noexcept override;
  void OfferMigrant(Task& task) noexcept override;
  Task* TakeMigrant() noexcept override;
  size_t migrants() const noexcept override { return migrants_.size(); }
  void Ring() noexcept override;

  // Wakes a sleeping carrier to take some of what others may take.
  void Share() noexcept;
  // Learns from a turn how long a run takes, and how many fresh tasks are worth a wake.
  void AdaptSharing(int64_t started, int64_t ended, uint32_t used) noexcept;
  // Shares if somebody whom another carrier could take has waited for too long.
  void ShareOldest() noexcept;
  void Turn() noexcept;
  void FireTimers() noexcept;
  void DrainIntake() noexcept;
  bool StealWork() noexcept;
  // A new virtual thread that nobody has begun, taken away; null when there is none.
  Task* StealFresh() noexcept;
  // Take some from `victim`; return how many.
  size_t StealFreshFrom(Carrier& victim) noexcept;
  size_t StealMigrantsFrom(Carrier& victim) noexcept;
  // How many new ones to take from `victim`.
  size_t LootFrom(const Carrier& victim) noexcept;
  bool SparesAnybody() const noexcept;
  // The rest of TakeFresh for what is not as usual.
  Task* TakeSpecial(Task& task) noexcept;
  // Offers those again for which there is a stack now.
  void OfferStarving() noexcept;
  void Sleep() noexcept;
  bool FindsWorkOrdered() noexcept;
  void AdaptBudget(int64_t started, int64_t ended, uint32_t used) noexcept;
  void TrimStacks() noexcept;
  void ObeyRequests() noexcept;
  void CancelAll() noexcept;
  void TakeDumpPart() noexcept;
  void ContinueDump(const Thread* running) noexcept;
  void EndDumps() noexcept;
  bool MayEnd() noexcept;
  Deadline NextWake() const noexcept;
  void PublishGauges() noexcept;

  // Never changes.
  RuntimeCore& runtime_;
  const int index_;
  const std::unique_ptr<Poller> poller_;

  // This OS thread only.
  uint32_t budget_;
  uint32_t fresh_picks_ = 0;
  int64_t run_nanoseconds_ = kRunNanosecondsGuess;  // A moving average.
  size_t share_from_ = kShareFromMin;
  std::vector<Task*> starving_;  // See starving().
  Age age_of_fresh_;
  Age age_of_migrants_;
  std::vector<Loot> loot_;      // For each carrier.
  bool cancels_taken_ = false;  // Whoever begins or goes on here from now on.
  int64_t trim_period_end_;
  bool has_cold_stacks_ = false;
  std::shared_ptr<DumpPart> dump_part_;  // What it is working on.
  TimerWheel wheel_;
  TimerHeap heap_;
  BlockCache blocks_;

  // Written here, read by everyone.
  alignas(kCacheLineBytes) Counters counts_;
  Counter timers_armed_;
  Counter in_flight_;
  Counter starving_count_;
  RunLength run_length_{kRunNanosecondsGuess};

  // Everyone.
  TaskDeque fresh_;
  TaskDeque migrants_;  // Ready; see dispatcher.h.
  alignas(kCacheLineBytes) Intake intake_;
  alignas(kCacheLineBytes) Atomic<State> state_{State::kAwake};  // See above.
  Atomic<pid_t> os_thread_{0};                                   // Written once, by the carrier.
  Atomic<bool> is_cancel_requested_{false};  // Set by Shutdown; read by the carrier.
  Atomic<bool> is_end_requested_{false};     // Set by Shutdown; read by the carrier.
  Atomic<bool> is_dump_requested_{false};    // Set by a dump; taken back by the carrier.
  SpinLock dump_lock_;
  std::vector<std::shared_ptr<DumpPart>> dump_parts_ ABSL_GUARDED_BY(dump_lock_);
  bool has_ended_ ABSL_GUARDED_BY(dump_lock_) = false;
};

// The calling thread's carrier; null on threads that are on none.
inline Carrier* CurrentCarrier() noexcept { return static_cast<Carrier*>(Current().dispatcher()); }

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_CARRIER_H_
