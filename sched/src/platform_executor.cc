// SPDX-License-Identifier: Apache-2.0

#include "sched/src/platform_executor.h"

#include <utility>

#include <bobbin/core/status.h>

#include "sched/src/executor_path.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

namespace {

PlatformPoolOptions PoolOptions(const std::string& name, const ExecutorOptions& options) {
  return {.name = name,
          .thread_name_prefix = options.thread_name_prefix,
          .threads = options.threads,
          .threads_max = options.threads_max,
          .queue_max = options.queue_max,
          .keep_alive = options.keep_alive,
          .rejection = options.rejection};
}

}  // namespace

PlatformExecutor::PlatformExecutor(Runtime& runtime, std::string name, ExecutorOptions options,
                                   std::shared_ptr<const FailureSink> sink)
    : ExecutorCore(runtime, std::move(name), ThreadKind::kPlatform, std::move(options),
                   std::move(sink)),
      pool_(std::make_shared<PlatformPoolCore>(PoolOptions(name_, options_), &runtime)) {}

absl::Status PlatformExecutor::Place(AsyncTask& task, Entry entry) noexcept {
  if (!(entry == Entry::kNew && EnlistHere(task))) {
    bool is_admitted;
    {
      const AllLocksHolder hold(*this);
      is_admitted = Admit(task, entry);
    }
    if (!is_admitted) return Refuse(task, entry);
  }

  const Offered offered = pool_->Offer(task, Admission::kBounded);
  // Once it was accepted, the task may be gone.
  switch (offered) {
    case Offered::kAccepted:
      return absl::OkStatus();
    case Offered::kRunByCaller:
      RunByCaller(task);
      return absl::OkStatus();
    case Offered::kDropped:
    case Offered::kRefused:
    case Offered::kNoThread:
    case Offered::kShutDown:
      break;
  }
  const absl::Status reason = pool_->StatusOf(offered);
  const absl::Status status = StatusFor(task, reason.code(), MessageOf(reason));
  const bool is_silent = offered == Offered::kDropped;
  DropFromPath(task, is_silent ? &ExecutorStatistics::dropped : &ExecutorStatistics::rejected,
               status);
  return is_silent ? absl::OkStatus() : status;
}

bool PlatformExecutor::EnlistHere(AsyncTask& task) noexcept {
  const Carrier* const here = runtime_.core().OwnCarrier();
  Share& share = ShareOn(here);
  const ShareHolder hold(share, here);
  if (!is_plain()) return false;
  Enlist(share, task);
  return true;
}

bool PlatformExecutor::TakeFromQueue(AsyncTask& task) noexcept { return pool_->TakeBack(task); }

size_t PlatformExecutor::queued() noexcept { return pool_->Statistics().queued; }

}  // namespace bobbin::internal
