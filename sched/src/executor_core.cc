// SPDX-License-Identifier: Apache-2.0

#include "sched/src/executor_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/spawn.h>

#include "sched/src/executor_path.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

namespace {

constexpr WaitKind kDrainWait = {"executor's tasks", WaitObject::kNone};
constexpr WaitKind kDelayWait = {"next delayed task", WaitObject::kNone};

void Add(std::chrono::nanoseconds time, std::chrono::nanoseconds& total,
         std::chrono::nanoseconds& max) {
  total += time;
  max = std::max(max, time);
}

// What tasks are counted by.
void Add(const ExecutorStatistics& part, ExecutorStatistics& sum) {
  sum.submitted += part.submitted;
  sum.completed += part.completed;
  sum.failed += part.failed;
  sum.rejected += part.rejected;
  sum.dropped += part.dropped;
  sum.abandoned += part.abandoned;
  sum.retried += part.retried;
  sum.timed += part.timed;
  sum.wait_total += part.wait_total;
  sum.wait_max = std::max(sum.wait_max, part.wait_max);
  sum.run_total += part.run_total;
  sum.run_max = std::max(sum.run_max, part.run_max);
}

}  // namespace

void FailureSink::Report(std::string_view task, const absl::Status& status,
                         std::exception_ptr exception) const noexcept {
  reported_.fetch_add(1);
  const std::string why = Outcome{.status = status, .exception = exception}.Describe();
  Tell({.level = LogLevel::kError,
        .text = fmt::format("task \"{}\" of executor \"{}\" failed: {}", task, executor_, why),
        .fields = {{"bobbin.task", task}, {"bobbin.executor", executor_}, {"error", why}}});
  if (handler_ == nullptr || !*handler_) return;
  (*handler_)(
      {.task = task, .executor = executor_, .status = status, .exception = std::move(exception)});
}

ExecutorCore::ExecutorCore(Runtime& runtime, std::string name, ThreadKind kind,
                           ExecutorOptions options, std::shared_ptr<const FailureSink> sink)
    : runtime_(runtime),
      name_(std::move(name)),
      kind_(kind),
      options_(std::move(options)),
      sink_(std::move(sink)),
      share_count_(std::min(static_cast<size_t>(runtime.core().carrier_count()) + 1, kSharesMax)),
      shares_(std::make_unique<Share[]>(share_count_)) {
  const int carriers = runtime.core().carrier_count();
  if (static_cast<size_t>(carriers) >= share_count_ || !HasHeavyFence()) return;
  for (int i = 0; i < carriers; ++i) {
    Share& share = ShareOn(&runtime.core().carrier(i));
    share.owner = &runtime.core().carrier(i);
    share.lock.AllowBias();
  }
}

ExecutorCore::~ExecutorCore() = default;

// --- The locks.

ExecutorCore::AllLocksHolder::AllLocksHolder(ExecutorCore& core) noexcept
    ABSL_NO_THREAD_SAFETY_ANALYSIS : core_(core) {
  bool is_fence_due = false;
  for (Share& share : core_.shares()) is_fence_due |= share.lock.LockWithoutFence();
  if (__builtin_expect(is_fence_due, 0)) HeavyFence();
  for (Share& share : core_.shares()) share.lock.AwaitOwner();
}

ExecutorCore::AllLocksHolder::~AllLocksHolder() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const bool is_plain = !core_.is_closed_ && core_.drained_waiters_.empty() && !core_.HasQueue();
  core_.is_plain_.store(is_plain, std::memory_order_relaxed);  // relaxed: read under a lock.
  for (Share& share : core_.shares()) share.lock.Unlock();
}

ExecutorCore::Share& ExecutorCore::ShareHere() const noexcept {
  return ShareOn(runtime_.core().OwnCarrier());
}

// --- Submitting.

bool ExecutorCore::Admit(AsyncTask& task, Entry entry) noexcept {
  if (entry == Entry::kDue) {
    if (task.is_timed_ || task.is_traced_) task.given_at_ = MonotonicNow();
    // relaxed: changes under the lock.
    return task.state_.load(std::memory_order_relaxed) == AsyncTask::State::kWaiting;
  }
  Share& share = ShareHere();
  share.AssertHeld();
  if (!is_closed_) {
    Enlist(share, task);
    return true;
  }
  ++share.counts.submitted;
  ++share.counts.rejected;
  SetState(task, AsyncTask::State::kEnded);
  return false;
}

absl::Status ExecutorCore::Refuse(AsyncTask& task, Entry entry) noexcept {
  absl::Status status;
  if (entry == Entry::kNew) {
    status = StatusFor(task, absl::StatusCode::kUnavailable, "the executor is shut down");
    task.FailUnbegun(status);
  }
  task.GiveUp();
  return status;
}

void ExecutorCore::DropFromPath(AsyncTask& task, uint64_t ExecutorStatistics::*count,
                                const absl::Status& reason) noexcept {
  WakeList woken;
  bool is_ours;
  {
    const AllLocksHolder hold(*this);
    is_ours = Claim(task, count, woken) != Claimed::kNot;
  }
  woken.Dispatch();
  if (is_ours) task.FailUnbegun(reason);
  task.GiveUp();
}

void ExecutorCore::Discarded(AsyncTask& task, const absl::Status& reason) noexcept {
  DropFromPath(task, &ExecutorStatistics::dropped,
               StatusFor(task, reason.code(), MessageOf(reason)));
}

void ExecutorCore::RunByCaller(AsyncTask& task) noexcept {
  task.is_lent_ = true;
  task.Run();
  task.Finish();
}

bool ExecutorCore::Withdraw(AsyncTask& task) noexcept {
  WakeList woken;
  Claimed claimed;
  {
    const AllLocksHolder hold(*this);
    claimed = Claim(task, &ExecutorStatistics::dropped, woken);
    if (claimed == Claimed::kNot) return false;
    EndDelaysIfNone(woken);
  }
  woken.Dispatch();
  task.FailUnbegun(StatusFor(task, absl::StatusCode::kCancelled, "it was cancelled"));
  if (claimed == Claimed::kOffPath) task.GiveUp();
  return true;
}

absl::Status ExecutorCore::StatusFor(const AsyncTask& task, absl::StatusCode code,
                                     std::string_view cause) const {
  return MakeStatus(code, fmt::format("{}: {}", task.Label(), cause));
}

// --- With locks held.

void ExecutorCore::Unlink(AsyncTask& task, WakeList& woken) noexcept {
  Share& share = ShareOf(task);
  share.AssertHeld();
  TakeOut(share, task);
  if (__builtin_expect(std::exchange(task.is_discounted_, false), 0)) --discounted_;
  WakeIfDrained(woken);
}

size_t ExecutorCore::LiveCount() const noexcept {
  size_t count = 0;
  for (const Share& share : shares()) {
    share.AssertHeld();
    count += share.live_count;
  }
  return count;
}

template <typename Visit>
void ExecutorCore::ForEachLive(Visit visit) noexcept {
  for (Share& share : shares()) {
    share.AssertHeld();
    LiveTask* live = share.live.Front();
    while (live != nullptr) {
      auto& task = static_cast<AsyncTask&>(*live);
      live = share.live.Next(*live);
      visit(task);
    }
  }
}

void ExecutorCore::WakeIfDrained(WakeList& woken) noexcept {
  if (__builtin_expect(drained_waiters_.empty(), 1) || !IsDrained()) return;
  while (Waiter* const waiter = drained_waiters_.ClaimFront()) woken.Add(*waiter);
}

ExecutorCore::Claimed ExecutorCore::Claim(AsyncTask& task, uint64_t ExecutorStatistics::*count,
                                          WakeList& woken) noexcept {
  // relaxed: only the one from kWaiting changes without the lock, and there an exchange decides.
  AsyncTask::State state = task.state_.load(std::memory_order_relaxed);
  Claimed claimed = Claimed::kNot;
  if (state == AsyncTask::State::kDelayed) {
    delays_.erase(task.extras_->delay_key);
    claimed = Claimed::kOffPath;
  } else if (state == AsyncTask::State::kWaiting &&
             // relaxed: the two exchange one word, and the rest is under the lock.
             task.state_.compare_exchange_strong(state, AsyncTask::State::kEnded,
                                                 std::memory_order_relaxed)) {
    claimed = TakeFromQueue(task) ? Claimed::kOffPath : Claimed::kOnPath;
  } else {
    return claimed;
  }
  Share& share = ShareOf(task);
  share.AssertHeld();
  ++(share.counts.*count);
  Unlink(task, woken);
  return claimed;
}

// --- A task's thread.

void ExecutorCore::CountWait(AsyncTask& task) noexcept {
  task.begun_at_ = MonotonicNow();
  Share& share = ShareOf(task);
  const ShareHolder hold(share, CurrentCarrier());
  ++share.counts.timed;
  Add(task.begun_at_ - task.GivenAt(), share.counts.wait_total, share.counts.wait_max);
}

void ExecutorCore::CountRun(Share& share, const AsyncTask& task) noexcept {
  Add(MonotonicNow() - task.begun_at_, share.counts.run_total, share.counts.run_max);
}

ExecutorCore::Ended ExecutorCore::EndWithAll(AsyncTask& task, Ending ending) noexcept {
  WakeList woken;
  Ended ended{.is_own = false, .next = nullptr};
  {
    const AllLocksHolder hold(*this);
    Share& share = ShareOf(task);
    share.AssertHeld();
    ended.is_own = EndIn(share, task, ending);
    if (ended.is_own) {
      if (std::exchange(task.is_discounted_, false)) --discounted_;
      WakeIfDrained(woken);
    }
    if (!task.is_lent_) ended.next = PassPlace();
  }
  woken.Dispatch();
  return ended;
}

// --- Delays.

absl::Status ExecutorCore::SubmitDelayed(AsyncTask& task, std::chrono::nanoseconds delay) noexcept {
  Delays outside;
  outside.emplace(std::pair(MonotonicTime(), uint64_t{0}), &task);
  const MonotonicTime due =
      MonotonicTime(std::chrono::nanoseconds(Deadline::After(delay).nanoseconds()));
  WakeList woken;
  bool is_admitted;
  bool must_start = false;
  {
    const AllLocksHolder hold(*this);
    is_admitted = Admit(task, Entry::kNew);
    if (is_admitted) must_start = PutDelay(task, outside.extract(outside.begin()), due, woken);
  }
  woken.Dispatch();
  if (!is_admitted) return Refuse(task, Entry::kNew);
  if (must_start) StartServingDelays();
  return absl::OkStatus();
}

bool ExecutorCore::Postpone(AsyncTask& task, std::chrono::nanoseconds delay,
                            AsyncTask*& next) noexcept {
  Delays outside;
  outside.emplace(std::pair(MonotonicTime(), uint64_t{0}), &task);
  const MonotonicTime due =
      MonotonicTime(std::chrono::nanoseconds(Deadline::After(delay).nanoseconds()));
  WakeList woken;
  bool must_start;
  {
    const AllLocksHolder hold(*this);
    // relaxed: changes under the lock.
    if (is_closed_ || task.state_.load(std::memory_order_relaxed) != AsyncTask::State::kRunning) {
      return false;
    }
    Share& share = ShareOf(task);
    share.AssertHeld();
    ++share.counts.retried;
    if (!task.is_lent_) next = PassPlace();
    task.is_lent_ = false;
    must_start = PutDelay(task, outside.extract(outside.begin()), due, woken);
  }
  woken.Dispatch();
  if (must_start) StartServingDelays();
  return true;
}

bool ExecutorCore::PutDelay(AsyncTask& task, DelayNode&& node, MonotonicTime due,
                            WakeList& woken) noexcept {
  SetState(task, AsyncTask::State::kDelayed);
  node.key() = {due, ++last_delay_};
  task.extras_->delay_key = node.key();
  const auto place = delays_.insert(std::move(node)).position;
  if (!delays_are_served_) {
    delays_are_served_ = true;
    return true;
  }
  if (place == delays_.begin()) HaveDelaysLookAgain(woken);
  return false;
}

void ExecutorCore::HaveDelaysLookAgain(WakeList& woken) noexcept {
  Waiter* const waiter = std::exchange(delay_waiter_, nullptr);
  if (waiter != nullptr && waiter->TryNotify()) woken.Add(*waiter);
}

void ExecutorCore::EndDelaysIfNone(WakeList& woken) noexcept {
  if (delays_.empty()) HaveDelaysLookAgain(woken);
}

void ExecutorCore::StartServingDelays() noexcept {
  const ContextSwap none(nullptr);
  Task& server = NewTask(runtime_, {.name = name_ + " delays"});
  server.set_detached();
  server.set_body(Body::Emplace(server.body_storage(), [this] { ServeDelays(); }));
  Launch(runtime_, server, Placement::kHere);
}

void ExecutorCore::ServeDelays() noexcept {
  while (true) {
    Waiter self(kDelayWait);
    DelayNode node;
    MonotonicTime due;
    {
      const AllLocksHolder hold(*this);
      if (delays_.empty()) {
        delays_are_served_ = false;
        return;
      }
      due = delays_.begin()->first.first;
      if (due <= MonotonicNow()) {
        node = delays_.extract(delays_.begin());
        SetState(*node.mapped(), AsyncTask::State::kWaiting);
      } else {
        delay_waiter_ = &self;
        self.BeginWait(Phase::kWaiting);
      }
    }
    if (!node.empty()) {
      static_cast<void>(Place(*node.mapped(), Entry::kDue));
      continue;
    }
    {
      const DeadlineScope until(Deadline::At(due));
      static_cast<void>(self.Park());
    }
    const AllLocksHolder hold(*this);
    delay_waiter_ = nullptr;
  }
}

// --- The end.

void ExecutorCore::Close() noexcept {
  {
    const AllLocksHolder hold(*this);
    is_closed_ = true;
  }
  Drop(Unbegun::kDelayed, "the executor was shut down before its time had come");
}

void ExecutorCore::Discount(const Thread& thread) noexcept {
  WakeList woken;
  {
    const AllLocksHolder hold(*this);
    ForEachLive([&](AsyncTask& task) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (IsRunning(task) && task.thread_.load() == &thread &&
          !std::exchange(task.is_discounted_, true)) {
        ++discounted_;
      }
    });
    WakeIfDrained(woken);
  }
  woken.Dispatch();
}

bool ExecutorCore::AwaitDrained() noexcept {
  Waiter self(kDrainWait);
  {
    const AllLocksHolder hold(*this);
    if (IsDrained()) return true;
    if (self.thread().ShouldStop()) return false;
    drained_waiters_.PushBack(self);
  }
  if (self.Park() == Wake::kNotified) return true;
  const AllLocksHolder hold(*this);
  drained_waiters_.Forget(self);
  return IsDrained();
}

void ExecutorCore::Drop(Unbegun which, std::string_view cause) noexcept {
  WakeList woken;
  IntrusiveList<LiveTask> dropped;
  {
    const AllLocksHolder hold(*this);
    ForEachLive([&](AsyncTask& task) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      // relaxed: changes under the lock.
      const bool is_delayed =
          task.state_.load(std::memory_order_relaxed) == AsyncTask::State::kDelayed;
      if (which == Unbegun::kDelayed && !is_delayed) return;
      const Claimed claimed = Claim(task, &ExecutorStatistics::dropped, woken);
      if (claimed == Claimed::kNot) return;
      // One reference is the caller's, either way. Who comes upon it first needs a lock.
      if (claimed == Claimed::kOnPath) task.AddOwner();
      dropped.PushBack(task);
    });
    EndDelaysIfNone(woken);
  }
  woken.Dispatch();
  while (LiveTask* const live = dropped.PopFront()) {
    auto& task = static_cast<AsyncTask&>(*live);
    task.FailUnbegun(StatusFor(task, absl::StatusCode::kUnavailable, cause));
    task.GiveUp();
  }
}

void ExecutorCore::DropUnbegun() noexcept {
  Drop(Unbegun::kAll, "it was dropped before it could begin: the executor is shut down");
}

void ExecutorCore::RequestStop() noexcept {
  CloseThreads();
  stop_.request_stop();
  const AllLocksHolder hold(*this);
  ForEachLive([](const AsyncTask& task) {
    // It cannot end before it has left the list, for which it needs a lock.
    if (IsRunning(task) && !task.is_lent_ && !task.is_discounted_) task.thread_.load()->Cancel();
  });
}

std::vector<std::string> ExecutorCore::Abandon() noexcept {
  std::vector<std::string> names;
  WakeList woken;
  IntrusiveList<LiveTask> abandoned;
  {
    const AllLocksHolder hold(*this);
    ForEachLive([&](AsyncTask& task) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (task.is_discounted_ || !IsRunning(task)) return;
      const Thread& thread = *task.thread_.load();
      std::string where;
      if (thread.role() == Role::kVirtual) {
        where = fmt::format("virtual thread {}", static_cast<const Task&>(thread).id());
      } else {
        where = fmt::format("\"{}\"", static_cast<const OsThread&>(thread).name());
      }
      names.push_back(fmt::format("{} on {}", task.Label(), where));
      ++ShareOf(task).counts.abandoned;
      task.AddOwner();
      Unlink(task, woken);
      abandoned.PushBack(task);
    });
  }
  woken.Dispatch();
  while (LiveTask* const live = abandoned.PopFront()) {
    auto& task = static_cast<AsyncTask&>(*live);
    task.FailRunning(StatusFor(task, absl::StatusCode::kAborted,
                               "it was still running when its executor was shut down"));
    task.GiveUp();
  }
  return names;
}

bool ExecutorCore::Join(std::chrono::nanoseconds budget) noexcept {
  const MonotonicTime end = MonotonicNow() + budget;
  {
    const AllLocksHolder hold(*this);
    ForEachLive([](AsyncTask& task) { task.is_discounted_ = false; });
    discounted_ = 0;
  }
  const DeadlineScope scope(budget);
  const bool is_drained = AwaitDrained();
  const bool have_ended = JoinThreads(std::max(end - MonotonicNow(), budget / 4));
  return is_drained && have_ended;
}

bool ExecutorCore::IsIdle() noexcept {
  const AllLocksHolder hold(*this);
  return LiveCount() == 0;
}

ExecutorStatistics ExecutorCore::Statistics() noexcept {
  const AllLocksHolder hold(*this);
  ExecutorStatistics statistics;
  for (Share& share : shares()) {
    share.AssertHeld();
    Add(share.counts, statistics);
  }
  const size_t live = LiveCount();
  statistics.kind = kind_;
  statistics.queued = queued();
  statistics.delayed = delays_.size();
  statistics.active = live - std::min(live, statistics.queued + statistics.delayed);
  statistics.uncaught = sink_->reported();
  return statistics;
}

}  // namespace bobbin::internal
