// SPDX-License-Identifier: Apache-2.0

#include <bobbin/sched/spawn.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/sched/runtime.h>

#include "sched/src/carrier.h"
#include "sched/src/current_runtime.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

Task* TryNewTask(const SpawnOptions& options) { return TryNewTask(CurrentRuntime(), options); }

Task* TryNewTask(Runtime& runtime, const SpawnOptions& options) {
  RuntimeCore& core = runtime.core();
  if (options.stack_bytes != 0 && !StackPool::IsSize(options.stack_bytes)) return nullptr;
  Task* const task = options.stack_bytes == 0
                         ? core.TryNewTask(options.name)
                         : core.TryNewSizedTask(options.name, options.stack_bytes);
  if (task != nullptr) task->set_migrates(core.MayMigrate(options.migrates));
  return task;
}

Task& NewTask(const SpawnOptions& options) {
  Carrier* const here = CurrentCarrier();
  if (__builtin_expect(here == nullptr || here->live_limit() != nullptr || options.stack_bytes != 0,
                       0)) {
    return NewTask(CurrentRuntime(), options);
  }
  Task* const task = here->NewTask(options.name);
  if (__builtin_expect(task == nullptr, 0)) {
    BOBBIN_CHECK(task != nullptr, "out of memory for virtual threads");
  }
  task->set_migrates(here->runtime().MayMigrate(options.migrates));
  return *task;
}

Task& NewTask(Runtime& runtime, const SpawnOptions& options) {
  RuntimeCore& core = runtime.core();
  BOBBIN_CHECK(options.stack_bytes == 0 || StackPool::IsSize(options.stack_bytes),
               "stack_bytes of a virtual thread: from 16 KiB to 64 MiB");
  Task* const task = options.stack_bytes == 0
                         ? core.NewTask(options.name)
                         : core.NewSizedTask(options.name, options.stack_bytes);
  BOBBIN_CHECK(task != nullptr, "out of memory for virtual threads");
  task->set_migrates(core.MayMigrate(options.migrates));
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

absl::Status WhyNotSpawned(Runtime& runtime, const SpawnOptions& options) {
  return runtime.core().WhyNoTask(options.stack_bytes);
}

}  // namespace bobbin::internal
