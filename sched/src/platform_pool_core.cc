// SPDX-License-Identifier: Apache-2.0

#include "sched/src/platform_pool_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/thread_signal.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/local.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>

#include "sched/src/limits.h"
#include "sched/src/now.h"

namespace bobbin::internal {

namespace {

constexpr WaitKind kWorkWait = {"platform pool's next task", WaitObject::kNone};
constexpr WaitKind kPoolEndWait = {"platform pool's end", WaitObject::kNone};

// A shorter keep-alive would have threads end and start without pause.
constexpr std::chrono::milliseconds kKeepAliveMin(1);
// So that the sum with a number of threads does not overflow.
constexpr size_t kQueueMaxMax = size_t{1} << 40;

// The pool that a platform thread belongs to.
VthreadLocal<const PlatformPoolCore*> own_pool;

PlatformPoolOptions Completed(PlatformPoolOptions options) {
  if (options.thread_name_prefix.empty()) options.thread_name_prefix = options.name + "-";
  if (options.threads_max == 0) options.threads_max = options.threads;
  BOBBIN_CHECK(options.threads >= 1, "a platform pool has at least one thread");
  BOBBIN_CHECK(options.threads_max >= options.threads, "threads_max is smaller than threads");
  BOBBIN_CHECK(options.threads_max <= PlatformPool::kThreadsMax, "too many platform threads");
  options.queue_max = std::min(options.queue_max, kQueueMaxMax);
  options.keep_alive = std::max<std::chrono::nanoseconds>(options.keep_alive, kKeepAliveMin);
  return options;
}

}  // namespace

PlatformPoolCore::PlatformPoolCore(PlatformPoolOptions options, Runtime* runtime)
    : options_(Completed(std::move(options))),
      runtime_(runtime),
      places_(options_.threads_max) {
  idle_.reserve(places_.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i].name = options_.thread_name_prefix + std::to_string(i + 1);
  }
}

// --- Submitting.

Offered PlatformPoolCore::Offer(PoolTask& task, Admission admission) noexcept {
  WakeList woken;
  PoolThread* to_start = nullptr;
  PoolTask* oldest = nullptr;
  uint64_t number;
  task.offered_at_ = MonotonicNow();
  {
    SpinLockHolder hold(lock_);
    if (is_shut_down_) return Offered::kShutDown;
    if (queued_ >= coming_ && !ClaimIdle(woken)) {
      const bool is_full = queued_ >= options_.queue_max + coming_;
      if (threads_ < options_.threads || is_full) to_start = ReserveThread();
      if (to_start == nullptr && is_full && admission == Admission::kBounded) {
        const Offered verdict = Reject(oldest);
        if (verdict != Offered::kAccepted) return verdict;
      }
    }
    number = task.number_ = ++last_number_;
    PushBack(task);
  }
  // From here on the task may be gone.
  woken.Dispatch();
  if (oldest != nullptr) {
    oldest->Discard(MakeStatus(absl::StatusCode::kResourceExhausted,
                               fmt::format("run on \"{}\": dropped for a newer task", name())));
  }
  if (to_start != nullptr && !StartThread(*to_start) && GiveUpThread(*to_start, number)) {
    return Offered::kNoThread;
  }
  return Offered::kAccepted;
}

Offered PlatformPoolCore::Reject(PoolTask*& oldest) noexcept {
  const Role role = CurrentRole();
  switch (options_.rejection) {
    case Rejection::kAbort:
      break;
    case Rejection::kCallerRuns:
      if (role != Role::kPlatform && role != Role::kForeign) break;
      ++counts_.ran_by_caller;
      return Offered::kRunByCaller;
    case Rejection::kDiscard:
      ++counts_.discarded;
      return Offered::kDropped;
    case Rejection::kDiscardOldest:
      oldest = PopFront();
      if (oldest == nullptr) break;
      ++counts_.discarded;
      return Offered::kAccepted;
  }
  ++counts_.rejected;
  return Offered::kRefused;
}

absl::Status PlatformPoolCore::StatusOf(Offered offered) const {
  const auto status = [this](absl::StatusCode code, std::string_view cause) {
    return MakeStatus(code, fmt::format("run on \"{}\": {}", name(), cause));
  };
  switch (offered) {
    case Offered::kAccepted:
    case Offered::kRunByCaller:
      return absl::OkStatus();
    case Offered::kRefused:
    case Offered::kDropped:
      return status(absl::StatusCode::kResourceExhausted,
                    "all threads are busy, the queue is full");
    case Offered::kNoThread:
      return status(absl::StatusCode::kResourceExhausted, "the system gives no thread");
    case Offered::kShutDown:
      return status(absl::StatusCode::kUnavailable, "the pool is shut down");
  }
  return absl::OkStatus();
}

bool PlatformPoolCore::TakeBack(PoolTask& task) noexcept {
  SpinLockHolder hold(lock_);
  if (!task.is_linked()) return false;
  queue_.Remove(task);
  --queued_;
  ++counts_.taken_back;
  return true;
}

bool PlatformPoolCore::IsOwnThread() const noexcept {
  return CurrentRole() == Role::kPlatform && *own_pool == this;
}

PlatformPoolStatistics PlatformPoolCore::Statistics() const noexcept {
  SpinLockHolder hold(lock_);
  PlatformPoolStatistics statistics = counts_;
  statistics.threads = threads_;
  statistics.queued = queued_;
  return statistics;
}

bool PlatformPoolCore::is_shut_down() const noexcept {
  SpinLockHolder hold(lock_);
  return is_shut_down_;
}

void PlatformPoolCore::PushBack(PoolTask& task) noexcept {
  queue_.PushBack(task);
  ++queued_;
}

PoolTask* PlatformPoolCore::PopFront() noexcept {
  PoolTask* const task = queue_.PopFront();
  if (task != nullptr) --queued_;
  return task;
}

// --- Starting and waking threads.

bool PlatformPoolCore::ClaimIdle(WakeList& woken) noexcept {
  if (idle_.empty()) return false;
  PoolThread& thread = *idle_.back();
  idle_.pop_back();
  thread.state = PoolThread::State::kComing;
  ++coming_;
  // Lost if its keep-alive has just passed: then it comes by itself.
  if (thread.waiter->TryNotify()) woken.Add(*thread.waiter);
  return true;
}

PlatformPoolCore::PoolThread* PlatformPoolCore::ReserveThread() noexcept {
  if (threads_ == places_.size()) return nullptr;
  const auto free = std::find_if(places_.begin(), places_.end(), [](const PoolThread& thread) {
    return thread.state == PoolThread::State::kFree;
  });
  BOBBIN_CHECK(free != places_.end() && !free->is_being_started, "a pool miscounted its threads");
  free->state = PoolThread::State::kComing;
  free->is_being_started = true;
  ++threads_;
  ++coming_;
  ++starters_;
  counts_.threads_peak = std::max(counts_.threads_peak, threads_);
  return &*free;
}

bool PlatformPoolCore::StartThread(PoolThread& thread) noexcept {
  if (thread.handle.is_joinable()) thread.handle.Join();  // The one before it, which has ended.
  absl::StatusOr<OsThreadHandle> started = OsThreadHandle::TryStart(
      thread.name, [self = shared_from_this(), &thread] { self->Serve(thread); });
  if (!started.ok()) return false;

  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    thread.handle = *std::move(started);
    if (is_abandoned_) thread.handle.Detach();
    thread.is_being_started = false;
    --starters_;
    NoteIfEnded(woken);
  }
  woken.Dispatch();
  return true;
}

bool PlatformPoolCore::GiveUpThread(PoolThread& thread, uint64_t number) noexcept {
  WakeList woken;
  TaskList stranded;
  bool has_found = false;
  {
    SpinLockHolder hold(lock_);
    thread.state = PoolThread::State::kFree;
    thread.is_being_started = false;
    --threads_;
    --coming_;
    --starters_;
    NoteIfEnded(woken);
    while (PoolTask* const task = threads_ == 0 ? PopFront() : nullptr) {
      if (task->number_ == number) {
        has_found = true;
        ++counts_.rejected;
      } else {
        stranded.PushBack(*task);
        ++counts_.discarded;
      }
    }
  }
  woken.Dispatch();
  while (PoolTask* const task = stranded.PopFront()) task->Discard(StatusOf(Offered::kNoThread));
  return has_found;
}

// --- On a thread of the pool.

void PlatformPoolCore::Serve(PoolThread& self) noexcept {
  static_cast<OsThread&>(Current()).Describe(Role::kPlatform, self.name, runtime_);
  ThreadSignal::AdmitHere();
  *own_pool = this;
  while (PoolTask* const task = NextTask(self)) {
    task->Run();
    CountFinished(self);
    task->Finish();
  }
}

PoolTask* PlatformPoolCore::NextTask(PoolThread& self) noexcept {
  bool is_overdue = false;
  while (true) {
    Waiter waiter(kWorkWait);
    WakeList woken;
    bool is_excess;
    bool ends;
    {
      SpinLockHolder hold(lock_);
      --coming_;
      if (PoolTask* const task = PopFront()) {
        Begin(self, *task);
        return task;
      }
      is_excess = threads_ > options_.threads;
      ends = is_shut_down_ || (is_overdue && is_excess && !self.is_being_started);
      if (ends) {
        End(self, woken);
      } else {
        self.state = PoolThread::State::kIdle;
        self.waiter = &waiter;
        waiter.BeginWait(Phase::kWaiting);
        idle_.push_back(&self);
      }
    }
    woken.Dispatch();
    if (ends) return nullptr;
    is_overdue = !AwaitClaim(self, waiter, is_excess);
  }
}

bool PlatformPoolCore::AwaitClaim(PoolThread& self, Waiter& waiter, bool is_excess) noexcept {
  std::optional<DeadlineScope> keep_alive;
  if (is_excess) keep_alive.emplace(options_.keep_alive);
  if (waiter.Park() == Wake::kNotified) return true;
  SpinLockHolder hold(lock_);
  // Unless ClaimIdle has just done it.
  if (self.state == PoolThread::State::kIdle) {
    std::erase(idle_, &self);
    self.state = PoolThread::State::kComing;
    ++coming_;
  }
  return false;
}

void PlatformPoolCore::Begin(PoolThread& self, PoolTask& task) noexcept {
  self.state = PoolThread::State::kBusy;
  ++counts_.active;
  Business& business = self.business;
  business = Business{.since = MonotonicNow()};
  const std::chrono::nanoseconds waited = business.since - task.offered_at_;
  counts_.wait_total += waited;
  counts_.wait_max = std::max(counts_.wait_max, waited);

  // The caller's name is copied while it must wait: a report may come when it is gone.
  const Thread* const caller = task.caller();
  if (caller == nullptr) return;
  business.has_caller = true;
  business.caller_role = caller->role();
  std::string_view name;
  if (caller->role() == Role::kVirtual) {
    const auto& virtual_thread = static_cast<const Task&>(*caller);
    business.caller_id = virtual_thread.id();
    name = virtual_thread.name();
  } else {
    name = static_cast<const OsThread&>(*caller).name();
  }
  std::copy_n(name.data(), std::min(name.size(), business.caller_name.size() - 1),
              business.caller_name.begin());
}

void PlatformPoolCore::CountFinished(PoolThread& self) noexcept {
  const MonotonicTime now = MonotonicNow();
  SpinLockHolder hold(lock_);
  self.state = PoolThread::State::kComing;
  ++coming_;
  --counts_.active;
  ++counts_.completed;
  const std::chrono::nanoseconds ran = now - self.business.since;
  counts_.run_total += ran;
  counts_.run_max = std::max(counts_.run_max, ran);
}

void PlatformPoolCore::End(PoolThread& self, WakeList& woken) noexcept {
  self.state = PoolThread::State::kFree;
  --threads_;
  NoteIfEnded(woken);
}

void PlatformPoolCore::NoteIfEnded(WakeList& woken) noexcept {
  if (!HasEnded()) return;
  while (Waiter* const waiter = end_waiters_.ClaimFront()) woken.Add(*waiter);
}

// --- Shutdown.

absl::Status PlatformPoolCore::Shutdown() { return Shutdown(options_.shutdown_budget); }

absl::Status PlatformPoolCore::Shutdown(std::chrono::nanoseconds budget) {
  BOBBIN_CHECK(!IsOwnThread(), "a platform pool is shut down by one of its own threads");
  const CancelShield shield;
  const MutexLock once(shutdown_mutex_);
  if (shutdown_result_.has_value()) return *shutdown_result_;
  Close();
  {
    const DeadlineScope scope(budget);
    shutdown_result_ = AwaitEnd() ? absl::OkStatus() : Abandon(budget);
  }
  JoinEnded();
  return *shutdown_result_;
}

void PlatformPoolCore::Close() noexcept {
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    is_shut_down_ = true;
    while (ClaimIdle(woken)) continue;
  }
  woken.Dispatch();
}

bool PlatformPoolCore::AwaitEnd() noexcept {
  Waiter self(kPoolEndWait);
  {
    SpinLockHolder hold(lock_);
    if (HasEnded()) return true;
    end_waiters_.PushBack(self);
  }
  if (self.Park() == Wake::kNotified) return true;
  SpinLockHolder hold(lock_);
  end_waiters_.Forget(self);
  return HasEnded();
}

absl::Status PlatformPoolCore::Abandon(std::chrono::nanoseconds budget) {
  struct Stuck {
    const std::string* name;
    Business business;
  };
  std::vector<Stuck> stuck;
  stuck.reserve(places_.size());
  TaskList dropped;
  size_t dropped_count = 0;
  {
    SpinLockHolder hold(lock_);
    is_abandoned_ = true;
    for (PoolThread& thread : places_) {
      if (thread.state == PoolThread::State::kBusy)
        stuck.push_back({&thread.name, thread.business});
      if (thread.state != PoolThread::State::kFree && thread.handle.is_joinable()) {
        thread.handle.Detach();
      }
    }
    while (PoolTask* const task = PopFront()) {
      dropped.PushBack(*task);
      ++dropped_count;
    }
    counts_.discarded += dropped_count;
  }
  while (PoolTask* const task = dropped.PopFront()) {
    task->Discard(StatusOf(Offered::kShutDown));
  }

  std::string text = fmt::format("shut down \"{}\": {} still running after {:.3f} s", name(),
                                 stuck.size(), Seconds(budget));
  const MonotonicTime now = MonotonicNow();
  for (size_t i = 0; i < std::min(stuck.size(), kNamedInReport); ++i) {
    const Business& business = stuck[i].business;
    text += fmt::format("{} \"{}\" for {:.3f} s", i == 0 ? ":" : ",", *stuck[i].name,
                        Seconds(now - business.since));
    if (!business.has_caller) continue;
    text += fmt::format(", called by {} thread", RoleName(business.caller_role));
    if (business.caller_name[0] != '\0') {
      text += fmt::format(" \"{}\"", business.caller_name.data());
    }
    if (business.caller_id != 0) text += fmt::format(" (id {})", business.caller_id);
  }
  if (dropped_count != 0) text += fmt::format("; {} queued were dropped", dropped_count);
  return MakeStatus(absl::StatusCode::kDeadlineExceeded, text);
}

void PlatformPoolCore::JoinEnded() noexcept {
  for (PoolThread& thread : places_) {
    bool has_ended;
    {
      SpinLockHolder hold(lock_);
      has_ended = thread.state == PoolThread::State::kFree && !thread.is_being_started &&
                  thread.handle.is_joinable();
    }
    if (has_ended) thread.handle.Join();  // It only has to leave its last function.
  }
}

}  // namespace bobbin::internal
