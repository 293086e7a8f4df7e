// SPDX-License-Identifier: Apache-2.0

#include "sched/src/dump_part.h"

#include <utility>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/futex.h>
#include <bobbin/core/internal/timer_node.h>

#include "sched/src/carrier.h"
#include "sched/src/limits.h"
#include "sched/src/now.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

namespace {

// How many blocks are looked at between two looks at the clock, where none is the carrier's.
constexpr size_t kBlocksPerLook = 256;
constexpr size_t kRecordsPerPiece = 64;

// The waiting thread is parked, so what it waits at is there.
const Thread* HolderOf(const WaitReason& reason) noexcept {
  if (reason.kind->object == WaitObject::kTask) return static_cast<const Task*>(reason.object);
  if (reason.kind->holder_word == WaitKind::kNobody) return nullptr;
  const char* const word = static_cast<const char*>(reason.object) + reason.kind->holder_word;
  return HolderIn(*reinterpret_cast<const Atomic<uintptr_t>*>(word));
}

}  // namespace

bool DumpPart::Continue(const Carrier& carrier, const Thread* running) noexcept {
  const int64_t stop = Now() + kDumpSliceNanoseconds;
  SpinLockHolder hold(lock_);
  if (is_closed_) return true;
  size_t unlooked = 0;
  while (next_ < end_) {
    const Task& task = tasks_.At(next_++);
    const Phase phase = task.state().phase();
    // Only this OS thread starts and ends the threads of this carrier, so none of them changes now.
    const bool is_own = task.dispatcher() == &carrier && phase != Phase::kIdle &&
                        phase != Phase::kFresh && phase != Phase::kDone;
    if (is_own) Describe(carrier, task, running);
    if (!is_own && ++unlooked % kBlocksPerLook != 0) continue;
    if (Now() >= stop) return next_ == end_;
  }
  return true;
}

void DumpPart::Describe(const Carrier& carrier, const Task& task, const Thread* running) {
  if (threads_.empty() || threads_.back().size() == kRecordsPerPiece) {
    threads_.emplace_back().reserve(kRecordsPerPiece);
  }
  ThreadRecord& record = threads_.back().emplace_back();
  record.thread = &task;
  record.id = task.id();
  record.parent = task.parent_id();
  record.name = std::string(task.name());
  record.carrier = carrier.index();
  record.is_cancelled = task.is_cancelled();
  record.is_shielded = task.is_shielded();
  const StackPool& pool = carrier.runtime().stacks().OfTask(task);
  record.stack = task.stack();
  record.size_class = task.size_class();
  record.stack_bytes = pool.BytesOf(task.stack());
  if (&task == running) {
    record.status = ThreadStatus::kRunning;
    record.trace = traces_.Add(Backtrace::OfCaller());
    return;
  }
  const auto* const parked_at = static_cast<const char*>(task.parked_context());
  record.stack_used = static_cast<size_t>(pool.TopOf(task.stack()) - parked_at);
  record.trace = traces_.Add(Backtrace::OfParked(task.parked_context()));
  const Phase phase = task.state().phase();
  if (!IsWaiting(phase)) return;
  record.status = ThreadStatus::kWaiting;
  const WaitReason& reason = *task.wait_reason();
  record.kind = reason.kind;
  record.object = reason.object;
  record.since = reason.since;
  record.holder = HolderOf(reason);
  const TimerNode* const timer = task.governing();
  if (timer != nullptr && phase != Phase::kWaitingShielded) record.deadline = timer->deadline;
}

void DumpPart::Finish() noexcept {
  is_finished_.store(1);
  FutexWakeOne(is_finished_);
}

bool DumpPart::Await(int64_t deadline) noexcept {
  while (is_finished_.load() == 0) {
    if (!FutexWait(is_finished_, 0, deadline)) return is_finished_.load() != 0;
  }
  return true;
}

std::vector<ThreadRecord> DumpPart::Take(TraceTable& traces) noexcept {
  SpinLockHolder hold(lock_);
  is_closed_ = true;
  std::vector<uint32_t> numbers(traces_.size() + 1, TraceTable::kNone);
  for (uint32_t number = 1; number < numbers.size(); ++number) {
    numbers[number] = traces.Add(traces_.frames(number), traces_.is_cut(number));
  }
  std::vector<ThreadRecord> taken;
  for (std::vector<ThreadRecord>& piece : threads_) {
    for (ThreadRecord& record : piece) {
      record.trace = numbers[record.trace];
      taken.push_back(std::move(record));
    }
  }
  threads_.clear();
  return taken;
}

}  // namespace bobbin::internal
