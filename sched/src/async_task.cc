// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/async_state.h>
#include <bobbin/sched/span.h>

#include "sched/src/carrier.h"
#include "sched/src/current_runtime.h"
#include "sched/src/executor_core.h"
#include "sched/src/executor_path.h"

namespace bobbin::internal {

namespace {

bool NeedsExtras(const TaskOptions& options) {
  return !options.name.empty() || options.held != nullptr || options.delay.count() > 0 ||
         options.retry.attempts_max > 1;
}

// A number without a pattern, from 0 to 1, that is always the same for `seed` and `index`.
double Scatter(uint64_t seed, uint64_t index) {
  uint64_t value = seed + index * 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  value ^= value >> 31;
  return static_cast<double>(value >> 11) * 0x1.0p-53;
}

}  // namespace

void AsyncTask::JoinTrace(const TaskOptions* options) {
  const TaskSpan span = options == nullptr ? TaskSpan::kOwn : options->span;
  is_traced_ = span == TaskSpan::kOwn && Span::MayBeKept();
}

void AsyncTask::Take(const TaskOptions& options) {
  if (!NeedsExtras(options)) return;
  extras_ = std::make_unique<Extras>();
  extras_->name = options.name;
  extras_->held = options.held;
  extras_->delay = options.delay;
  extras_->retry = options.retry;
}

std::string AsyncTask::Label() const {
  const std::string task = name().empty() ? "a task" : fmt::format("task \"{}\"", name());
  return fmt::format("{} of executor \"{}\"", task, executor_.name());
}

std::stop_token AsyncTask::StopToken() const noexcept { return executor_.stop_token(); }

bool AsyncTask::Withdraw() noexcept {
  // A task that has begun may have outlived its executor.
  const State state = state_.load();
  if (state == State::kRunning || state == State::kEnded) return false;
  return executor_.Withdraw(*this);
}

void AsyncTask::Decorate(const TaskDecorator& decorator) {
  if (extras_ == nullptr) extras_ = std::make_unique<Extras>();
  extras_->decorated = decorator.Decorate([this] {
    has_failed_ = !Execute();
    has_executed_ = true;
  });
}

// --- On the body's thread.

void AsyncTask::Run() noexcept {
  if (!executor_.Begin(*this)) {
    is_over_ = true;
    return;
  }
  const ContextSwap context(context_.node());
  if (__builtin_expect(is_traced_, 0)) {
    ExecuteInSpan();
  } else {
    ExecuteOnce();
  }
  will_retry_ = has_failed_ && IsWorthRetrying();
  if (may_run_again() && !will_retry_) EndBody();
}

void AsyncTask::ExecuteInSpan() noexcept {
  const std::chrono::duration<double, std::milli> waited = MonotonicNow() - GivenAt();
  Span span({.name = name().empty() ? executor_.name() : std::string(name()),
             .attributes = {{"bobbin.executor", executor_.name()},
                            {"bobbin.task.queue_wait_ms", waited.count()}}});
  if (extras_ != nullptr && extras_->attempts > 0) {
    span.Set("bobbin.task.attempt", extras_->attempts + 1);
  }
  ExecuteOnce();
  if (!has_failed_) return;
  const std::exception_ptr thrown = LastException();
  span.SetStatus(thrown == nullptr
                     ? LastError()
                     : MakeStatus(absl::StatusCode::kUnknown,
                                  Outcome{.status = {}, .exception = thrown}.Describe()));
}

MonotonicTime AsyncTask::GivenAt() const noexcept {
  return executor_.kind() == ThreadKind::kPlatform ? offered_at() : given_at_;
}

void AsyncTask::ExecuteWithExtras() noexcept {
  ++extras_->attempts;
  Mutex* const held = extras_->held;
  if (held != nullptr) {
    if (absl::Status locked = held->LockUntil(Deadline::Never()); !locked.ok()) {
      KeepError(std::move(locked));
      has_failed_ = true;
      return;
    }
  }
  if (!extras_->decorated) {
    has_failed_ = !Execute();
  } else {
    has_executed_ = false;
    const std::exception_ptr thrown = CaptureException([this] { extras_->decorated(); });
    if (!has_executed_) {
      KeepError(MakeStatus(absl::StatusCode::kInternal,
                           Label() + ": the executor's decorator has not called the body"));
      has_failed_ = true;
    } else if (thrown != nullptr) {
      KeepError(MakeStatus(absl::StatusCode::kInternal,
                           fmt::format("{}: the executor's decorator has thrown {}", Label(),
                                       Outcome{.status = {}, .exception = thrown}.Describe())));
      has_failed_ = true;
    }
  }
  if (held != nullptr) held->unlock();
}

bool AsyncTask::IsWorthRetrying() const noexcept {
  if (extras_ == nullptr || extras_->attempts >= extras_->retry.attempts_max) return false;
  return extras_->retry.codes.Contains(LastError().code());
}

std::chrono::nanoseconds AsyncTask::NextBackoff() const noexcept {
  const RetryOptions& retry = extras_->retry;
  const auto longest = static_cast<double>(retry.backoff_max.count());
  const double plain = static_cast<double>(retry.backoff.count()) *
                       std::pow(retry.growth, static_cast<double>(extras_->attempts - 1));
  const uint64_t seed = retry.seed != 0 ? retry.seed : number_of_kind_;
  const double scattered = 2 * Scatter(seed, extras_->attempts) - 1;
  const double backoff = std::min(plain, longest) * (1 + retry.jitter * scattered);
  return std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(backoff, 0.0, 2 * longest)));
}

AsyncTask* AsyncTask::Conclude() noexcept {
  if (is_over_) {
    AsyncTask* const next = executor_.End(*this, ExecutorCore::Ending::kNotBegun).next;
    GiveUp();
    return next;
  }
  AsyncTask* next = nullptr;
  if (will_retry_) {
    if (executor_.Postpone(*this, NextBackoff(), next)) return next;
    EndBody();
  }
  if (has_failed_) KeepSink();
  const auto [is_own, to_begin] = executor_.End(
      *this, has_failed_ ? ExecutorCore::Ending::kFailed : ExecutorCore::Ending::kCompleted);
  if (is_own) {
    Deliver();
  } else {
    GiveUp();
  }
  return to_begin;
}

void AsyncTask::Finish() noexcept {
  ExecutorCore& executor = executor_;
  if (AsyncTask* const next = Conclude()) executor.Replace(*next);
}

void AsyncTask::Discard(absl::Status reason) noexcept { executor_.Discarded(*this, reason); }

// --- Failures that nobody hears of.

void AsyncTask::KeepSink() { sink_ = executor_.sink(); }

void AsyncTask::ReportUncaught(const absl::Status& status, std::exception_ptr exception) noexcept {
  // The line is one of its submitter's trace, and has its fields.
  const ContextSwap context(context_.node());
  sink_->Report(name(), status, std::move(exception));
}

// --- What templates call.

void* NewStateBlock(size_t bytes) {
  Carrier* const here = CurrentCarrier();
  return here == nullptr ? BlockCache::NewBlock(bytes) : here->blocks().Take(bytes);
}

void DeleteStateBlock(void* block, size_t bytes) noexcept {
  if (Carrier* const here = CurrentCarrier()) return here->blocks().Give(block, bytes);
  ::operator delete(block);
}

absl::Status SubmitTask(ExecutorCore& executor, AsyncTask& task) noexcept {
  return executor.Submit(task);
}

absl::Status EmptyFuture() {
  return MakeStatus(absl::StatusCode::kInternal, "async: the body returned a future without any");
}

}  // namespace bobbin::internal
