// SPDX-License-Identifier: Apache-2.0
//
// RuntimeCore: what a Runtime is made of - its carriers, its descriptors and stacks, its end.
//
// Counting without a shared counter. Each carrier counts the virtual threads that were launched
// there and those that ended there; foreign threads share one more counter. To find out whether
// none is left, read all "ended" first, then all "launched": both only grow, and nothing ends
// before it was launched, so equal sums mean that at the moment between the two readings nothing
// was alive.
//
// Why the end is not missed. AwaitIdle sets a flag, then reads each carrier's state, then counts. A
// carrier counts its last "ended", then announces in its state that it sleeps, then looks at the
// flag. Flag and state are sequentially consistent, so at least one side sees the other: the
// carrier the flag, or AwaitIdle the announcement, and with it everything that came before, the
// last "ended" too. Two carriers that end the last two at once both count themselves asleep with a
// read-modify-write of one word, and the second one sees what the first one did.
//
//   Called from   as each member says.
//   Suspends      AwaitIdle and Shutdown block the calling OS thread.

#ifndef BOBBIN_SCHED_SRC_RUNTIME_CORE_H_
#define BOBBIN_SCHED_SRC_RUNTIME_CORE_H_

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/event.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/counter.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/stack_cache.h>
#include <bobbin/core/internal/task_cache.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/internal/blocking_call.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>

#include "sched/src/carrier.h"
#include "sched/src/executors_core.h"
#include "sched/src/idle.h"
#include "sched/src/lifecycle_core.h"
#include "sched/src/monitor.h"
#include "sched/src/os_thread_handle.h"

namespace bobbin::internal {

class RuntimeCore {
 public:
  RuntimeCore(Runtime& facade, RuntimeOptions options);
  RuntimeCore(const RuntimeCore&) = delete;
  RuntimeCore& operator=(const RuntimeCore&) = delete;
  ~RuntimeCore();

  // --- The owner's side.

  // Starts the OS threads; the first poller that cannot start ends them all again, with its reason.
  absl::Status Start();
  // Blocks until no virtual thread is left but those that keep house, or the deadline in force.
  // True if none is left.
  bool AwaitIdle() { return AwaitIdleOr(IdleWait::kUntilIdle); }
  // The same; is also over when the phases of a stop are.
  bool AwaitIdleOrStop() { return AwaitIdleOr(IdleWait::kUntilIdleOrStop); }
  absl::Status Shutdown();
  // Whether Shutdown left carriers behind: then this object must not be destroyed.
  bool has_abandoned_carriers() const noexcept { return has_abandoned_carriers_; }

  // --- Any thread.

  Runtime& facade() const noexcept { return facade_; }
  TaskPool& tasks() noexcept { return tasks_; }
  StackPool& stacks() noexcept { return stacks_; }
  IdleCarriers& idle() noexcept { return idle_; }
  // False in a child that was forked: carriers are not forked with it.
  bool has_carriers_here() const noexcept { return getpid() == process_; }
  int carrier_count() const noexcept { return carrier_count_; }
  // Whether a thread that may migrate has a place to go.
  bool MayMigrate(bool migrates) const noexcept { return migrates && carrier_count_ > 1; }
  // The calling thread's carrier, if it is one of this runtime's.
  Carrier* OwnCarrier() const noexcept {
    Carrier* const carrier = CurrentCarrier();
    return carrier != nullptr && &carrier->runtime() == this ? carrier : nullptr;
  }
  Carrier& carrier(int index) const noexcept { return *carriers_[static_cast<size_t>(index)]; }

  // A prepared block, from the calling carrier's cache if it is one of this runtime's; null at the
  // limit.
  Task* TryNewTask(std::string_view name);
  // The same, but waits at the limit; null when the system has no memory.
  Task* NewTask(std::string_view name);
  // The same, for a size of stack of its own. REQUIRES: StackPool::IsSize(stack_bytes).
  Task* TryNewSizedTask(std::string_view name, size_t stack_bytes);
  Task* NewSizedTask(std::string_view name, size_t stack_bytes);
  // Why one that tries returned null.
  absl::Status WhyNoTask(size_t stack_bytes);
  void Launch(Task& task, Placement placement) noexcept;
  // Wakes one sleeping carrier to look for work, unless one is looking already.
  void WakeOneToSearch() noexcept;
  uint64_t Live() const noexcept;
  // The same without those that only keep house; sometimes too many, never too few.
  uint64_t Busy() const noexcept;
  void HousekeeperBegins() noexcept { housekeepers_begun_.fetch_add(1); }
  void HousekeeperEnds() noexcept { housekeepers_ended_.fetch_add(1); }
  // Whether neither a virtual thread nor a task is left.
  bool IsIdle() { return Busy() == 0 && executors_.IsIdle(); }
  // Spawners that wait because so many virtual threads live.
  uint64_t waiting_for_limit() const noexcept { return waiting_for_limit_.load(); }
  size_t live_max() const noexcept { return live_max_; }
  RuntimeStatistics Statistics() noexcept;
  std::vector<HeldCarrier> HeldCarriers() const { return monitor_.watchdog().HeldCarriers(); }
  StackUsage MeasureStacks();
  PlatformPool& PoolOf(BlockingLane lane);
  ExecutorsCore& executors() noexcept { return executors_; }
  LifecycleCore& lifecycle() noexcept { return lifecycle_; }
  // Of the stop: who waits in Spawn may go on; later every virtual thread is asked to stop.
  void LiftLimit() noexcept;
  void EndPhases() noexcept;

  // --- Carriers.

  // Tells how the poller's start went and waits for the others; true: go on. Called before the OS
  // thread is bound, so that it may wait like any other.
  bool CarrierStarted(absl::Status status) noexcept;
  // It has announced that it sleeps, and is awake again.
  void CarrierIsIdle() noexcept;
  void CarrierIsBusy() noexcept { monitor_.CarrierIsBusy(); }

 private:
  enum class IdleWait : uint8_t { kUntilIdle, kUntilIdleOrStop, kUntilAllHaveEnded };

  bool AwaitIdleOr(IdleWait kind);
  // Makes what every carrier did before it announced its sleep visible to Live().
  void SeeAnnouncements() const noexcept;
  // Threads that have asked for a size of stack of their own.
  size_t SizedLive() noexcept;
  // Whether the system has refused to give more stacks, and there is none for one more thread.
  bool IsOutOfStacks() noexcept;
  // Reads what the configuration says of the runtime itself; checks what it says of executors.
  absl::Status Configure();
  // Without a look at the limit.
  Task* AllocateTask(std::string_view name);
  // "3 virtual threads did not end: "reader" (id 7, waits), ...".
  std::string NameTheLiving();

  // Never change after Start.
  Runtime& facade_;
  RuntimeOptions options_;
  const int carrier_count_;
  const pid_t process_;
  StackPool stacks_;
  TaskPool tasks_;
  const size_t live_max_;
  // A permit for each virtual thread that may yet be launched; where no limit is set, none.
  std::unique_ptr<Semaphore> live_limit_;
  std::vector<std::unique_ptr<Carrier>> carriers_;
  std::vector<OsThreadHandle> threads_;

  IdleCarriers idle_;
  Monitor monitor_;
  Atomic<uint64_t> next_carrier_{0};     // Advanced by spread placements.
  Atomic<uint64_t> spawned_outside_{0};  // Launched by threads that are no carriers of ours.

  Atomic<uint64_t> limited_{0};            // Counted by spawners that met the limit.
  Atomic<uint64_t> waiting_for_limit_{0};  // Spawners that wait for it now.

  // Start.
  WaitGroup unreported_;
  Event may_go_on_;
  SpinLock start_lock_;
  absl::Status start_status_ ABSL_GUARDED_BY(start_lock_);

  // The end.
  // Written by virtual threads that keep house; read by whoever wants to know what else there is.
  Atomic<uint64_t> housekeepers_begun_{0};
  Atomic<uint64_t> housekeepers_ended_{0};
  Atomic<int> idle_awaited_{0};  // Threads in AwaitIdle; read by carriers.
  SpinLock idle_lock_;
  WaitQueue idle_waiters_ ABSL_GUARDED_BY(idle_lock_);
  bool are_phases_over_ ABSL_GUARDED_BY(idle_lock_) = false;
  Atomic<bool> is_stopped_{false};  // Set by Shutdown; read by spawners.
  Mutex shutdown_mutex_;
  std::optional<absl::Status> shutdown_result_ ABSL_GUARDED_BY(shutdown_mutex_);
  bool has_abandoned_carriers_ = false;

  ExecutorsCore executors_;
  LifecycleCore lifecycle_;

  Mutex pool_mutex_;
  std::array<std::unique_ptr<PlatformPool>, kBlockingLanes> pools_ ABSL_GUARDED_BY(pool_mutex_);
  // The same, once they exist: for Statistics, which must not wait.
  std::array<Atomic<const PlatformPool*>, kBlockingLanes> known_pools_{};
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_RUNTIME_CORE_H_
