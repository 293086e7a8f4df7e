// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/task_group.h>

#include <cstdio>
#include <string>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>

namespace bobbin {

using internal::Outcome;
using internal::Phase;
using internal::SpinLockHolder;
using internal::Task;
using internal::Thread;
using internal::Wake;
using internal::Waiter;
using internal::WakeList;

TaskGroup::TaskGroup(TaskGroupOptions options)
    : options_(options), runtime_(internal::CurrentRuntime()) {}

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
    ++live_;
    if (is_cancelled_) task.Cancel();
  }
  internal::Launch(runtime_, task, placement);
}

void TaskGroup::TaskEnded(Task& task, Outcome outcome) noexcept {
  const bool has_failed = outcome.has_failed();
  if (has_failed && options_.on_failure == OnFailure::kLog) {
    std::fprintf(stderr, "bobbin: virtual thread \"%.*s\" (id %llu) failed: %s\n",
                 static_cast<int>(task.name().size()), task.name().data(),
                 static_cast<unsigned long long>(task.id()), outcome.Describe().c_str());
  }
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    children_.Remove(task);
    if (has_failed && options_.on_failure == OnFailure::kCancelOthers && !has_failed_) {
      has_failed_ = true;
      first_failure_ = std::move(outcome);
      CancelChildren();
    }
    if (--live_ == 0) {
      if (Waiter* const waiter = waiter_.ClaimFront()) woken.Add(*waiter);
    }
  }
  // The group may be gone once its owner runs.
  woken.Dispatch();
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
  Waiter self;
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
