// SPDX-License-Identifier: Apache-2.0

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <typeinfo>
#include <utility>

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/internal/task_cache.h>

#include "core/src/local_table.h"

namespace bobbin::internal {

void Task::SetName(std::string_view name) {
  name_ = static_cast<char*>(std::malloc(name.size() + 1));
  BOBBIN_CHECK(name_ != nullptr, "out of memory");
  std::memcpy(name_, name.data(), name.size());
  name_[name.size()] = '\0';
}

void Task::RunBody() noexcept {
  const Body::RunFunction run = run_;
  locals_ = nullptr;
  absl::Status status;
  std::exception_ptr exception;
  try {
    status = run(storage_);
  } catch (...) {
    exception = std::current_exception();
  }
  if (__builtin_expect(!status.ok() || exception != nullptr, 0)) TellFailure(status, exception);
  if (__builtin_expect(locals_ != nullptr, 0)) LocalTable::Destroy(locals_);
  if (__builtin_expect(context_values_ != nullptr, 0)) {
    ContextNode::Drop(std::exchange(context_values_, nullptr));
  }
  BOBBIN_CHECK(governing_ == nullptr && shield_depth_ == 0 && no_suspend_depth_ % kOsLock == 0,
               "a virtual thread ends inside a scope that it began");
  no_suspend_depth_ = 0;  // Locks that somebody else gives back.
  ::new (static_cast<void*>(storage_)) Outcome{std::move(status), std::move(exception)};
  state_.Finish();
}

[[gnu::noinline, gnu::cold]] void Task::TellFailure(const absl::Status& status,
                                                    const std::exception_ptr& exception) noexcept {
  if ((ending_.Load() & kOwned) != 0) owner_->BodyFailed(*this, Outcome{status, exception});
}

namespace {
// The type of the exception that is being handled.
std::string HandledType() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "an exception of another language";
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr), &std::free);
  return name == nullptr ? type->name() : name.get();
}
}  // namespace

std::string Outcome::Describe() const {
  if (exception == nullptr) return status.ToString();
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return HandledType() + ": " + error.what();
  } catch (...) {
    return HandledType();
  }
}

bool Task::IsLive() const noexcept {
  const Phase phase = state_.phase();
  return phase != Phase::kIdle && phase != Phase::kDone;
}

bool Task::TellEnd() noexcept {
  const uint32_t bits = ending_.Load();
  // Whoever had the handle has let go of it.
  if ((bits & kDetached) != 0) {
    DropEnd();
    return true;
  }
  if ((bits & kOwned) == 0) return TellHandle();
  owner_->TaskEnded(*this, TakeOutcome());
  return true;
}

void Task::DropEnd() noexcept {
  if (__builtin_expect(outcome().exception != nullptr, 0)) EndProcess(outcome());
  outcome().~Outcome();
}

bool Task::TellHandle() noexcept {
  const uint32_t bits = ending_.Lock();
  if ((bits & kDetached) != 0) {
    DropEnd();
    return true;
  }
  WakeList woken;
  if (joiner_ != nullptr && joiner_->TryNotify()) woken.Add(*joiner_);
  ending_.Unlock(bits | kDone);
  woken.Dispatch();
  return false;
}

namespace {
constexpr WaitKind kJoinWait = {"join", WaitObject::kTask};
}  // namespace

Wake Task::AwaitEnd(Phase phase) noexcept {
  if (IsDone()) return Wake::kNotified;
  BOBBIN_CHECK(this != &Current(), "a virtual thread cannot join itself");
  Waiter self(kJoinWait, this);
  const uint32_t bits = ending_.Lock();
  if ((bits & kDone) != 0) {
    ending_.Unlock(bits);
    return Wake::kNotified;
  }
  joiner_ = &self;
  self.BeginWait(phase);
  ending_.Unlock(bits);
  const Wake wake = self.Park();
  if (wake == Wake::kNotified) return wake;
  // It may have ended all the same: a result that is there wins.
  const uint32_t now = ending_.Lock();
  joiner_ = nullptr;
  ending_.Unlock(now);
  return (now & kDone) != 0 ? Wake::kNotified : wake;
}

Outcome Task::TakeEnd() noexcept {
  Outcome end = TakeOutcome();
  Free();
  return end;
}

void Task::Detach() noexcept {
  const uint32_t bits = ending_.Lock();
  if ((bits & kDone) == 0) {
    ending_.Unlock(bits | kDetached);
    return;
  }
  ending_.Unlock(bits);
  DropEnd();
  Free();
}

void Task::EndProcess(const Outcome& end) const noexcept {
  std::fprintf(
      stderr, "bobbin: an exception left the detached virtual thread \"%s\" (id %llu), %s\n",
      name_ == nullptr ? "" : name_, static_cast<unsigned long long>(id_), end.Describe().c_str());
  std::rethrow_exception(end.exception);  // noexcept: terminates, with the exception in flight.
}

void Task::Free() noexcept {
  if (__builtin_expect(name_ != nullptr, 0)) {
    std::free(name_);
    name_ = nullptr;
  }
  // A block that is in an inbox is freed by the carrier that takes it out.
  // Pairs with the exchange in Dispatcher::DrainInbox.
  if (attention_.load(std::memory_order_acquire) != 0) {
    if (attention_.fetch_or(kRelease, std::memory_order_acq_rel) != 0) return;  // pairs: the same.
    attention_.store(0, std::memory_order_relaxed);  // relaxed: nobody else has it.
  }
  Dispatcher* const here = Current().dispatcher();
  TaskPool& home = pool();
  if (here != nullptr && &here->tasks().pool() == &home) {
    here->tasks().Give(*this);
  } else {
    home.Free(*this);
  }
}

TaskPool& Task::pool() const noexcept {
  const uintptr_t chunk = reinterpret_cast<uintptr_t>(this) & ~(TaskPool::kChunkBytes - 1);
  return *reinterpret_cast<const TaskPool::ChunkHead*>(chunk)->pool;
}

}  // namespace bobbin::internal
