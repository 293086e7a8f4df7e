// SPDX-License-Identifier: Apache-2.0

#include <cstddef>

#include <bobbin/core/internal/debugger.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/stack_cache.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/internal/task_cache.h>
#include <bobbin/core/internal/wait_reason.h>

namespace bobbin::internal {

namespace {
SpinLock pools_lock;
}  // namespace

// The script knows these by number.
static_assert(static_cast<int>(Phase::kFresh) == 1 && static_cast<int>(Phase::kRunning) == 2 &&
              static_cast<int>(Phase::kWaiting) == 3 &&
              static_cast<int>(Phase::kWaitingKernel) == 6 && static_cast<int>(Phase::kDone) == 10);
static_assert(static_cast<int>(WaitObject::kTask) == 3);

// What has bases is not of standard layout, but its members are where they are.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

constinit DebuggerView DebuggerView::view = {
    .version = 2,
    .first_pool = nullptr,
    .pool_next = offsetof(TaskPool, next_pool_),
    .pool_chunks = offsetof(TaskPool, chunks_),
    .pool_carved = offsetof(TaskPool, carved_),
    .chunk_bytes = TaskPool::kChunkBytes,
    .chunk_head_bytes = sizeof(TaskPool::ChunkHead),
    .task_bytes = sizeof(Task),
    .tasks_per_chunk = TaskPool::kTasksPerChunk,
    .task_state = offsetof(Task, state_),
    .task_context = offsetof(Task, context_),
    .task_dispatcher = offsetof(Task, dispatcher_),
    .task_wait = offsetof(Task, wait_),
    .task_stack = offsetof(Task, stack_),
    .task_id = offsetof(Task, id_),
    .task_parent = offsetof(Task, parent_),
    .task_name = offsetof(Task, name_),
    .reason_kind = offsetof(WaitReason, kind),
    .reason_object = offsetof(WaitReason, object),
    .reason_since = offsetof(WaitReason, since),
    .kind_name = offsetof(WaitKind, name),
    .kind_object = offsetof(WaitKind, object),
    .kind_holder_word = offsetof(WaitKind, holder_word),
    .dispatcher_stack_pool = offsetof(Dispatcher, stacks_) + offsetof(StackCache, pool_),
    .stack_pool_stack_bytes = offsetof(StackPool, stack_bytes_),
    .task_ending = offsetof(Task, ending_),
    .size_class_shift = Task::kSizeClassShift,
    .size_class_bits = Task::kSizeClassBits,
    .size_min = StackPool::kSizeMin,
};

#pragma GCC diagnostic pop

void DebuggerView::Add(TaskPool& pool) noexcept {
  SpinLockHolder hold(pools_lock);
  pool.next_pool_ = view.first_pool;
  view.first_pool = &pool;
}

void DebuggerView::Remove(TaskPool& pool) noexcept {
  SpinLockHolder hold(pools_lock);
  TaskPool** place = &view.first_pool;
  while (*place != &pool) place = &(*place)->next_pool_;
  *place = pool.next_pool_;
}

}  // namespace bobbin::internal
