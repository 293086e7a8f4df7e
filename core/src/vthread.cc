// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/vthread.h>

#include <exception>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>

namespace bobbin {

using internal::Outcome;
using internal::Task;

VirtualThread& VirtualThread::operator=(VirtualThread&& other) noexcept {
  if (this != &other) {
    if (task_ != nullptr) CancelAndJoin();
    task_ = std::exchange(other.task_, nullptr);
  }
  return *this;
}

absl::Status VirtualThread::Join() {
  BOBBIN_CHECK(is_joinable(), "Join of a handle that holds no virtual thread");
  Outcome end;
  // A thread that has ended is joined even by a caller that is to stop: its result is here.
  if (!task_->IsDone() && internal::Current().ShouldStop()) {
    return internal::Current().StopStatus();
  }
  if (absl::Status stopped = task_->Join(true, end); !stopped.ok()) return stopped;
  task_ = nullptr;
  if (end.exception != nullptr) std::rethrow_exception(end.exception);
  return std::move(end.status);
}

void VirtualThread::CancelAndJoin() noexcept {
  task_->Cancel();
  Outcome dropped;
  const absl::Status joined = task_->Join(false, dropped);
  BOBBIN_CHECK(joined.ok(), "nothing ends a shielded wait but its notify");
  task_ = nullptr;
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
