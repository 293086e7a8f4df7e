// SPDX-License-Identifier: Apache-2.0
//
// Linked into a test, with --wrap for the four functions below, this makes every virtual thread of
// it a migrating one.

#include <bobbin/sched/spawn.h>

namespace bobbin::internal {

Task* RealTryNewTask(const SpawnOptions& options) __asm__(
    "__real__ZN6bobbin8internal10TryNewTaskERKNS_12SpawnOptionsE");
Task* RealTryNewTask(Runtime& runtime, const SpawnOptions& options) __asm__(
    "__real__ZN6bobbin8internal10TryNewTaskERNS_7RuntimeERKNS_12SpawnOptionsE");
Task& RealNewTask(const SpawnOptions& options) __asm__(
    "__real__ZN6bobbin8internal7NewTaskERKNS_12SpawnOptionsE");
Task& RealNewTask(Runtime& runtime, const SpawnOptions& options) __asm__(
    "__real__ZN6bobbin8internal7NewTaskERNS_7RuntimeERKNS_12SpawnOptionsE");

Task* WrappedTryNewTask(const SpawnOptions& options) __asm__(
    "__wrap__ZN6bobbin8internal10TryNewTaskERKNS_12SpawnOptionsE");
Task* WrappedTryNewTask(Runtime& runtime, const SpawnOptions& options) __asm__(
    "__wrap__ZN6bobbin8internal10TryNewTaskERNS_7RuntimeERKNS_12SpawnOptionsE");
Task& WrappedNewTask(const SpawnOptions& options) __asm__(
    "__wrap__ZN6bobbin8internal7NewTaskERKNS_12SpawnOptionsE");
Task& WrappedNewTask(Runtime& runtime, const SpawnOptions& options) __asm__(
    "__wrap__ZN6bobbin8internal7NewTaskERNS_7RuntimeERKNS_12SpawnOptionsE");

namespace {
SpawnOptions Migrating(SpawnOptions options) {
  options.migrates = true;
  return options;
}
}  // namespace

Task* WrappedTryNewTask(const SpawnOptions& options) { return RealTryNewTask(Migrating(options)); }
Task* WrappedTryNewTask(Runtime& runtime, const SpawnOptions& options) {
  return RealTryNewTask(runtime, Migrating(options));
}
Task& WrappedNewTask(const SpawnOptions& options) { return RealNewTask(Migrating(options)); }
Task& WrappedNewTask(Runtime& runtime, const SpawnOptions& options) {
  return RealNewTask(runtime, Migrating(options));
}

}  // namespace bobbin::internal
