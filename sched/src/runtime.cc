// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/select.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/runtime.h>

#include "sched/src/current_runtime.h"
#include "sched/src/dump.h"
#include "sched/src/fork_guard.h"
#include "sched/src/runtime_core.h"

namespace bobbin {

Runtime::Runtime(Uninitialized) {}

Runtime::Runtime(RuntimeOptions options)
    : core_(std::make_unique<internal::RuntimeCore>(*this, std::move(options))) {
  const absl::Status started = core_->Start();
  BOBBIN_CHECK(started.ok(), "the runtime cannot start: " + std::string(MessageOf(started)));
}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Create(RuntimeOptions options) {
  auto runtime = std::make_unique<Runtime>(Uninitialized{});
  runtime->core_ = std::make_unique<internal::RuntimeCore>(*runtime, std::move(options));
  BOBBIN_RETURN_IF_ERROR(runtime->core_->Start());
  return runtime;
}

Runtime::~Runtime() {
  if (core_ == nullptr) return;
  // Its carriers are the parent's.
  if (internal::ForkGuard::IsForked()) {
    static_cast<void>(core_.release());
    return;
  }
  const absl::Status ended = Shutdown();
  if (!ended.ok()) internal::Tell({.level = LogLevel::kError, .text = MessageOf(ended)});
  // Carriers that would not end still use it.
  if (core_->has_abandoned_carriers()) static_cast<void>(core_.release());
}

absl::Status Runtime::AwaitIdle() {
  return core_->AwaitIdle() ? absl::OkStatus() : internal::Current().StopStatus();
}
Lifecycle& Runtime::lifecycle() { return core_->lifecycle().facade(); }
Executors& Runtime::executors() { return core_->executors().facade(); }
absl::Status Runtime::Shutdown() { return core_->Shutdown(); }
int Runtime::carriers() const { return core_->carrier_count(); }
std::string_view Runtime::poller_name() const { return core_->carrier(0).poller().name(); }
std::string_view Runtime::poller_reason() const { return core_->carrier(0).poller().reason(); }
RuntimeStatistics Runtime::Statistics() const { return core_->Statistics(); }
std::vector<HeldCarrier> Runtime::HeldCarriers() const { return core_->HeldCarriers(); }
StackUsage Runtime::MeasureStacks() const { return core_->MeasureStacks(); }
std::string Runtime::Dump(const DumpOptions& options) const {
  return internal::DumpRuntimes(core_.get(), options);
}

Runtime* CurrentRuntimeOrNull() { return internal::CurrentRuntimeOrNull(); }

namespace {

// What `main` has ended with, and all that it has started. From the moment when a stop is asked for
// that takes no longer than its budget.
absl::Status RunToTheEnd(Runtime& runtime, absl::AnyInvocable<absl::Status()> main) {
  const auto has_returned = std::make_shared<Event>();  // May be set after this function has gone.
  VirtualThread first =
      runtime.Spawn({.name = "main"}, [has_returned, main = std::move(main)]() mutable {
        const absl::Cleanup tell = [&has_returned] { has_returned->Set(); };
        return main();
      });
  Event& stopping = runtime.lifecycle().stopping();
  BOBBIN_RETURN_IF_ERROR(Select(OnEvent(*has_returned, [] {}), OnEvent(stopping, [] {})));

  absl::Status status;
  if (!stopping.IsSet()) {
    status = first.Join();
  } else {
    const DeadlineScope budget(runtime.core().lifecycle().end());
    status = first.Join();
    if (first.is_joinable()) {  // Shutdown names it.
      std::move(first).Detach();
      return absl::OkStatus();
    }
  }
  // It ended because it was asked to.
  if (absl::IsCancelled(status) && stopping.IsSet()) return absl::OkStatus();

  // A task may start virtual threads, and those may submit tasks.
  while (status.ok() && !stopping.IsSet() && !runtime.core().IsIdle()) {
    if (runtime.core().AwaitIdleOrStop()) {
      status = runtime.executors().AwaitIdle();
    } else {
      status = internal::Current().StopStatus();
    }
  }
  return status;
}

}  // namespace

int Run(absl::AnyInvocable<absl::Status()> main, RuntimeOptions options) {
  absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Create(std::move(options));
  absl::Status status = runtime.status();
  if (status.ok()) {
    status = RunToTheEnd(**runtime, std::move(main));
    status.Update((*runtime)->Shutdown());
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "bobbin: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace bobbin
