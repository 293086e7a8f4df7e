// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/status.h>
#include <bobbin/sched/async.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

#include "sched/src/current_runtime.h"
#include "sched/src/executor_core.h"
#include "sched/src/executors_core.h"

namespace bobbin {

std::string_view ThreadKindName(ThreadKind kind) {
  switch (kind) {
    case ThreadKind::kPlatform:
      return "platform";
    case ThreadKind::kVirtual:
      return "virtual";
    case ThreadKind::kAuto:
      return "auto";
  }
  return "?";
}

internal::ExecutorCore& Executor::Begin() { return home_.Begin(*this); }

ExecutorStatistics Executor::Statistics() const {
  // Pairs with the release in ExecutorsCore::Begin.
  internal::ExecutorCore* const core = core_.load(std::memory_order_acquire);
  return core == nullptr ? ExecutorStatistics{} : core->Statistics();
}

Executors& CurrentExecutors() { return internal::CurrentRuntime().executors(); }

absl::StatusOr<Executor*> ExecutorChoice::FindByName() const {
  Runtime* const runtime = internal::CurrentRuntimeOrNull();
  if (runtime == nullptr) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "async: a foreign thread has no runtime whose executors have names: it asks "
                      "Runtime::executors");
  }
  return runtime->executors().Find(name_);
}

}  // namespace bobbin
