// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
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
StackUsage Runtime::MeasureStacks() const { return core_->MeasureStacks(); }
std::string Runtime::Dump(const DumpOptions& options) const {
  return internal::DumpRuntimes(core_.get(), options);
}

Runtime* CurrentRuntimeOrNull() { return internal::CurrentRuntimeOrNull(); }

int Run(absl::AnyInvocable<absl::Status()> main, RuntimeOptions options) {
  absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Create(std::move(options));
  absl::Status status = runtime.status();
  if (status.ok()) {
    VirtualThread first = (*runtime)->Spawn({.name = "main"}, std::move(main));
    status = first.Join();
    // It ended because it was asked to.
    const bool is_asked = (*runtime)->lifecycle().stopping().IsSet();
    if (is_asked && absl::IsCancelled(status)) status = absl::OkStatus();
    // A task may start virtual threads, and those may submit tasks.
    while (status.ok() && !(*runtime)->core().IsIdle()) {
      status = (*runtime)->AwaitIdle();
      if (status.ok()) status = (*runtime)->executors().AwaitIdle();
    }
    status.Update((*runtime)->Shutdown());
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "bobbin: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace bobbin
