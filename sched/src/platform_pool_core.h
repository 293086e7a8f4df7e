// SPDX-License-Identifier: Apache-2.0
//
// PlatformPoolCore: the queue and the threads of a PlatformPool.
//
// It is shared with its threads: one that is abandoned at the end still finds it.
//
// States of a thread
//
//   free       its place is empty, or holds a thread that has ended and is yet to be joined
//   coming     will look at the queue by itself: it starts, was woken, or has just run a task
//   idle       waits to be woken
//   busy       runs a task
//
// Rule. The queue may hold `queue_max` tasks, and one more for each coming thread.
// Rule. Whoever queues a task sees to it that there are as many coming threads as queued tasks,
//       while it can claim an idle one or start one.
//
// Why no task is forgotten. Both rules and the look of a coming thread are under one lock. A thread
// turns idle only when it has found the queue empty under it, and a task that is then queued finds
// it among the idle. A thread ends only in the same way; if it was the last, the next task starts
// another.
//
// The thread that turned idle last is woken first, so that a light load is carried by a few warm
// threads and the others reach their keep-alive.
//
//   Called from   as each member says.
//   Suspends      Shutdown. A platform thread of the pool blocks while it is idle.
//   Cost          Offer: one short spin lock, and a wake if a thread was idle.

#ifndef BOBBIN_SCHED_SRC_PLATFORM_POOL_CORE_H_
#define BOBBIN_SCHED_SRC_PLATFORM_POOL_CORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/internal/pool_task.h>
#include <bobbin/sched/platform_pool.h>

#include "sched/src/os_thread_handle.h"

namespace bobbin {
class Runtime;
}  // namespace bobbin

namespace bobbin::internal {

// What has become of an offered task.
enum class [[nodiscard]] Offered : uint8_t{
    kAccepted,     // Run and Finish, or Discard, will be called.
    kRunByCaller,  // The calling thread owes it Run and Finish.
    kRefused,      // Nothing will be called.
    kDropped,      // Nothing will be called; and its submitter need not know.
    kNoThread,     // Nothing will be called; the system gave no thread.
    kShutDown,     // Nothing will be called.
};

class PlatformPoolCore : public std::enable_shared_from_this<PlatformPoolCore> {
 public:
  // Its threads belong to `runtime`, or to nobody's.
  PlatformPoolCore(PlatformPoolOptions options, Runtime* runtime);
  PlatformPoolCore(const PlatformPoolCore&) = delete;
  PlatformPoolCore& operator=(const PlatformPoolCore&) = delete;

  // --- Any thread; never suspends.

  Offered Offer(PoolTask& task, Admission admission) noexcept;
  // The status that says so; OK for kAccepted and kRunByCaller.
  absl::Status StatusOf(Offered offered) const;
  // True if `task` was still queued: then it never runs.
  bool TakeBack(PoolTask& task) noexcept;
  // Whether the calling thread is one of the pool's.
  bool IsOwnThread() const noexcept;
  const std::string& name() const noexcept { return options_.name; }
  PlatformPoolStatistics Statistics() const noexcept;

  bool is_shut_down() const noexcept;

  // Refuses new tasks, and has its threads end when nothing is queued any more.
  void Close() noexcept;

  // --- Not from threads of the pool.

  // With the budget of the options, or another one.
  absl::Status Shutdown();
  absl::Status Shutdown(std::chrono::nanoseconds budget);

 private:
  using TaskList = IntrusiveList<PoolTask>;

  // What a busy thread is at, for whoever asks who is stuck.
  struct Business {
    MonotonicTime since;
    bool has_caller = false;
    Role caller_role = Role::kForeign;
    uint64_t caller_id = 0;
    std::array<char, 48> caller_name{};  // Cut; ends with a zero.
  };

  // A place for one OS thread.
  struct PoolThread {
    enum class State : uint8_t { kFree, kComing, kIdle, kBusy };

    std::string name;
    OsThreadHandle handle;  // Its starter's while is_being_started; else under the lock.
    State state = State::kFree;
    // The handle is yet to be stored: until then the thread does not end for want of work.
    bool is_being_started = false;
    Waiter* waiter = nullptr;  // While it is idle.
    Business business;         // While it is busy.
  };

  // What a pool's thread does from its first line to its last.
  void Serve(PoolThread& self) noexcept;
  // The next task, or null: then the thread ends.
  PoolTask* NextTask(PoolThread& self) noexcept;
  // Blocks until an idle thread is claimed: true; or, with `is_excess`, until its keep-alive has
  // passed.
  bool AwaitClaim(PoolThread& self, Waiter& waiter, bool is_excess) noexcept;
  void Begin(PoolThread& self, PoolTask& task) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CountFinished(PoolThread& self) noexcept;
  void End(PoolThread& self, WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // Makes an idle thread a coming one, to be dispatched by the caller; false if there is none.
  bool ClaimIdle(WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Makes a free place a coming thread that the caller must start; null if there is none.
  PoolThread* ReserveThread() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Starts the thread of a reserved place; false if the system refused.
  bool StartThread(PoolThread& thread) noexcept;
  // Undoes ReserveThread, and drops what nobody is left to run. True if task `number` was among
  // that: it is then the caller's again.
  bool GiveUpThread(PoolThread& thread, uint64_t number) noexcept;
  // A task for which there is neither a thread nor room. kAccepted: `oldest` made room for it.
  Offered Reject(PoolTask*& oldest) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  void PushBack(PoolTask& task) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  PoolTask* PopFront() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool HasEnded() const noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return threads_ == 0 && starters_ == 0;
  }
  void NoteIfEnded(WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // The phases of Shutdown.
  // Whether all threads have ended by the deadline in force.
  bool AwaitEnd() noexcept;
  // Drops what is queued and lets go of the threads that are left; says which.
  absl::Status Abandon(std::chrono::nanoseconds budget);
  void JoinEnded() noexcept;

  const PlatformPoolOptions options_;
  void* const runtime_;  // What its threads' Spawn uses.

  mutable SpinLock lock_;
  std::vector<PoolThread> places_;
  std::vector<PoolThread*> idle_ ABSL_GUARDED_BY(lock_);  // The last one waits shortest.
  TaskList queue_ ABSL_GUARDED_BY(lock_);
  size_t queued_ ABSL_GUARDED_BY(lock_) = 0;
  uint64_t last_number_ ABSL_GUARDED_BY(lock_) = 0;
  size_t threads_ ABSL_GUARDED_BY(lock_) = 0;   // Places that are not free.
  size_t coming_ ABSL_GUARDED_BY(lock_) = 0;    // Those of them that are coming.
  size_t starters_ ABSL_GUARDED_BY(lock_) = 0;  // Places that are being started.
  bool is_shut_down_ ABSL_GUARDED_BY(lock_) = false;
  bool is_abandoned_ ABSL_GUARDED_BY(lock_) = false;
  PlatformPoolStatistics counts_ ABSL_GUARDED_BY(lock_);
  WaitQueue end_waiters_ ABSL_GUARDED_BY(lock_);

  Mutex shutdown_mutex_;
  std::optional<absl::Status> shutdown_result_ ABSL_GUARDED_BY(shutdown_mutex_);
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_PLATFORM_POOL_CORE_H_
