// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/spawn.h>

#include <string>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/runtime.h>

#include "sched/src/runtime_core.h"

namespace bobbin::internal {

Task* NewTask(Runtime& runtime, const SpawnOptions& options) {
  return runtime.core().NewTask(options.name);
}

Task& NewTaskOrAbort(Runtime& runtime, const SpawnOptions& options) {
  Task* const task = NewTask(runtime, options);
  BOBBIN_CHECK(task != nullptr, MessageOf(TooManyVirtualThreads(runtime)));
  return *task;
}

void Launch(Runtime& runtime, Task& task, Placement placement) noexcept {
  runtime.core().Launch(task, placement);
}

absl::Status TooManyVirtualThreads(const Runtime& runtime) {
  std::string message =
      "spawn: the limit of " +
      std::to_string(runtime.core().tasks_max()) +
      " live virtual threads is reached";
  if (runtime.core().stacks_are_limited()) {
    message += " (each guard page splits a mapping here: raise vm.max_map_count, or use kernel 6.13)";
  }
  return MakeStatus(absl::StatusCode::kResourceExhausted, message);
}

}  // namespace bobbin::internal
