// SPDX-License-Identifier: Apache-2.0

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/task_group.h>

namespace bobbin {

using internal::Outcome;
using internal::Phase;
using internal::SpinLockHolder;
using internal::Task;
using internal::Thread;
using internal::Waiter;
using internal::Wake;
using internal::WakeList;

namespace {
constexpr internal::WaitKind kGroupWait = {"task group", internal::WaitObject::kAddress};
constexpr internal::WaitKind kPlaceWait = {"place in a task group", internal::WaitObject::kAddress};
}  // namespace

TaskGroup::TaskGroup(TaskGroupOptions options)
    : options_(options), runtime_(internal::CurrentRuntime()) {
  BOBBIN_CHECK(options_.live_max > 0, "a group without a place for a child");
}

TaskGroup::~TaskGroup() {
  Cancel();
  const Wake wake = AwaitNone(Phase::kWaitingShielded);
  BOBBIN_CHECK(wake == Wake::kNotified, "nothing ends a shielded wait but its notify");
}

void TaskGroup::Launch(Task& task, Placement placement) noexcept {
  task.set_owner(*this);
  {
    SpinLockHolder hold(lock_);
    children_.PushBack(task);
    if (!is_limited()) ++live_;  // Else Admit has counted it.
    if (is_cancelled_) task.Cancel();
  }
  internal::Launch(runtime_, task, placement);
}

absl::Status TaskGroup::AdmitLimited(const SpawnOptions& options) {
  absl::Status status = AwaitPlace();
  if (!status.ok()) {
    Outcome outcome{status, nullptr};
    LogFailure(options.name, 0, outcome);
    std::list<ChildFailure> record = Record(options.name, 0, outcome);
    SpinLockHolder hold(lock_);
    NoteFailure(outcome, record);
  }
  return status;
}

absl::Status TaskGroup::AwaitPlace() {
  Thread& thread = internal::Current();
  const bool is_child =
      thread.role() == Role::kVirtual && static_cast<Task&>(thread).IsOwnedBy(*this);
  {
    SpinLockHolder hold(lock_);
    if (live_ < options_.live_max || is_child) {
      ++live_;
      return absl::OkStatus();
    }
  }
  Waiter self(kPlaceWait, this);
  BOBBIN_RETURN_IF_ERROR(thread.StopStatus());
  {
    SpinLockHolder hold(lock_);
    if (live_ < options_.live_max) {
      ++live_;
      return absl::OkStatus();
    }
    spawners_.PushBack(self);
  }
  // Whoever ends the wait by a notify has left its place to this thread.
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    SpinLockHolder hold(lock_);
    spawners_.Forget(self);
  }
  return Thread::StatusOf(wake);
}

absl::StatusOr<Task*> TaskGroup::TryNewChild(const SpawnOptions& options) {
  if (is_limited()) {
    SpinLockHolder hold(lock_);
    if (live_ >= options_.live_max) {
      return MakeStatus(absl::StatusCode::kResourceExhausted,
                        "spawn: the group's limit of live children is reached");
    }
    ++live_;
  }
  if (Task* const task = internal::TryNewTask(runtime_, options)) return task;
  if (is_limited()) {
    WakeList woken;
    {
      SpinLockHolder hold(lock_);
      GiveUpPlace(woken);
    }
    woken.Dispatch();
  }
  return internal::WhyNotSpawned(runtime_, options);
}

void TaskGroup::GiveUpPlace(WakeList& woken) noexcept {
  --live_;
  if (live_ < options_.live_max) {
    if (Waiter* const spawner = spawners_.ClaimFront()) {
      ++live_;
      woken.Add(*spawner);
    }
  }
  if (live_ == 0) {
    if (Waiter* const waiter = waiter_.ClaimFront()) woken.Add(*waiter);
  }
}

void TaskGroup::BodyFailed(const Task& task, const Outcome& outcome) noexcept {
  LogFailure(task.name(), task.id(), outcome);
}

void TaskGroup::TaskEnded(Task& task, Outcome outcome) noexcept {
  const bool has_failed = outcome.has_failed();
  std::list<ChildFailure> record;
  if (has_failed) record = Record(task.name(), task.id(), outcome);
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    children_.Remove(task);
    if (has_failed) NoteFailure(outcome, record);
    GiveUpPlace(woken);
  }
  // The group may be gone once its owner runs.
  woken.Dispatch();
}

void TaskGroup::LogFailure(std::string_view name, uint64_t id, const Outcome& outcome) const {
  if (options_.on_failure != OnFailure::kLog) return;
  const std::string why = outcome.Describe();
  internal::Tell({.level = LogLevel::kError,
                  .text = fmt::format("virtual thread \"{}\" (id {}) failed: {}", name, id, why),
                  .fields = {{"bobbin.vthread", name}, {"error", why}}});
}

std::list<ChildFailure> TaskGroup::Record(std::string_view name, uint64_t id,
                                          const Outcome& outcome) const {
  std::list<ChildFailure> record;
  if (options_.on_failure == OnFailure::kCollect) {
    record.push_back({std::string(name), id, outcome.status, outcome.exception});
  }
  return record;
}

void TaskGroup::NoteFailure(Outcome& outcome, std::list<ChildFailure>& record) noexcept {
  failures_.splice(failures_.end(), record);
  if (options_.on_failure == OnFailure::kLog || has_failed_) return;
  has_failed_ = true;
  first_failure_ = std::move(outcome);
  if (options_.on_failure == OnFailure::kCancelOthers) CancelChildren();
}

std::vector<ChildFailure> TaskGroup::TakeFailures() {
  std::list<ChildFailure> taken;
  {
    SpinLockHolder hold(lock_);
    taken.swap(failures_);
  }
  return {std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end())};
}

void TaskGroup::CancelChildren() noexcept {
  is_cancelled_ = true;
  // A child cannot be freed before it has left the list, for which it needs the lock.
  children_.ForEach([](Task& child) { child.Cancel(); });
}

void TaskGroup::Cancel() noexcept {
  SpinLockHolder hold(lock_);
  CancelChildren();
}

size_t TaskGroup::live() const {
  SpinLockHolder hold(lock_);
  return live_;
}

Wake TaskGroup::AwaitNone(Phase phase) noexcept {
  Waiter self(kGroupWait, this);
  {
    SpinLockHolder hold(lock_);
    if (live_ == 0) return Wake::kNotified;
    BOBBIN_CHECK(waiter_.empty(), "two threads wait for one group");
    waiter_.PushBack(self, phase);
  }
  const Wake wake = self.Park();
  if (wake != Wake::kNotified) {
    SpinLockHolder hold(lock_);
    waiter_.Forget(self);
  }
  return wake;
}

absl::Status TaskGroup::Wait() {
  Thread& self = internal::Current();
  absl::Status interrupted;
  if (self.ShouldStop() && live() != 0) {
    interrupted = self.StopStatus();
  } else {
    interrupted = Thread::StatusOf(AwaitNone(Phase::kWaiting));
  }
  if (!interrupted.ok()) {
    Cancel();
    const Wake wake = AwaitNone(Phase::kWaitingShielded);
    BOBBIN_CHECK(wake == Wake::kNotified, "nothing ends a shielded wait but its notify");
  }
  Outcome failure;
  {
    SpinLockHolder hold(lock_);
    failure = std::exchange(first_failure_, Outcome{});
    has_failed_ = false;
    is_cancelled_ = false;
  }
  if (!interrupted.ok()) return interrupted;
  if (failure.exception != nullptr) std::rethrow_exception(failure.exception);
  return std::move(failure.status);
}

}  // namespace bobbin
