// SPDX-License-Identifier: Apache-2.0

#include "sched/src/lifecycle_core.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/internal/capture_exception.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/dump.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

#include "sched/src/current_runtime.h"
#include "sched/src/now.h"
#include "sched/src/runtime_core.h"
#include "sched/src/stop_signals.h"

namespace bobbin::internal {

namespace {

struct PhaseShare {
  StopPhase phase;
  std::string_view name;
  int weight;  // Its share of what is left: its weight of those that are yet to come.
};

// Servers and executors finish what users wait for. The last weight is for virtual threads and
// resources, in Runtime::Shutdown.
constexpr PhaseShare kPhases[] = {{StopPhase::kAnnounce, "announce", 1},
                                  {StopPhase::kScheduler, "scheduler", 2},
                                  {StopPhase::kServers, "servers", 4},
                                  {StopPhase::kExecutors, "executors", 4}};
constexpr int kRestWeight = 2;

std::string_view NameOf(StopPhase phase) {
  for (const PhaseShare& known : kPhases) {
    if (known.phase == phase) return known.name;
  }
  return "resources";
}

// Calls a hook that was taken, on whatever thread that is to be.
void Call(StopHookRecord& hook, Deadline end) noexcept {
  const CancelShield shield;
  const DeadlineScope scope(end);
  const std::exception_ptr thrown = CaptureException([&hook] { hook.result = hook.call(); });
  if (thrown != nullptr) {
    hook.result = MakeStatus(
        absl::StatusCode::kUnknown,
        fmt::format("stop \"{}\": {}", hook.name,
                    Outcome{.status = absl::OkStatus(), .exception = thrown}.Describe()));
  }
  hook.has_ended.Set();
}

}  // namespace

LifecycleCore::LifecycleCore(RuntimeCore& runtime, std::chrono::nanoseconds budget)
    : runtime_(runtime), budget_(budget) {}

LifecycleCore::~LifecycleCore() {
  ForgetStopSignals(*this);
  const MutexLock lock(mutex_);
  if (thread_.is_joinable()) thread_.Join();
}

std::shared_ptr<StopHookRecord> LifecycleCore::Add(const StopHookOptions& options,
                                                   absl::AnyInvocable<absl::Status()> hook) {
  auto record = std::make_shared<StopHookRecord>(options, std::move(hook));
  const MutexLock lock(mutex_);
  std::erase_if(hooks_, [](const Hook& known) {
    const MutexLock hook_lock(known->mutex);
    return known->is_withdrawn;
  });
  hooks_.push_back(record);
  return record;
}

bool LifecycleCore::Begin(std::string_view cause) {
  if (has_begun_.exchange(true)) return false;
  end_ = Deadline::After(budget_);
  stopping_.Set();
  is_asked_ = !cause.empty();
  if (is_asked_) Say(fmt::format("{}; {:.1f} s for all of it", cause, Seconds(budget_)));
  return true;
}

void LifecycleCore::RequestStop(std::string_view cause) {
  if (!Begin(cause)) return;
  const MutexLock lock(mutex_);
  thread_ = OsThreadHandle("stop", [this] { RunPhases(); });
}

absl::Status LifecycleCore::Stop() {
  const CancelShield shield;
  // Nobody may wait for a task that waits here.
  runtime_.executors().Discount(Current());
  RequestStop("asked for");
  BOBBIN_CHECK(has_ended_.Wait().ok(), "nothing ends a shielded wait but its notify");
  return result_;
}

absl::Status LifecycleCore::AwaitPhases() {
  if (Begin("")) RunPhases();
  BOBBIN_CHECK(has_ended_.Wait().ok(), "nothing ends a shielded wait but its notify");
  return result_;
}

Deadline LifecycleCore::end() const noexcept {
  return std::max(end_, Deadline::After(budget_ / 10));
}

std::chrono::nanoseconds LifecycleCore::TimeLeft() const noexcept {
  return std::chrono::nanoseconds(end().nanoseconds() - MonotonicNow().time_since_epoch().count());
}

// --- The phases.

void LifecycleCore::RunPhases() {
  runtime_.LiftLimit();
  for (const PhaseShare& phase : kPhases) {
    const Deadline end = EndOf(phase.phase);
    RunHooks(phase.phase, end);
    if (phase.phase == StopPhase::kExecutors) RunExecutors(end);
  }
  living_ = runtime_.Live();
  cancelled_at_ = MonotonicNow();
  runtime_.EndPhases();
  if (!result_.ok()) {
    Say(MessageOf(result_), LogLevel::kError);
    const std::string dump =
        runtime_.facade().Dump({.budget = std::chrono::milliseconds(500),
                                .listed_max = 20,
                                .os_thread_stacks = OsThreadStacks::kPlatform});
    std::fputs(dump.c_str(), stderr);
  }
  has_ended_.Set();
}

Deadline LifecycleCore::EndOf(StopPhase phase) const {
  int weight = 0;
  int all = kRestWeight;
  for (const PhaseShare& known : kPhases) {
    if (known.phase < phase) continue;
    all += known.weight;
    if (known.phase == phase) weight = known.weight;
  }
  const std::chrono::nanoseconds left(end_.nanoseconds() -
                                      MonotonicNow().time_since_epoch().count());
  return Deadline::After(left / all * weight);
}

std::vector<LifecycleCore::Hook> LifecycleCore::Take(StopPhase phase) {
  std::vector<Hook> taken;
  const MutexLock lock(mutex_);
  for (const Hook& hook : hooks_) {
    if (hook->phase != phase) continue;
    const MutexLock hook_lock(hook->mutex);
    if (hook->is_withdrawn || std::exchange(hook->is_taken, true)) continue;
    taken.push_back(hook);
  }
  return taken;
}

void LifecycleCore::RunHooks(StopPhase phase, Deadline end) {
  const std::vector<Hook> hooks = Take(phase);
  if (hooks.empty()) return;
  const MonotonicTime begin = MonotonicNow();
  for (const Hook& hook : hooks) {
    runtime_.facade().Spawn({.name = hook->name}, [hook, end] { Call(*hook, end); }).Detach();
  }
  size_t late = 0;
  const DeadlineScope scope(end);
  for (const Hook& hook : hooks) {
    if (hook->has_ended.Wait().ok()) {
      Note(hook->result);
    } else {
      ++late;
      Note(MakeStatus(absl::StatusCode::kDeadlineExceeded,
                      fmt::format("stop \"{}\": it did not end in time", hook->name)));
    }
  }
  Say(fmt::format("phase {}, {}: {} of {} ended, {:.3f} s", static_cast<int>(phase), NameOf(phase),
                  hooks.size() - late, hooks.size(), Seconds(MonotonicNow() - begin)));
}

void LifecycleCore::RunExecutors(Deadline end) {
  const MonotonicTime begin = MonotonicNow();
  const std::chrono::nanoseconds budget(end.nanoseconds() - begin.time_since_epoch().count());
  // The program may have done so before.
  if (runtime_.executors().is_shut_down()) return;
  const bool had_tasks = !runtime_.executors().IsIdle();
  Note(runtime_.executors().Shutdown(std::max(budget, std::chrono::nanoseconds::zero())));
  if (had_tasks) {
    Say(fmt::format("phase {}, executors: {}, {:.3f} s", static_cast<int>(StopPhase::kExecutors),
                    runtime_.executors().DescribeEnd(), Seconds(MonotonicNow() - begin)));
  }
}

void LifecycleCore::TellOfThreads(uint64_t left) const {
  if (!is_asked_ || living_ == 0) return;
  Say(fmt::format("phase 5, virtual threads: {} of {} ended, {:.3f} s",
                  living_ - std::min(living_, left), living_,
                  Seconds(MonotonicNow() - cancelled_at_)));
}

absl::Status LifecycleCore::CloseResources() {
  std::vector<Hook> hooks = Take(StopPhase::kResources);
  if (hooks.empty()) return absl::OkStatus();
  const MonotonicTime begin = MonotonicNow();
  std::reverse(hooks.begin(), hooks.end());
  absl::Status result;
  for (const Hook& hook : hooks) {
    Call(*hook, end());
    result.Update(hook->result);
  }
  Say(fmt::format("phase {}, resources: {} closed, {:.3f} s",
                  static_cast<int>(StopPhase::kResources), hooks.size(),
                  Seconds(MonotonicNow() - begin)));
  return result;
}

void LifecycleCore::Note(absl::Status status) { result_.Update(std::move(status)); }

void LifecycleCore::Say(std::string_view line, LogLevel level) const {
  Tell({.level = level, .text = fmt::format("stop: {}", line)});
}

}  // namespace bobbin::internal

namespace bobbin {

StopHook& StopHook::operator=(StopHook&& other) noexcept {
  if (this != &other) {
    Withdraw();
    record_ = std::move(other.record_);
  }
  return *this;
}

void StopHook::Withdraw() noexcept {
  if (record_ == nullptr) return;
  bool is_running;
  {
    const MutexLock lock(record_->mutex);
    record_->is_withdrawn = true;
    is_running = record_->is_taken;
  }
  if (is_running) {
    const CancelShield shield;
    BOBBIN_CHECK(record_->has_ended.Wait().ok(), "nothing ends a shielded wait but its notify");
  } else {
    record_->call = nullptr;
  }
  record_.reset();
}

StopHook Lifecycle::OnStop(const StopHookOptions& options,
                           absl::AnyInvocable<absl::Status()> hook) {
  return StopHook(core_.Add(options, std::move(hook)));
}
absl::Status Lifecycle::Stop() { return core_.Stop(); }
void Lifecycle::RequestStop() { core_.RequestStop("asked for"); }
void Lifecycle::StopOnSignals(const std::vector<int>& signals) {
  internal::WatchStopSignals(signals, core_);
}
Event& Lifecycle::stopping() { return core_.stopping(); }

Lifecycle& CurrentLifecycle() { return internal::CurrentRuntime().lifecycle(); }

}  // namespace bobbin
