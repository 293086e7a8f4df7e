// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/spawn.h>

#include <string>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>

#include "sched/src/carrier.h"
#include "sched/src/current_runtime.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

Task* TryNewTask(const SpawnOptions& options) {
  Carrier* const here = CurrentCarrier();
  if (__builtin_expect(here == nullptr, 0)) return CurrentRuntime().core().NewTask(options.name);
  return here->NewTask(options.name);
}

Task& NewTask(const SpawnOptions& options) {
  Task* const task = TryNewTask(options);
  if (__builtin_expect(task == nullptr, 0)) {
    BOBBIN_CHECK(task != nullptr, MessageOf(TooManyVirtualThreads(CurrentRuntime())));
  }
  return *task;
}

Task* TryNewTask(Runtime& runtime, const SpawnOptions& options) {
  return runtime.core().NewTask(options.name);
}

Task& NewTask(Runtime& runtime, const SpawnOptions& options) {
  Task* const task = TryNewTask(runtime, options);
  if (__builtin_expect(task == nullptr, 0)) {
    BOBBIN_CHECK(task != nullptr, MessageOf(TooManyVirtualThreads(runtime)));
  }
  return *task;
}

void Launch(Task& task, Placement placement) noexcept {
  Carrier* const here = CurrentCarrier();
  if (here != nullptr && placement == Placement::kHere) {
    here->PushFresh(task);
  } else {
    CurrentRuntime().core().Launch(task, placement);
  }
}

void Launch(Runtime& runtime, Task& task, Placement placement) noexcept {
  runtime.core().Launch(task, placement);
}

absl::Status TooManyVirtualThreads(Runtime& runtime) {
  std::string message = "spawn: the limit of " +
                        std::to_string(runtime.core().tasks().tasks_max()) +
                        " live virtual threads is reached";
  if (runtime.core().stacks_are_limited()) {
    message +=
        " (each guard page splits a mapping here: raise vm.max_map_count, or use kernel 6.13)";
  }
  return MakeStatus(absl::StatusCode::kResourceExhausted, message);
}

}  // namespace bobbin::internal
