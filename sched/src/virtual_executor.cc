// SPDX-License-Identifier: Apache-2.0

#include "sched/src/virtual_executor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/internal/context_node.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/spawn.h>

#include "sched/src/executor_path.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

VirtualExecutor::VirtualExecutor(Runtime& runtime, std::string name, ExecutorOptions options,
                                 std::shared_ptr<const FailureSink> sink)
    : ExecutorCore(runtime, std::move(name), ThreadKind::kVirtual, std::move(options),
                   std::move(sink)),
      free_(options_.concurrency) {}

[[gnu::always_inline]] inline bool VirtualExecutor::TakePlaceIn(Share& share, const Carrier* here,
                                                                AsyncTask& task) noexcept {
  const ShareHolder hold(share, here);
  if (__builtin_expect(!is_plain() || share.places == 0, 0)) return false;
  --share.places;
  Enlist(share, task);
  return true;
}

[[gnu::always_inline]] inline void VirtualExecutor::Prepare(Task& thread,
                                                            AsyncTask& task) noexcept {
  thread.set_migrates(false);
  thread.set_detached();
  thread.set_body(Body::Emplace(thread.body_storage(), [this, &task]() noexcept { Serve(task); }));
}

[[gnu::always_inline]] inline bool VirtualExecutor::TryStartNew(Carrier& here,
                                                                AsyncTask& task) noexcept {
  // The limits are TryNewTask's; whoever meets one goes on to that.
  if (__builtin_expect(
          here.live_limit() != nullptr || runtime_.core().stacks().is_exhausted() || HasName(task),
          0)) {
    return false;
  }
  Task* const thread = here.NewTask({});
  if (__builtin_expect(thread == nullptr, 0)) return false;
  Prepare(*thread, task);
  here.PushFresh(*thread);
  return true;
}

absl::Status VirtualExecutor::Place(AsyncTask& task, Entry entry) noexcept {
  Carrier* const here = runtime_.core().OwnCarrier();
  if (__builtin_expect(entry == Entry::kNew && TakePlaceIn(ShareOn(here), here, task), 1)) {
    if (__builtin_expect(here != nullptr && TryStartNew(*here, task), 1)) return absl::OkStatus();
    return StartPlaced(task);
  }
  AsyncTask* oldest = nullptr;
  Verdict verdict;
  {
    const AllLocksHolder hold(*this);
    verdict = Judge(task, entry, oldest);
  }
  absl::Status status;
  switch (verdict) {
    case Verdict::kHasPlace:
      return StartPlaced(task);
    case Verdict::kQueued:
      // From here on the task may be gone.
      if (oldest == nullptr) return status;
      DropFromPath(*oldest, &ExecutorStatistics::dropped,
                   StatusFor(*oldest, absl::StatusCode::kResourceExhausted,
                             "it was dropped for a newer task"));
      return status;
    case Verdict::kLent:
      RunByCaller(task);
      return status;
    case Verdict::kNotAdmitted:
      return Refuse(task, entry);
    case Verdict::kFull:
    case Verdict::kDiscarded:
      status = StatusFor(task, absl::StatusCode::kResourceExhausted,
                         fmt::format("{} tasks run, and the queue of {} is full",
                                     options_.concurrency, options_.queue_max));
      DropFromPath(
          task,
          verdict == Verdict::kFull ? &ExecutorStatistics::rejected : &ExecutorStatistics::dropped,
          status);
      return verdict == Verdict::kFull ? status : absl::OkStatus();
  }
  return status;
}

absl::Status VirtualExecutor::StartPlaced(AsyncTask& task) noexcept {
  absl::Status status;
  if (TryStart(task)) return status;
  // It has a place, but gets no virtual thread: neither will those behind it.
  AsyncTask* refused = &task;
  while (refused != nullptr) {
    const absl::Status why = WhyNotSpawned(runtime_, {});
    absl::Status reason = StatusFor(*refused, why.code(), MessageOf(why));
    if (refused == &task) status = reason;
    DropFromPath(*refused, &ExecutorStatistics::rejected, reason);
    const AllLocksHolder hold(*this);
    refused = PassPlace();
  }
  return status;
}

bool VirtualExecutor::TakePlace() noexcept {
  for (Share& share : shares()) {
    share.AssertHeld();
    free_ += std::exchange(share.places, 0);
  }
  if (free_ == 0) return false;
  Share& own = ShareHere();
  own.AssertHeld();
  const size_t part = std::max(free_ / shares().size(), size_t{1});
  free_ -= part;
  own.places = part - 1;
  return true;
}

VirtualExecutor::Verdict VirtualExecutor::Judge(AsyncTask& task, Entry entry,
                                                AsyncTask*& oldest) noexcept {
  if (!Admit(task, entry)) return Verdict::kNotAdmitted;
  if (queued_ == 0 && TakePlace()) return Verdict::kHasPlace;
  if (queued_ >= options_.queue_max) {
    switch (options_.rejection) {
      case Rejection::kAbort:
        return Verdict::kFull;
      case Rejection::kCallerRuns:
        return CurrentRole() == Role::kCarrier || entry == Entry::kDue ? Verdict::kFull
                                                                       : Verdict::kLent;
      case Rejection::kDiscard:
        return Verdict::kDiscarded;
      case Rejection::kDiscardOldest:
        oldest = static_cast<AsyncTask*>(queue_.PopFront());
        if (oldest == nullptr) return Verdict::kFull;
        --queued_;
        break;
    }
  }
  queue_.PushBack(task);
  ++queued_;
  return Verdict::kQueued;
}

bool VirtualExecutor::TakeFromQueue(AsyncTask& task) noexcept {
  PoolTask& queued = task;
  if (!queued.is_linked()) return false;
  queue_.Remove(queued);
  --queued_;
  return true;
}

AsyncTask* VirtualExecutor::PassPlace() noexcept {
  PoolTask* const next = queue_.PopFront();
  if (next == nullptr) {
    ++free_;
    return nullptr;
  }
  --queued_;
  return static_cast<AsyncTask*>(next);
}

bool VirtualExecutor::TryStart(AsyncTask& task) noexcept {
  // Not the context of whoever has made room for it.
  const ContextSwap context(task.context());
  RuntimeCore& runtime = runtime_.core();
  Task* const thread =
      HasName(task) ? runtime.TryNewTask(options_.thread_name_prefix + std::string(task.name()))
                    : runtime.TryNewTask({});
  if (thread == nullptr) return false;
  Prepare(*thread, task);
  runtime.Launch(*thread, Placement::kHere);
  return true;
}

void VirtualExecutor::Serve(AsyncTask& first) noexcept {
  AsyncTask* task = &first;
  while (task != nullptr) {
    task->Run();
    AsyncTask* const next = task->Conclude();
    task = next != nullptr && !TryStart(*next) ? next : nullptr;
  }
}

void VirtualExecutor::Replace(AsyncTask& next) noexcept {
  if (!TryStart(next)) Serve(next);
}

}  // namespace bobbin::internal
