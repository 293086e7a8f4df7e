// SPDX-License-Identifier: Apache-2.0

#include "sched/src/executors_core.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>

#include "sched/src/executor_configuration.h"
#include "sched/src/platform_executor.h"
#include "sched/src/virtual_executor.h"

namespace bobbin::internal {

namespace {

// What the library itself uses.
struct KnownName {
  std::string_view name;
  ThreadKind kind;
  size_t threads;
};
constexpr KnownName kKnownNames[] = {{"default", ThreadKind::kPlatform, 8},
                                     {"default-virtual", ThreadKind::kVirtual, 8},
                                     // A job that runs for long must not be able to fill them.
                                     {"scheduling", ThreadKind::kPlatform, 2},
                                     {"scheduling-virtual", ThreadKind::kVirtual, 8}};

const KnownName* Known(std::string_view name) {
  for (const KnownName& known : kKnownNames) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

std::shared_ptr<const FailureSink::Handler> Shared(FailureSink::Handler&& handler) {
  if (!handler) return nullptr;
  return std::make_shared<const FailureSink::Handler>(std::move(handler));
}

void CheckOptions(const std::string& name, const ExecutorOptions& options) {
  const auto check = [&name](bool is_good, std::string_view rule) {
    if (!is_good) BOBBIN_CHECK(is_good, fmt::format("executor \"{}\": {}", name, rule));
  };
  check(options.threads >= 1, "threads is 0");
  check(options.threads_max == 0 || options.threads_max >= options.threads,
        "threads_max is smaller than threads");
  check(options.threads <= PlatformPool::kThreadsMax &&
            options.threads_max <= PlatformPool::kThreadsMax,
        "more than 4096 threads");
  check(options.concurrency >= 1, "concurrency is 0");
}

// The last part of the budget is for those that are asked to stop.
constexpr std::chrono::nanoseconds Grace(std::chrono::nanoseconds budget) { return budget / 5 * 4; }

}  // namespace

ExecutorsCore::ExecutorsCore(Runtime& runtime, ExecutorsOptions options)
    : runtime_(runtime),
      facade_(*this),
      named_(std::move(options.named)),
      configuration_(std::move(options.configuration)),
      handler_(Shared(std::move(options.on_uncaught_failure))) {
  for (const auto& [name, executor] : named_) CheckOptions(name, executor);
}

absl::StatusOr<ExecutorOptions> ExecutorsCore::OptionsOf(std::string_view name) const {
  ExecutorOptions options;
  if (const auto named = named_.find(name); named != named_.end()) {
    options = named->second;
  } else if (const KnownName* const known = Known(name)) {
    options.threads = known->threads;
  }
  BOBBIN_RETURN_IF_ERROR(Configure(configuration_, name, options));
  return options;
}

absl::Status ExecutorsCore::CheckConfiguration() const {
  for (const std::string& name : ConfiguredExecutors(configuration_)) {
    BOBBIN_RETURN_IF_ERROR(OptionsOf(name).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecutorsCore::Entry*> ExecutorsCore::Make(std::string_view name) {
  Entry entry;
  BOBBIN_ASSIGN_OR_RETURN(entry.options, OptionsOf(name));
  entry.kind = entry.options.kind;
  if (entry.kind == ThreadKind::kAuto) entry.kind = ThreadKind::kVirtual;
  if (const KnownName* const known = Known(name); known != nullptr && !entry.kind.has_value()) {
    entry.kind = known->kind;
  }
  entry.executor = std::make_unique<Executor>(*this, std::string(name));
  return &entries_.emplace(name, std::move(entry)).first->second;
}

absl::StatusOr<Executor*> ExecutorsCore::Find(std::string_view name,
                                              std::optional<ThreadKind> kind) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() && is_shut_down_) {
    return MakeStatus(absl::StatusCode::kUnavailable,
                      fmt::format("executor \"{}\": its runtime has stopped", name));
  }
  Entry* known = nullptr;
  if (found != entries_.end()) {
    known = &found->second;
  } else {
    BOBBIN_ASSIGN_OR_RETURN(known, Make(name));
  }
  Entry& entry = *known;
  if (!kind.has_value() || entry.options.kind.has_value()) return entry.executor.get();
  if (kind == ThreadKind::kAuto) {
    entry.is_asked_for_as_auto = true;
  } else if (!entry.kind.has_value()) {
    entry.kind = kind;
  } else if (entry.kind != kind) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        fmt::format("executor \"{0}\" is {1}, and is asked for as {2}: use another name for one of "
                    "the two, or set bobbin.task.executor.{0}.kind",
                    name, ThreadKindName(*entry.kind), ThreadKindName(*kind)));
  }
  return entry.executor.get();
}

ExecutorCore& ExecutorsCore::Begin(Executor& executor) {
  const MutexLock lock(mutex_);
  Entry& entry = entries_.find(executor.name())->second;
  if (entry.core != nullptr) return *entry.core;
  if (!entry.kind.has_value()) {
    entry.kind = entry.is_asked_for_as_auto ? ThreadKind::kVirtual : ThreadKind::kPlatform;
  }
  auto sink = std::make_shared<const FailureSink>(handler_, executor.name());
  if (entry.kind == ThreadKind::kVirtual) {
    entry.core = std::make_unique<VirtualExecutor>(runtime_, executor.name(), entry.options,
                                                   std::move(sink));
  } else {
    entry.core = std::make_unique<PlatformExecutor>(runtime_, executor.name(), entry.options,
                                                    std::move(sink));
  }
  if (is_shut_down_) entry.core->Close();
  // Pairs with the acquire in Executor::core.
  executor.core_.store(entry.core.get(), std::memory_order_release);
  return *entry.core;
}

std::vector<const Executor*> ExecutorsCore::All() {
  const MutexLock lock(mutex_);
  std::vector<const Executor*> all;
  all.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) all.push_back(entry.executor.get());
  return all;
}

std::vector<ExecutorCore*> ExecutorsCore::Cores() {
  const MutexLock lock(mutex_);
  std::vector<ExecutorCore*> cores;
  for (const auto& [name, entry] : entries_) {
    if (entry.core != nullptr) cores.push_back(entry.core.get());
  }
  return cores;
}

bool ExecutorsCore::IsIdle() {
  for (ExecutorCore* const core : Cores()) {
    if (!core->IsIdle()) return false;
  }
  return true;
}

absl::Status ExecutorsCore::AwaitIdle() {
  while (!IsIdle()) {
    for (ExecutorCore* const core : Cores()) {
      if (!core->AwaitDrained()) return Current().StopStatus();
    }
  }
  return absl::OkStatus();
}

// --- The end.

void ExecutorsCore::Discount(const Thread& thread) {
  for (ExecutorCore* const core : Cores()) core->Discount(thread);
}

std::string ExecutorsCore::DescribeEnd() {
  uint64_t ended = 0;
  uint64_t dropped = 0;
  uint64_t abandoned = 0;
  for (ExecutorCore* const core : Cores()) {
    const ExecutorStatistics statistics = core->Statistics();
    ended += statistics.completed + statistics.failed;
    dropped += statistics.dropped;
    abandoned += statistics.abandoned;
  }
  return fmt::format("of all tasks {} ended, {} dropped, {} abandoned", ended, dropped, abandoned);
}

absl::Status ExecutorsCore::Shutdown(std::chrono::nanoseconds budget) {
  const CancelShield shield;
  const MutexLock once(shutdown_mutex_);
  if (shutdown_result_.has_value()) return *shutdown_result_;
  {
    const MutexLock lock(mutex_);
    is_shut_down_ = true;
  }
  const Deadline end = Deadline::After(budget);
  const std::vector<ExecutorCore*> cores = Cores();
  for (ExecutorCore* const core : cores) core->Close();
  {
    const DeadlineScope grace(Grace(budget));
    for (ExecutorCore* const core : cores) static_cast<void>(core->AwaitDrained());
  }
  for (ExecutorCore* const core : cores) {
    core->DropUnbegun();
    core->RequestStop();
  }
  std::vector<std::string> abandoned;
  {
    const DeadlineScope rest(end);
    for (ExecutorCore* const core : cores) {
      if (core->AwaitDrained()) continue;
      for (std::string& name : core->Abandon()) abandoned.push_back(std::move(name));
    }
  }
  shutdown_result_ = abandoned.empty()
                         ? absl::OkStatus()
                         : MakeStatus(absl::StatusCode::kDeadlineExceeded,
                                      fmt::format("shut down: {} tasks still run: {}",
                                                  abandoned.size(), fmt::join(abandoned, ", ")));
  return *shutdown_result_;
}

void ExecutorsCore::Join(std::chrono::nanoseconds budget) {
  const MutexLock lock(mutex_);
  for (auto& [name, entry] : entries_) {
    if (entry.core == nullptr || entry.core->Join(budget)) continue;
    static_cast<void>(entry.core.release());
  }
}

}  // namespace bobbin::internal

namespace bobbin {

absl::StatusOr<Executor*> Executors::Find(std::string_view name) {
  return core_.Find(name, std::nullopt);
}
absl::StatusOr<Executor*> Executors::Find(std::string_view name, ThreadKind kind) {
  return core_.Find(name, kind);
}
std::vector<const Executor*> Executors::All() const { return core_.All(); }
absl::Status Executors::AwaitIdle() { return core_.AwaitIdle(); }
absl::Status Executors::Shutdown(std::chrono::nanoseconds budget) {
  core_.Discount(internal::Current());
  return core_.Shutdown(budget);
}

}  // namespace bobbin
