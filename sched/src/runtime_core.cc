// SPDX-License-Identifier: Apache-2.0

#include "sched/src/runtime_core.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "fmt/format.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/stack_overflow.h>
#include <bobbin/core/internal/thread_signal.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/keys.h>

#include "sched/src/current_runtime.h"
#include "sched/src/dump.h"
#include "sched/src/fork_guard.h"
#include "sched/src/futex_poller.h"
#include "sched/src/limits.h"
#include "sched/src/platform_pool_core.h"

namespace bobbin::internal {

namespace {

int CarrierCount(int wanted) {
  BOBBIN_CHECK(wanted >= 0 && wanted <= kCarriersMax, "carriers: 0 to 1024");
  return wanted == 0 ? std::min(UsableCpus(), kCarriersMax) : wanted;
}

// Where guards are scarce, a carrier must not sit on many idle stacks that another one waits for.
size_t LiveMax(const RuntimeOptions& options, const StackPool& stacks, int carriers) {
  if (!stacks.is_limited()) return options.virtual_threads_max;
  const size_t stranded = static_cast<size_t>(carriers) * stacks.cached_max();
  const size_t startable = stacks.stacks_max() - std::min(stacks.stacks_max() - 1, stranded);
  return std::min(options.virtual_threads_max, startable);
}

constexpr WaitKind kIdleWait = {"idle runtime", WaitObject::kNone};

}  // namespace

RuntimeCore::RuntimeCore(Runtime& facade, RuntimeOptions options)
    : facade_(facade),
      options_(std::move(options)),
      carrier_count_(CarrierCount(options_.carriers)),
      process_(getpid()),
      stacks_(
          {.stack_bytes = options_.stack_bytes, .force_mprotect = options_.forces_mprotect_guards}),
      tasks_(std::max(options_.virtual_threads_max, kTasksMin)),
      live_max_(std::min(LiveMax(options_, stacks_, carrier_count_), tasks_.tasks_max())),
      monitor_(*this, options_.watchdog, options_.deadlock),
      executors_(facade, std::move(options_.executors)),
      lifecycle_(*this, options_.shutdown_budget) {
  ForkGuard::CheckNotForked();
  InstallStackOverflowReport();
  if (options_.thread_signal != 0) ThreadSignal::Install(options_.thread_signal);
  SetDumpHook(&DumpForFailedCheck);
  if (live_max_ < kTasksMin) {
    live_limit_ = std::make_unique<Semaphore>(static_cast<int64_t>(live_max_));
  }
  for (int i = 0; i < carrier_count_; ++i) {
    auto poller = options_.poller ? options_.poller() : std::make_unique<FutexPoller>();
    carriers_.push_back(std::make_unique<Carrier>(*this, i, std::move(poller)));
    carriers_.back()->set_live_limit(live_limit_.get());
  }
  RegisterRuntime(*this);
}

RuntimeCore::~RuntimeCore() {
  UnregisterRuntime(*this);
  BOBBIN_CHECK(threads_.empty(), "a runtime is destroyed before its carriers have ended");
  for (const auto& carrier : carriers_) carrier->AwaitGuests();
}

absl::Status RuntimeCore::Configure() {
  BOBBIN_RETURN_IF_ERROR(executors_.CheckConfiguration());
  BOBBIN_ASSIGN_OR_RETURN(const std::optional<absl::Duration> budget,
                          executors_.configuration().Find(keys::kShutdownBudget));
  if (!budget.has_value()) return absl::OkStatus();
  options_.shutdown_budget = absl::ToChronoNanoseconds(*budget);
  lifecycle_.set_budget(options_.shutdown_budget);
  return absl::OkStatus();
}

absl::Status RuntimeCore::Start() {
  if (absl::Status mistake = Configure(); !mistake.ok()) {
    is_stopped_.store(true);
    return mistake;
  }
  unreported_.Add(carrier_count_);
  for (int i = 0; i < carrier_count_; ++i) {
    threads_.emplace_back(fmt::format("carrier-{}", i), [this, i] { carrier(i).Run(); });
    if (options_.pins_carriers) threads_.back().PinToUsableCpu(i);
  }
  const CancelShield shield;
  BOBBIN_CHECK(unreported_.Wait().ok(), "nothing ends a shielded wait but its notify");
  absl::Status status;
  {
    SpinLockHolder hold(start_lock_);
    status = start_status_;
  }
  may_go_on_.Set();
  if (!status.ok()) {
    for (OsThreadHandle& thread : threads_) thread.Join();
    threads_.clear();
    is_stopped_.store(true);
    return status;
  }
  monitor_.Start();
  return absl::OkStatus();
}

bool RuntimeCore::CarrierStarted(absl::Status status) noexcept {
  {
    SpinLockHolder hold(start_lock_);
    start_status_.Update(std::move(status));
  }
  unreported_.Done();
  BOBBIN_CHECK(may_go_on_.Wait().ok(), "nobody asks a carrier to stop");
  SpinLockHolder hold(start_lock_);
  return start_status_.ok();
}

Task* RuntimeCore::AllocateTask(std::string_view name) {
  // relaxed: a spawn that races with Shutdown is the caller's race.
  BOBBIN_CHECK(!is_stopped_.load(std::memory_order_relaxed), "Spawn on a runtime that has ended");
  Task* task;
  if (Carrier* const here = OwnCarrier()) {
    task = here->NewTask(name);
  } else {
    task = tasks_.Allocate(1).first;
    if (task != nullptr) task->Prepare(tasks_.TakeIds(1), name);
  }
  if (task == nullptr && live_limit_ != nullptr) live_limit_->Release();
  return task;
}

bool RuntimeCore::IsOutOfStacks() noexcept {
  return __builtin_expect(stacks_.is_exhausted(), 0) && Live() >= stacks_.carved() + SizedLive();
}

size_t RuntimeCore::SizedLive() noexcept {
  size_t live = 0;
  stacks_.ForEachSize([&](const StackPool& pool) { live += pool.claimed(); });
  return live;
}

Task* RuntimeCore::TryNewTask(std::string_view name) {
  if (IsOutOfStacks() || (live_limit_ != nullptr && !live_limit_->TryAcquire())) {
    limited_.fetch_add(1);
    return nullptr;
  }
  return AllocateTask(name);
}

Task* RuntimeCore::NewTask(std::string_view name) {
  if (live_limit_ != nullptr && !live_limit_->TryAcquire()) {
    limited_.fetch_add(1);
    waiting_for_limit_.fetch_add(1);
    const CancelShield shield;
    BOBBIN_CHECK(live_limit_->Acquire().ok(), "nothing ends a shielded wait but its notify");
    waiting_for_limit_.fetch_sub(1);
  }
  return AllocateTask(name);
}

Task* RuntimeCore::TryNewSizedTask(std::string_view name, size_t stack_bytes) {
  const size_t size_class = stacks_.ClassOf(stack_bytes);
  if (size_class == 0) return TryNewTask(name);
  StackPool& pool = stacks_.OfClass(size_class);
  if (!pool.TryClaim()) {
    limited_.fetch_add(1);
    return nullptr;
  }
  Task* const task = TryNewTask(name);
  if (task == nullptr) {
    pool.Unclaim();
  } else {
    task->set_size_class(size_class);
  }
  return task;
}

Task* RuntimeCore::NewSizedTask(std::string_view name, size_t stack_bytes) {
  const size_t size_class = stacks_.ClassOf(stack_bytes);
  Task* const task = NewTask(name);
  if (task != nullptr && size_class != 0) {
    stacks_.OfClass(size_class).Claim();
    task->set_size_class(size_class);
  }
  return task;
}

absl::Status RuntimeCore::WhyNoTask(size_t stack_bytes) {
  if (stack_bytes != 0 && !StackPool::IsSize(stack_bytes)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("spawn: stack_bytes is {}; from 16 KiB to 64 MiB", stack_bytes));
  }
  if (const size_t size_class = stack_bytes == 0 ? 0 : stacks_.ClassOf(stack_bytes)) {
    StackPool& pool = stacks_.OfClass(size_class);
    if (pool.claimed() >= (pool.is_exhausted() ? pool.carved() : pool.stacks_max())) {
      return MakeStatus(
          absl::StatusCode::kResourceExhausted,
          fmt::format("spawn: {} virtual threads have stacks of {} KiB, and there are no more: {}",
                      pool.claimed(), pool.stack_bytes() >> 10,
                      pool.is_limited() ? "each guard page splits a mapping here: raise "
                                          "vm.max_map_count, or use kernel 6.13"
                                        : "raise RLIMIT_AS (ulimit -v)"));
    }
  }
  std::string message;
  if (IsOutOfStacks() && !stacks_.is_limited()) {
    message = fmt::format(
        "spawn: no address space for more than {} stacks of {} KiB: raise RLIMIT_AS (ulimit -v), "
        "or "
        "lower RuntimeOptions::stack_bytes",
        stacks_.carved(), stacks_.stack_bytes() >> 10);
  } else {
    message = fmt::format("spawn: the limit of {} live virtual threads is reached", live_max_);
    if (stacks_.is_limited()) {
      message +=
          " (each guard page splits a mapping here: raise vm.max_map_count, or use kernel 6.13)";
    }
  }
  return MakeStatus(absl::StatusCode::kResourceExhausted, message);
}

void RuntimeCore::Launch(Task& task, Placement placement) noexcept {
  Carrier* const here = OwnCarrier();
  if (here != nullptr && placement == Placement::kHere) {
    here->PushFresh(task);
    return;
  }
  ForkGuard::CheckNotForked();
  // relaxed: any order of turns will do.
  const uint64_t turn = next_carrier_.fetch_add(1, std::memory_order_relaxed);
  Carrier& target = carrier(static_cast<int>(turn % static_cast<uint64_t>(carrier_count_)));
  if (here == nullptr) {
    spawned_outside_.fetch_add(1);
  } else if (here == &target) {
    here->PushFresh(task);
    return;
  } else {
    here->counters().spawned.add(1);
  }
  target.Give(task);
}

void RuntimeCore::WakeOneToSearch() noexcept {
  if (!idle_.TryTakeToken()) return;
  for (const auto& carrier : carriers_) {
    if (carrier->WakeIfAsleep(Carrier::State::kSummoned)) return;
  }
  idle_.GiveTokenBack();
}

uint64_t RuntimeCore::Live() const noexcept {
  uint64_t ended = 0;
  for (const auto& carrier : carriers_) ended += carrier->dispatch_counters().ended.value();
  uint64_t spawned = spawned_outside_.load();
  for (const auto& carrier : carriers_) spawned += carrier->counters().spawned.value();
  return spawned - ended;
}

uint64_t RuntimeCore::Busy() const noexcept {
  // In this order: who is taken off keeps house all the while. Who begins or ends meanwhile has its
  // carrier look again before it sleeps.
  const uint64_t begun = housekeepers_begun_.load();
  const uint64_t live = Live();
  const uint64_t ended = housekeepers_ended_.load();
  return live - (begun > ended ? begun - ended : 0);
}

void RuntimeCore::CarrierIsIdle() noexcept {
  if (__builtin_expect(idle_awaited_.load() == 0, 1) || Busy() != 0) return;
  WakeList woken;
  {
    SpinLockHolder hold(idle_lock_);
    while (Waiter* const waiter = idle_waiters_.ClaimFront()) woken.Add(*waiter);
  }
  woken.Dispatch();
}

void RuntimeCore::EndPhases() noexcept {
  for (const auto& carrier : carriers_) carrier->RequestCancelAll();
  WakeList woken;
  {
    SpinLockHolder hold(idle_lock_);
    are_phases_over_ = true;
    while (Waiter* const waiter = idle_waiters_.ClaimFront()) woken.Add(*waiter);
  }
  woken.Dispatch();
}

void RuntimeCore::SeeAnnouncements() const noexcept {
  for (const auto& carrier : carriers_) static_cast<void>(carrier->state());
}

bool RuntimeCore::AwaitIdleOr(IdleWait kind) {
  idle_awaited_.fetch_add(1);
  const auto is_over = [&] {
    return (kind == IdleWait::kUntilAllHaveEnded ? Live() : Busy()) == 0;
  };
  bool is_idle = false;
  while (!is_idle) {
    Waiter self(kIdleWait);
    if (self.thread().ShouldStop()) {
      is_idle = is_over();
      break;
    }
    {
      SpinLockHolder hold(idle_lock_);
      if (kind == IdleWait::kUntilIdleOrStop && are_phases_over_) break;
      idle_waiters_.PushBack(self);
    }
    // The last one may have ended before anybody knew that it was awaited.
    SeeAnnouncements();
    if (is_over()) CarrierIsIdle();
    const Wake wake = self.Park();
    if (wake != Wake::kNotified) {
      SpinLockHolder hold(idle_lock_);
      idle_waiters_.Forget(self);
    }
    is_idle = is_over();
    if (wake != Wake::kNotified) break;
  }
  idle_awaited_.fetch_sub(1);
  return is_idle;
}

void RuntimeCore::LiftLimit() noexcept {
  if (live_limit_ != nullptr) live_limit_->Release(kLiftedLimit);
}

absl::Status RuntimeCore::Shutdown() {
  BOBBIN_CHECK(OwnCarrier() == nullptr, "a runtime cannot be shut down from inside");
  const CancelShield shield;
  const MutexLock lock(shutdown_mutex_);
  if (shutdown_result_.has_value()) return *shutdown_result_;

  // One budget for all: what the phases leave is for the virtual threads, the pools and the
  // carriers.
  absl::Status result = lifecycle_.AwaitPhases();
  const DeadlineScope budget(lifecycle_.end());
  if (!threads_.empty() && !AwaitIdleOr(IdleWait::kUntilAllHaveEnded)) {
    result.Update(MakeStatus(absl::StatusCode::kDeadlineExceeded, NameTheLiving()));
  }
  lifecycle_.TellOfThreads(Live());
  executors_.Join(options_.shutdown_budget / 10);
  result.Update(lifecycle_.CloseResources());
  is_stopped_.store(true);
  {
    const MutexLock pool_lock(pool_mutex_);
    for (const auto& pool : pools_) {
      if (pool != nullptr) result.Update(pool->core().Shutdown(lifecycle_.TimeLeft()));
    }
  }
  monitor_.Stop();

  // A carrier whose virtual threads would not end is left as it is; the others end.
  has_abandoned_carriers_ = !result.ok() && Live() != 0;
  if (has_abandoned_carriers_) {
    for (OsThreadHandle& thread : threads_) thread.Detach();
  } else {
    for (const auto& carrier : carriers_) carrier->RequestEnd();
    for (OsThreadHandle& thread : threads_) thread.Join();
  }
  threads_.clear();
  shutdown_result_ = result;
  return result;
}

namespace {

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kIdle:
      return "is not in use";
    case Phase::kFresh:
      return "not started";
    case Phase::kRunning:
      return "runs";
    case Phase::kWaiting:
      return "waits";
    case Phase::kWaitingShielded:
      return "waits, shielded";
    case Phase::kWaitingAny:
      return "waits for one of several";
    case Phase::kWaitingKernel:
      return "waits for the kernel";
    case Phase::kNotified:
    case Phase::kExpired:
    case Phase::kCancelled:
      return "ready";
    case Phase::kDone:
      return "has ended";
  }
  return "?";
}

}  // namespace

std::string RuntimeCore::NameTheLiving() {
  std::string text = fmt::format("shut down: {} virtual threads did not end:", Live());
  size_t named = 0;
  tasks_.ForEach([&](const Task& task) {
    if (!task.IsLive() || named == kNamedInReport) return;
    ++named;
    text += fmt::format("{} \"{}\" (id {}, {})", named == 1 ? "" : ",", task.name(), task.id(),
                        PhaseName(task.state().phase()));
  });
  return text;
}

namespace {
// What has come less what has gone. A switch is counted in a few steps: in between, one more may
// seem to have gone.
uint64_t Left(uint64_t come, uint64_t gone) noexcept { return come - std::min(come, gone); }
}  // namespace

RuntimeStatistics RuntimeCore::Statistics() noexcept {
  RuntimeStatistics sum;
  // What is subtracted below is read before what it is subtracted from: nothing goes that has not
  // come, so no difference is far below zero, whatever the carriers do meanwhile.
  uint64_t earlier_picks = 0;
  for (const auto& carrier : carriers_) earlier_picks += carrier->dispatch_counters().picks.value();
  uint64_t vain_picks = 0;
  for (const auto& carrier : carriers_) {
    const DispatchCounters& dispatch = carrier->dispatch_counters();
    vain_picks += dispatch.vain_picks.value();
    sum.ended += dispatch.ended.value();
    sum.wakes += dispatch.woken.value();
    sum.remote_wakes += dispatch.posted.value();
    sum.yields += dispatch.yields.value();
    sum.running += dispatch.is_running.value();
    sum.started += dispatch.started.value();
  }
  uint64_t picks = 0;
  for (const auto& carrier : carriers_) picks += carrier->dispatch_counters().picks.value();
  sum.spawned = spawned_outside_.load();
  for (const auto& carrier : carriers_) sum.spawned += carrier->counters().spawned.value();

  // See DispatchCounters.
  sum.switches = picks - vain_picks;
  sum.parks = Left(sum.switches, sum.yields + sum.ended + sum.running);
  sum.parked = Left(sum.parks, sum.wakes);
  sum.ready = Left(sum.wakes + sum.yields + sum.started + vain_picks, earlier_picks);
  sum.fresh = sum.spawned - sum.started;

  for (const auto& carrier : carriers_) {
    sum.turns += carrier->counters().turns.value();
    sum.sleeps += carrier->counters().sleeps.value();
    sum.carrier_wakes += carrier->counters().woken.value();
    sum.stolen += carrier->counters().stolen.value();
    sum.migrated += carrier->counters().migrated.value();
    sum.timers += carrier->timers_armed();
    sum.in_flight += carrier->in_flight();
    sum.poller += carrier->poller().Statistics();
  }
  sum.computing_holds = monitor_.watchdog().computing_holds();
  sum.blocking_holds = monitor_.watchdog().blocking_holds();
  sum.deadlocks = monitor_.deadlock_watch().deadlocks();
  sum.held_carriers = monitor_.watchdog().held_carriers();
  sum.limited = limited_.load();
  sum.waiting_for_limit = waiting_for_limit_.load();
  if (stacks_.is_exhausted()) {
    sum.without_stack = Left(sum.live(), stacks_.carved() + SizedLive());
  }
  for (const auto& carrier : carriers_) sum.without_stack += carrier->starving();
  stacks_.ForEachSize([&](StackPool& pool) { sum.stacks += pool.carved(); });
  sum.sized_stacks = sum.stacks - std::min<uint64_t>(sum.stacks, stacks_.carved());
  sum.stack_bytes = stacks_.stack_bytes();
  const auto statistics_of = [this](BlockingLane lane) {
    const PlatformPool* const pool = known_pools_[static_cast<size_t>(lane)].load();
    return pool != nullptr ? pool->Statistics() : PlatformPoolStatistics{};
  };
  sum.blocking = statistics_of(BlockingLane::kGeneral);
  sum.syncing = statistics_of(BlockingLane::kSync);
  return sum;
}

StackUsage RuntimeCore::MeasureStacks() {
  StackUsage sum;
  stacks_.ForEachSize([&](StackPool& pool) {
    const StackPool::Usage usage = pool.Measure();
    sum.reserved_bytes += usage.reserved_bytes;
    sum.resident_bytes += usage.resident_bytes;
    sum.deepest_bytes = std::max(sum.deepest_bytes, usage.deepest_bytes);
  });
  return sum;
}

PlatformPool& RuntimeCore::PoolOf(BlockingLane lane) {
  constexpr std::array<const char*, kBlockingLanes> kNames = {"blocking", "sync"};
  const auto index = static_cast<size_t>(lane);
  const MutexLock lock(pool_mutex_);
  std::unique_ptr<PlatformPool>& pool = pools_[index];
  if (pool == nullptr) {
    pool = std::make_unique<PlatformPool>(PlatformPoolOptions{.name = kNames[index]});
    known_pools_[index].store(pool.get());
  }
  return *pool;
}

}  // namespace bobbin::internal
