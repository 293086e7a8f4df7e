// SPDX-License-Identifier: Apache-2.0
//
// ExecutorPath: what every task passes through in ExecutorCore, to be compiled into its callers.
//
//   Called from   as ExecutorCore says.
//   Suspends      never; with kCallerRuns Submit may run the body.

#ifndef BOBBIN_SCHED_SRC_EXECUTOR_PATH_H_
#define BOBBIN_SCHED_SRC_EXECUTOR_PATH_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

#include <bobbin/core/internal/current.h>
#include <bobbin/sched/internal/async_task.h>

#include "sched/src/executor_core.h"

namespace bobbin::internal {

inline ExecutorCore::ShareHolder::ShareHolder(Share& share, const Carrier* here) noexcept
    ABSL_NO_THREAD_SAFETY_ANALYSIS
    : lock_(share.lock),
      is_biased_(share.IsOwnedBy(here) && share.lock.TryEnterAsOwner()) {
  if (__builtin_expect(is_biased_, 1)) return;
  if (share.IsOwnedBy(here)) {
    lock_.LockAsOwner();
  } else {
    lock_.Lock();
  }
}

inline ExecutorCore::ShareHolder::~ShareHolder() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (__builtin_expect(is_biased_, 1)) {
    lock_.LeaveAsOwner();
  } else {
    lock_.Unlock();
  }
}

[[gnu::always_inline]] inline absl::Status ExecutorCore::Submit(AsyncTask& task) noexcept {
  if (__builtin_expect(options_.decorator != nullptr, 0)) task.Decorate(*options_.decorator);
  if (__builtin_expect(task.extras_ != nullptr && task.extras_->delay.count() > 0, 0)) {
    return SubmitDelayed(task, task.extras_->delay);
  }
  return Place(task, Entry::kNew);
}

[[gnu::always_inline]] inline void ExecutorCore::Enlist(Share& share, AsyncTask& task) noexcept {
  const auto index = static_cast<size_t>(&share - shares_.get());
  task.share_ = static_cast<uint8_t>(index);
  const uint64_t number = ++share.counts.submitted;
  task.number_of_kind_ = number * share_count_ + index;
  share.live.PushBack(task);
  ++share.live_count;
  if (kind_ == ThreadKind::kPlatform) {
    task.is_timed_ = true;  // The pool looks at the clock.
  } else {
    task.is_timed_ = number % ExecutorStatistics::kTimedEvery == 1;
    if (__builtin_expect(task.is_timed_ || task.is_traced_, 0)) task.given_at_ = MonotonicNow();
  }
}

[[gnu::always_inline]] inline bool ExecutorCore::Begin(AsyncTask& task) noexcept {
  // relaxed: the lock or the exchange publishes it.
  task.thread_.store(&Current(), std::memory_order_relaxed);
  Share& share = ShareOf(task);
  if (share.IsOwnedBy(CurrentCarrier()) && share.lock.TryEnterAsOwner()) {
    // relaxed: whoever drops it has the lock.
    const bool is_waiting =
        task.state_.load(std::memory_order_relaxed) == AsyncTask::State::kWaiting;
    if (is_waiting) SetState(task, AsyncTask::State::kRunning);
    share.lock.LeaveAsOwner();
    if (!is_waiting) return false;
  } else {
    AsyncTask::State state = AsyncTask::State::kWaiting;
    // Pairs with the loads in RequestStop, Abandon and Discount.
    if (!task.state_.compare_exchange_strong(
            state, AsyncTask::State::kRunning, std::memory_order_release,
            std::memory_order_relaxed)) {  // relaxed: it was dropped.
      return false;
    }
  }
  if (__builtin_expect(task.is_timed_, 0)) CountWait(task);
  return true;
}

[[gnu::always_inline]] inline bool ExecutorCore::EndIn(Share& share, AsyncTask& task,
                                                       Ending ending) noexcept {
  // relaxed: changes under the lock.
  if (task.state_.load(std::memory_order_relaxed) != AsyncTask::State::kRunning) return false;
  ++(ending == Ending::kCompleted ? share.counts.completed : share.counts.failed);
  if (__builtin_expect(task.is_timed_, 0)) CountRun(share, task);
  TakeOut(share, task);
  return true;
}

[[gnu::always_inline]] inline ExecutorCore::Ended ExecutorCore::End(AsyncTask& task,
                                                                    Ending ending) noexcept {
  Share& share = ShareOf(task);
  {
    const ShareHolder hold(share, CurrentCarrier());
    // One that is discounted is not waited for by somebody who is about to wait.
    if (__builtin_expect(is_plain() && !task.is_discounted_, 1)) {
      const bool is_own = EndIn(share, task, ending);
      if (!task.is_lent_) ++share.places;
      return {.is_own = is_own, .next = nullptr};
    }
  }
  return EndWithAll(task, ending);
}

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_EXECUTOR_PATH_H_
