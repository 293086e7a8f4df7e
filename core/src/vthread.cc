// SPDX-License-Identifier: Apache-2.0

#include <exception>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/vthread.h>

namespace bobbin {

using internal::Outcome;
using internal::Phase;
using internal::Task;
using internal::Thread;
using internal::Wake;

VirtualThread& VirtualThread::operator=(VirtualThread&& other) noexcept {
  if (this != &other) {
    if (task_ != nullptr) CancelAndJoin();
    task_ = std::exchange(other.task_, nullptr);
  }
  return *this;
}

absl::Status VirtualThread::Join() {
  BOBBIN_CHECK(is_joinable(), "Join of a handle that holds no virtual thread");
  if (!task_->IsDone()) {
    Thread& self = internal::Current();
    if (self.ShouldStop()) return self.StopStatus();
    if (self.YieldToFresh() && !task_->IsDone() && self.ShouldStop()) return self.StopStatus();
    if (const Wake wake = task_->AwaitEnd(Phase::kWaiting); wake != Wake::kNotified) {
      return Thread::StatusOf(wake);
    }
  }
  Outcome end = std::exchange(task_, nullptr)->TakeEnd();
  if (__builtin_expect(end.exception != nullptr, 0)) std::rethrow_exception(end.exception);
  return std::move(end.status);
}

void VirtualThread::CancelAndJoin() noexcept {
  task_->Cancel();
  const Wake wake = task_->AwaitEnd(Phase::kWaitingShielded);
  BOBBIN_CHECK(wake == Wake::kNotified, "nothing ends a shielded wait but its notify");
  static_cast<void>(std::exchange(task_, nullptr)->TakeEnd());
}

void VirtualThread::Cancel() {
  BOBBIN_CHECK(is_joinable(), "Cancel of a handle that holds no virtual thread");
  task_->Cancel();
}

void VirtualThread::Detach() && {
  BOBBIN_CHECK(is_joinable(), "Detach of a handle that holds no virtual thread");
  std::exchange(task_, nullptr)->Detach();
}

bool VirtualThread::IsDone() const {
  BOBBIN_CHECK(is_joinable(), "IsDone of a handle that holds no virtual thread");
  return task_->IsDone();
}

uint64_t VirtualThread::Id() const {
  BOBBIN_CHECK(is_joinable(), "Id of a handle that holds no virtual thread");
  return task_->id();
}

namespace this_vthread {

namespace {
const Task* CurrentTask() {
  const internal::Thread& thread = internal::Current();
  return thread.role() == Role::kVirtual ? static_cast<const Task*>(&thread) : nullptr;
}
}  // namespace

uint64_t Id() {
  const Task* const task = CurrentTask();
  return task == nullptr ? 0 : task->id();
}

std::string_view Name() {
  const Task* const task = CurrentTask();
  return task == nullptr ? std::string_view() : task->name();
}

}  // namespace this_vthread

}  // namespace bobbin
