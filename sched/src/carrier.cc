// SPDX-License-Identifier: Apache-2.0

#include "sched/src/carrier.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/stack_overflow.h>
#include <bobbin/core/internal/thread_signal.h>

#include "sched/src/dump_part.h"
#include "sched/src/fork_guard.h"
#include "sched/src/now.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

namespace {
Deadline AtNanoseconds(int64_t time) noexcept {
  return time == TimerWheel::kNever ? Deadline::Never()
                                    : Deadline::At(MonotonicTime(std::chrono::nanoseconds(time)));
}
}  // namespace

Carrier::Carrier(RuntimeCore& runtime, int index, std::unique_ptr<Poller> poller)
    : Dispatcher(runtime.tasks(), runtime.stacks()),
      runtime_(runtime),
      index_(index),
      poller_(std::move(poller)),
      budget_(kTurnSwitches),
      loot_(static_cast<size_t>(runtime.carrier_count())),
      trim_period_end_(Now() + kTrimPeriodNanoseconds),
      wheel_(Now()),
      fresh_(runtime.carrier_count() > 1),
      migrants_(runtime.carrier_count() > 1) {
  turn_time_ = Now();
}

void Carrier::Run() noexcept {
  os_thread_.store(gettid());
  if (!runtime_.CarrierStarted(poller_->Start())) return;
  Bind();
  const SignalStack signal_stack;
  ThreadSignal::AdmitHere();
  os_thread_.store(gettid());
  while (!MayEnd()) Turn();
  EndDumps();
  poller_->Stop();
  Unbind();
}

void Carrier::Turn() noexcept {
  counts_.turns.add(1);
  const uint32_t used = RunReady(budget_);
  ObeyRequests();
  DrainInbox();
  DrainIntake();
  if (__builtin_expect(!starving_.empty(), 0)) OfferStarving();
  const int64_t started = std::exchange(turn_time_, Now());
  AdaptBudget(started, turn_time_, used);
  AdaptSharing(started, turn_time_, used);
  FireTimers();
  if (__builtin_expect(turn_time_ >= trim_period_end_ || has_cold_stacks_, 0)) TrimStacks();
  if (has_ready() || dump_part_ != nullptr || (fresh_.size() != 0 && CanStart())) {
    ShareOldest();
    poller_->Poll();
  } else if (!StealWork()) {
    Sleep();
  }
  PublishGauges();
}

bool Carrier::TurnIsOver() const noexcept { return Now() - turn_time_ >= kTurnNanoseconds; }

void Carrier::AdaptBudget(int64_t started, int64_t ended, uint32_t used) noexcept {
  if (used < budget_) return;
  // The budget was the limit: did the turn take as long as it may? Halve quickly, grow slowly.
  if (ended - started > 2 * kTurnNanoseconds) {
    budget_ = std::max(budget_ / 2, uint32_t{1});
  } else if (ended - started < kTurnNanoseconds) {
    budget_ = std::min(budget_ + budget_ / 4 + 1, kTurnSwitches);
  }
}

void Carrier::AdaptSharing(int64_t started, int64_t ended, uint32_t used) noexcept {
  if (used == 0) return;
  run_length_.Learn(ended - started, used);
  run_nanoseconds_ += ((ended - started) / used - run_nanoseconds_) / 4;
  const int64_t worth = kShareNanoseconds / std::max(run_nanoseconds_, int64_t{1});
  share_from_ = static_cast<size_t>(std::max(worth, kShareFromMin));
}

bool Carrier::Age::HasPassed(const TaskDeque& deque, int64_t now) noexcept {
  const int64_t oldest = deque.oldest();
  if (oldest != std::exchange(oldest_, oldest)) since_ = now;
  return now - since_ > kShareOldestNanoseconds;
}

void Carrier::ShareOldest() noexcept {
  const bool is_fresh_old = age_of_fresh_.HasPassed(fresh_, turn_time_);
  const bool is_migrant_old = age_of_migrants_.HasPassed(migrants_, turn_time_);
  if ((is_fresh_old && fresh_.size() >= kShareFromMin) || (is_migrant_old && migrants() != 0)) {
    Share();
  }
}

void Carrier::FireTimers() noexcept {
  auto fire = [](TimerNode& node) {
    node.has_expired = true;
    if (node.thread->governing() == &node) node.thread->Interrupt(Wake::kExpired);
  };
  while (TimerNode* const node = heap_.PopExpired(turn_time_)) fire(*node);
  while (TimerNode* const node = wheel_.PopExpired(turn_time_)) fire(*node);
}

bool Carrier::ArmTimer(TimerNode& node) noexcept {
  // `turn_time_` may be a turn old: a deadline that has passed meanwhile is noticed at the end of
  // this turn.
  if (node.deadline <= turn_time_) return false;
  if (node.is_precise) {
    heap_.Add(node);
  } else {
    wheel_.Add(node);
  }
  return true;
}

void Carrier::DisarmTimer(TimerNode& node) noexcept {
  if (node.place == TimerNode::Place::kHeap) {
    heap_.Remove(node);
  } else {
    wheel_.Remove(node);
  }
}

Deadline Carrier::NextWake() const noexcept {
  return AtNanoseconds(std::min(heap_.NextWake(), wheel_.NextWake()));
}

void Carrier::Share() noexcept {
  if (runtime_.idle().has_sleepers()) runtime_.WakeOneToSearch();
}

void Carrier::Give(Task& task) noexcept {
  intake_.Push(task);
  Ring();
}

Task* Carrier::TakeFresh() noexcept {
  Task* const task = ++fresh_picks_ % kOldestEvery == 0 ? fresh_.TakeOldest() : fresh_.TakeNewest();
  if (task == nullptr) return nullptr;
  if (__builtin_expect(cancels_taken_ || task->has_own_size(), 0)) return TakeSpecial(*task);
  return task;
}

Task* Carrier::TakeSpecial(Task& task) noexcept {
  if (cancels_taken_) task.Cancel();
  if (!task.has_own_size() || CanStart(task)) return &task;
  starving_.push_back(&task);
  starving_count_.set(starving_.size());
  return nullptr;
}

void Carrier::OfferStarving() noexcept {
  const auto starts = std::partition(starving_.begin(), starving_.end(),
                                     [this](const Task* task) { return !CanStart(*task); });
  for (auto task = starts; task != starving_.end(); ++task) fresh_.Push(**task);
  starving_.erase(starts, starving_.end());
  starving_count_.set(starving_.size());
}

void Carrier::OfferMigrant(Task& task) noexcept {
  // Those that must go on here hold it up as well.
  const size_t others = has_ready_own() ? 1 : 0;
  if (migrants_.Push(task) + others >= share_from_) Share();
}

Task* Carrier::TakeMigrant() noexcept {
  while (migrants_.size() != 0) {
    Task* const task = migrants_.TakeOldest();
    if (task == nullptr) continue;  // A thief was faster.
    if (__builtin_expect(cancels_taken_, 0)) task->Cancel();
    return task;
  }
  return nullptr;
}

Task* Carrier::StealFresh() noexcept {
  if (Task* const task = fresh_.Steal()) return task;
  // What was given to a carrier that is being woken is its own: it has not had the time to look.
  return state() == State::kAwake ? intake_.Pop() : nullptr;
}

void Carrier::DrainIntake() noexcept {
  while (Task* const task = intake_.Pop()) fresh_.Push(*task);
}

size_t Carrier::LootFrom(const Carrier& victim) noexcept {
  const uint64_t progress = victim.counters_.picks.value() + victim.counts_.spawned.value();
  return loot_[static_cast<size_t>(victim.index_)].Take(
      victim.fresh_.size(), victim.run_length_.nanoseconds(), progress, turn_time_);
}

bool Carrier::SparesAnybody() const noexcept {
  return std::any_of(loot_.begin(), loot_.end(),
                     [](const Loot& loot) { return loot.is_spared(); });
}

size_t Carrier::StealFreshFrom(Carrier& victim) noexcept {
  const size_t wanted = LootFrom(victim);
  size_t taken = 0;
  for (; taken < wanted; ++taken) {
    Task* const task = victim.StealFresh();
    if (task == nullptr) break;
    fresh_.Push(*task);
  }
  counts_.stolen.add(taken);
  return taken;
}

size_t Carrier::StealMigrantsFrom(Carrier& victim) noexcept {
  const size_t wanted = Loot::ShareOf(victim.migrants_.size());
  size_t taken = 0;
  for (; taken < wanted; ++taken) {
    Task* const task = victim.migrants_.Steal();
    if (task == nullptr) break;
    // It still belongs to nobody: whoever picks it, here or elsewhere, makes it its own.
    migrants_.Push(*task);
  }
  if (taken != 0) QueueMigrants();
  counts_.migrated.add(taken);
  return taken;
}

bool Carrier::StealWork() noexcept {
  const int count = runtime_.carrier_count();
  for (int i = 1; i < count; ++i) {
    Carrier& victim = runtime_.carrier((index_ + i) % count);
    if (StealMigrantsFrom(victim) == 0 && (!CanStart() || StealFreshFrom(victim) == 0)) continue;
    if (victim.HasStealable() && runtime_.idle().has_sleepers()) runtime_.WakeOneToSearch();
    return true;
  }
  return false;
}

void Carrier::Ring() noexcept { WakeIfAsleep(State::kNotified); }

bool Carrier::WakeIfAsleep(State as) noexcept {
  State state = state_.load();
  if (state != State::kAsleep) return false;
  if (!state_.compare_exchange_strong(state, as)) return false;
  poller_->Wake();
  return true;
}

bool Carrier::FindsWorkOrdered() noexcept {
  if (!InboxIsEmptyOrdered() || !intake_.IsEmptyOrdered()) return true;
  if (is_cancel_requested_.load() || is_end_requested_.load()) return true;
  if (is_dump_requested_.load()) return true;
  for (int i = 0; i < runtime_.carrier_count(); ++i) {
    Carrier& carrier = runtime_.carrier(i);
    // A carrier with an intake that is not awake is about to be: whoever has given owes it a wake.
    const bool has_intake = !carrier.intake_.IsEmptyOrdered() && carrier.state() == State::kAwake;
    const bool is_spared = loot_[static_cast<size_t>(i)].is_spared();
    const bool has_fresh = !is_spared && !carrier.fresh_.IsEmptyOrdered();
    if ((has_intake || has_fresh) && CanStart()) return true;
    if (!carrier.migrants_.IsEmptyOrdered()) return true;
  }
  return false;
}

void Carrier::Sleep() noexcept {
  PublishGauges();
  state_.exchange(State::kAsleep);
  if (FindsWorkOrdered()) {
    const State as = state_.exchange(State::kAwake);
    if (as != State::kAsleep) counts_.woken.add(1);
    if (as == State::kSummoned) runtime_.idle().GiveTokenBack();
    return;
  }
  // Who spares somebody looks again soon by itself, and is not to be woken for what it spares.
  const bool dozes = SparesAnybody();
  if (!dozes) runtime_.idle().FellAsleep();
  runtime_.CarrierIsIdle();
  counts_.sleeps.add(1);
  Deadline until = NextWake();
  if (stacks().size() > kStacksKept || has_idle_sized_stacks())
    until = std::min(until, AtNanoseconds(trim_period_end_));
  if (has_cold_stacks_) until = std::min(until, AtNanoseconds(turn_time_ + kTurnNanoseconds));
  // New threads without a stack wait for other carriers' to end; nobody rings for that.
  if (fresh_.size() != 0 || !starving_.empty())
    until = std::min(until, AtNanoseconds(turn_time_ + kStackRetryNanoseconds));
  if (dozes) until = std::min(until, AtNanoseconds(turn_time_ + kSpareNanoseconds));
  poller_->PollUntil(until);
  if (!dozes) runtime_.idle().WokeUp();
  const State as = state_.exchange(State::kAwake);
  if (as != State::kAsleep) counts_.woken.add(1);
  runtime_.CarrierIsBusy();
  turn_time_ = Now();
  if (as == State::kSummoned) {
    if (!has_ready()) StealWork();
    runtime_.idle().GiveTokenBack();
  }
}

void Carrier::TrimStacks() noexcept {
  if (turn_time_ >= trim_period_end_) {
    EndStackPeriod();
    trim_period_end_ = turn_time_ + kTrimPeriodNanoseconds;
    has_cold_stacks_ = true;
  }
  if (has_cold_stacks_) has_cold_stacks_ = TrimIdleStacks(kTrimBatch);
}

void Carrier::RequestCancelAll() noexcept {
  is_cancel_requested_.store(true);
  Ring();
}

void Carrier::RequestEnd() noexcept {
  is_end_requested_.store(true);
  Ring();
}

void Carrier::RequestDump(std::shared_ptr<DumpPart> part) noexcept {
  {
    SpinLockHolder hold(dump_lock_);
    if (has_ended_) return part->Finish();
    dump_parts_.push_back(std::move(part));
  }
  is_dump_requested_.store(true);
  Ring();
}

void Carrier::TakeDumpPart() noexcept {
  if (dump_part_ != nullptr) return;
  SpinLockHolder hold(dump_lock_);
  if (!dump_parts_.empty()) {
    dump_part_ = std::move(dump_parts_.back());
    dump_parts_.pop_back();
  }
  if (dump_parts_.empty()) is_dump_requested_.store(false);
}

void Carrier::ContinueDump(const Thread* running) noexcept {
  // Those that are ready here are described here.
  KeepMigrants();
  if (!dump_part_->Continue(*this, running)) return;
  dump_part_->Finish();
  dump_part_ = nullptr;
}

void Carrier::DescribeFromInside() noexcept {
  const Thread& self = Current();
  if (is_dump_requested_.load()) TakeDumpPart();
  while (dump_part_ != nullptr) ContinueDump(&self);
}

void Carrier::EndDumps() noexcept {
  std::vector<std::shared_ptr<DumpPart>> unfinished;
  {
    SpinLockHolder hold(dump_lock_);
    has_ended_ = true;
    unfinished = std::exchange(dump_parts_, {});
  }
  if (dump_part_ != nullptr) unfinished.push_back(std::exchange(dump_part_, nullptr));
  for (const std::shared_ptr<DumpPart>& part : unfinished) part->Finish();
}

void Carrier::ObeyRequests() noexcept {
  ForkGuard::CheckNotForked();
  // relaxed: a request that is missed here is seen before the next sleep.
  if (__builtin_expect(is_dump_requested_.load(std::memory_order_relaxed), 0)) TakeDumpPart();
  if (__builtin_expect(dump_part_ != nullptr, 0)) ContinueDump(nullptr);
  // relaxed: a request that is missed here is seen before the next sleep.
  if (__builtin_expect(!is_cancel_requested_.load(std::memory_order_relaxed), 1)) return;
  is_cancel_requested_.store(false);
  CancelAll();
}

void Carrier::CancelAll() noexcept {
  cancels_taken_ = true;
  runtime_.tasks().ForEach([this](Task& task) {
    // In this order: a block that is used anew says so before it belongs to anybody.
    const Phase phase = task.state().phase();
    if (phase == Phase::kFresh || phase == Phase::kDone || task.dispatcher() != this) return;
    task.Cancel();
  });
}

bool Carrier::MayEnd() noexcept {
  // relaxed: a request that is missed here is seen before the next sleep.
  if (__builtin_expect(!is_end_requested_.load(std::memory_order_relaxed), 1)) return false;
  if (poller_->in_flight() != 0) {
    poller_->CancelAll();
    poller_->PollUntil(Deadline::After(std::chrono::milliseconds(10)));
    return false;
  }
  return true;
}

void Carrier::PublishGauges() noexcept {
  timers_armed_.set(wheel_.size() + heap_.size());
  in_flight_.set(poller_->in_flight());
}

}  // namespace bobbin::internal
