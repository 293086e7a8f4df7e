// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/cancel.h>
#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/internal/word_lock.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/platform_pool.h>

#include "sched/src/current_runtime.h"
#include "sched/src/platform_pool_core.h"

namespace bobbin {

namespace internal {

namespace {

constexpr WaitKind kBlockingWait = {"blocking call", WaitObject::kNone};

// A call whose caller waits for it. Lives on the caller's stack.
class WaitedTask final : public PoolTask {
 public:
  explicit WaitedTask(const BlockingCall& call) : call_(call), self_(kBlockingWait) {}

  // Waits until it has run or was dropped; returns why, if it did not run.
  absl::Status Await(PlatformPoolCore& pool) noexcept {
    Phase phase = Phase::kWaiting;
    while (BeginWait(phase)) {
      const Wake wake = self_.Park();
      if (wake == Wake::kNotified) break;
      if (pool.TakeBack(*this)) return Thread::StatusOf(wake);
      // It runs, perhaps on what lies on this stack: it must be waited for.
      if (call_.request_stop != nullptr) call_.request_stop(call_.argument);
      phase = Phase::kWaitingShielded;
    }
    return status_;
  }

  void Run() noexcept override {
    const ContextSwap context(context_);
    call_.run(call_.argument);
  }
  void Finish() noexcept override { End(); }
  void Discard(absl::Status reason) noexcept override {
    status_ = std::move(reason);
    End();
  }
  const Thread* caller() const noexcept override { return &self_.thread(); }

 private:
  static constexpr uint32_t kEnded = 2;  // Beside the lock's bit.

  // False if there is nothing to wait for.
  bool BeginWait(Phase phase) noexcept {
    const uint32_t bits = ending_.Lock();
    if ((bits & kEnded) == 0) {
      is_waiting_ = true;
      self_.BeginWait(phase);
    }
    ending_.Unlock(bits);
    return (bits & kEnded) == 0;
  }

  // Unlock is the last touch: a caller that has not begun to wait may be gone right after it.
  void End() noexcept {
    WakeList woken;
    const uint32_t bits = ending_.Lock();
    if (is_waiting_ && self_.TryNotify()) woken.Add(self_);
    ending_.Unlock(bits | kEnded);
    woken.Dispatch();
  }

  const BlockingCall call_;
  ContextNode* const context_ = ContextNode::OfCurrent();  // The caller's, who waits.
  Waiter self_;
  WordLock<uint32_t, 1> ending_{0};
  bool is_waiting_ = false;  // Guarded by the lock in ending_; so is self_'s ticket.
  absl::Status status_;      // Written before kEnded.
};

// A call that nobody waits for. Owns itself until Finish or Discard.
class SubmittedTask final : public PoolTask {
 public:
  explicit SubmittedTask(absl::AnyInvocable<void() &&> body) : body_(std::move(body)) {}

  void Run() noexcept override {
    const ContextSwap context(context_.node());
    std::move(body_)();
    body_ = nullptr;  // What it captured ends before the pool counts it.
  }
  void Finish() noexcept override { const std::unique_ptr<SubmittedTask> ended(this); }
  void Discard(absl::Status) noexcept override { Finish(); }

 private:
  absl::AnyInvocable<void() &&> body_;
  const SharedContext context_;  // The submitter's.
};

}  // namespace

absl::Status RunAndWait(PlatformPoolCore& pool, const BlockingCall& call) noexcept {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  if (pool.IsOwnThread()) {
    call.run(call.argument);
    return absl::OkStatus();
  }
  WaitedTask task(call);
  const Offered offered = pool.Offer(task, call.admission);
  if (offered == Offered::kAccepted) return task.Await(pool);
  if (offered == Offered::kRunByCaller) call.run(call.argument);
  return pool.StatusOf(offered);
}

}  // namespace internal

PlatformPool::PlatformPool(PlatformPoolOptions options)
    : core_(std::make_shared<internal::PlatformPoolCore>(std::move(options),
                                                         internal::CurrentRuntimeOrNull())) {}

PlatformPool::~PlatformPool() {
  if (core_->is_shut_down()) return;
  const absl::Status status = Shutdown();
  if (status.ok()) return;
  internal::Tell({.level = LogLevel::kError, .text = MessageOf(status)});
}

absl::Status PlatformPool::Submit(absl::AnyInvocable<void() &&> body) {
  auto task = std::make_unique<internal::SubmittedTask>(std::move(body));
  const internal::Offered offered = core_->Offer(*task, internal::Admission::kBounded);
  switch (offered) {
    case internal::Offered::kAccepted:
      static_cast<void>(task.release());  // The pool's now, or gone.
      return absl::OkStatus();
    case internal::Offered::kRunByCaller:
      task->Run();
      return absl::OkStatus();
    case internal::Offered::kDropped:
      return absl::OkStatus();
    default:
      return core_->StatusOf(offered);
  }
}

absl::Status PlatformPool::Shutdown() { return core_->Shutdown(); }

const std::string& PlatformPool::name() const { return core_->name(); }

PlatformPoolStatistics PlatformPool::Statistics() const { return core_->Statistics(); }

}  // namespace bobbin
