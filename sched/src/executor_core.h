// SPDX-License-Identifier: Apache-2.0
//
// ExecutorCore: what both kinds of executors have in common - the tasks that have not ended, the
// delays, the counters, the end.
//
// Shares. Carriers that submit at the same time would spend most of theirs on one lock. So what is
// written for each task - the list of those that have not ended, the counters, the free places - is
// in as many shares as there are carriers, up to a limit, and one for all other threads. A task
// belongs to the share of the thread that has submitted it. Each share has its lock, and that alone
// is taken while all is plain: the executor is open, nothing is queued for a place, nobody waits
// for the end. Everything else is done with all locks held, in their order, and so is what makes it
// plain or not: whoever holds one of them may read that, and finds the rest as it was left.
//
// A carrier's lock is nearly always taken by the carrier itself, and so is biased (biased_lock.h):
// a task that is submitted, begun and ended on one carrier, while all is plain and nobody looks,
// costs no read-modify-write here. It is no carrier's own where several have one share.
//
// What is under the locks is all that changes, but for the step with which a task begins elsewhere:
// an exchange of its state (async_task.h). Who cancels it, drops it, ends it or abandons it changes
// its state under the lock, so that exactly one of them does, and counts it once. When no task is
// let in any more, and those that wait were dropped, all that are left have begun: so whoever asks
// them to stop misses none.
//
// Why the end is not missed. Who waits for it enters with all locks held, and from then on it is
// not plain: each task that ends holds them, too, and the one that leaves as few as are waited for
// takes the waiters.
//
// The delays are served by one virtual thread, which lives while there are any. Whoever puts a
// delay in front of the one that it waits for ends its wait.
//
//   Called from   any thread, unless said otherwise.
//   Suspends      AwaitDrained.
//   Cost          Submit, begin and end of a task: a lock, once each, of which there is one for
//                 each carrier; all of them where it is not plain. A begin elsewhere: an exchange.

#ifndef BOBBIN_SCHED_SRC_EXECUTOR_CORE_H_
#define BOBBIN_SCHED_SRC_EXECUTOR_CORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/biased_lock.h>
#include <bobbin/core/internal/intrusive_list.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/sched/executor.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/internal/async_task.h>
#include <bobbin/sched/runtime.h>

#include "sched/src/carrier.h"

namespace bobbin::internal {

// Where failures go that nobody has heard of. Shared with those who may report one late.
class FailureSink {
 public:
  using Handler = absl::AnyInvocable<void(const TaskFailure&) const>;

  FailureSink(std::shared_ptr<const Handler> handler, std::string executor)
      : handler_(std::move(handler)), executor_(std::move(executor)) {}
  void Report(std::string_view task, const absl::Status& status,
              std::exception_ptr exception) const noexcept;
  uint64_t reported() const noexcept { return reported_.load(); }

 private:
  const std::shared_ptr<const Handler> handler_;
  const std::string executor_;
  mutable Atomic<uint64_t> reported_{0};  // Counted by whoever reports.
};

class ExecutorCore {
 public:
  ExecutorCore(Runtime& runtime, std::string name, ThreadKind kind, ExecutorOptions options,
               std::shared_ptr<const FailureSink> sink);
  ExecutorCore(const ExecutorCore&) = delete;
  ExecutorCore& operator=(const ExecutorCore&) = delete;
  virtual ~ExecutorCore();

  const std::string& name() const noexcept { return name_; }
  ThreadKind kind() const noexcept { return kind_; }
  const ExecutorOptions& options() const noexcept { return options_; }
  const std::shared_ptr<const FailureSink>& sink() const noexcept { return sink_; }
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  // Takes over one reference to the task. When it returns an error, the task's future has it, too.
  absl::Status Submit(AsyncTask& task) noexcept;
  // See AsyncTask.
  bool Withdraw(AsyncTask& task) noexcept;
  ExecutorStatistics Statistics() noexcept;

  // --- A task's thread.

  // False if it was dropped.
  bool Begin(AsyncTask& task) noexcept;
  // What comes of one attempt.
  enum class Ending : uint8_t { kCompleted, kFailed, kNotBegun };
  struct Ended {
    bool is_own;      // Whether its future is yet to get a result: it was not abandoned.
    AsyncTask* next;  // What is to be begun in its place.
  };
  // Counts it and gives up its place.
  Ended End(AsyncTask& task, Ending ending) noexcept;
  // The same for one that is to be run once more. False if it is too late for that, and nothing is
  // done.
  bool Postpone(AsyncTask& task, std::chrono::nanoseconds delay, AsyncTask*& next) noexcept;
  // Begins what End has returned.
  virtual void Replace(AsyncTask& next) noexcept = 0;
  // Instead of Run and Finish: the pool has dropped it.
  void Discarded(AsyncTask& task, const absl::Status& reason) noexcept;

  // --- The end, in this order.

  // Refuses new tasks, and drops those that are delayed.
  void Close() noexcept;
  // If `thread` runs a task, that one is not waited for by AwaitDrained from here on.
  void Discount(const Thread& thread) noexcept;
  // Whether all have ended by the deadline in force.
  bool AwaitDrained() noexcept;
  bool IsIdle() noexcept;
  // Drops what has not begun.
  void DropUnbegun() noexcept;
  // Asks those that run to stop.
  void RequestStop() noexcept;
  // Abandons those that still run and are waited for, and names them.
  std::vector<std::string> Abandon() noexcept;
  // Waits for those as well that were discounted, and for the threads of the executor, so long.
  // False if somebody may still use it: then it must not be destroyed.
  bool Join(std::chrono::nanoseconds budget) noexcept;

 protected:
  // How a task comes to be placed.
  enum class Entry : uint8_t { kNew, kDue };
  // Whose thread runs it.
  enum class Lender : uint8_t { kNobody, kCaller };

  // Gives the task a thread or a place in a queue, or drops it and says why.
  virtual absl::Status Place(AsyncTask& task, Entry entry) noexcept = 0;
  // Takes it out of a queue; false if it is in none.
  virtual bool TakeFromQueue(AsyncTask& task) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) = 0;
  // Gives the place of one that has ended to the next, which it returns, or up.
  virtual AsyncTask* PassPlace() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) = 0;
  // Whether tasks wait for a place, so that one must not be given up.
  virtual bool HasQueue() const noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) = 0;
  virtual size_t queued() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) = 0;
  virtual void CloseThreads() noexcept = 0;
  // Whether all of them have ended.
  virtual bool JoinThreads(std::chrono::nanoseconds budget) noexcept = 0;

  // See above.
  struct alignas(kCacheLineBytes) Share {
    bool IsOwnedBy(const Carrier* carrier) const noexcept {
      return carrier == owner && carrier != nullptr;
    }
    // With all locks held, this one is.
    void AssertHeld() const noexcept ABSL_ASSERT_EXCLUSIVE_LOCK(lock) {}

    const Carrier* owner = nullptr;  // Never changes: whose share it is alone, or null.
    BiasedLock lock;                 // The owner's.
    IntrusiveList<LiveTask> live ABSL_GUARDED_BY(lock);
    size_t live_count ABSL_GUARDED_BY(lock) = 0;
    size_t places ABSL_GUARDED_BY(lock) = 0;  // Free ones, of virtual tasks.
    ExecutorStatistics counts ABSL_GUARDED_BY(lock);
  };
  // Holds the lock of one for a scope, as its owner where the calling thread is on its carrier.
  class ABSL_SCOPED_LOCKABLE ShareHolder {
   public:
    ShareHolder(Share& share, const Carrier* here) noexcept
        ABSL_EXCLUSIVE_LOCK_FUNCTION(share.lock);
    ShareHolder(const ShareHolder&) = delete;
    ShareHolder& operator=(const ShareHolder&) = delete;
    ~ShareHolder() ABSL_UNLOCK_FUNCTION();

   private:
    BiasedLock& lock_;
    const bool is_biased_;
  };
  // All locks, as one.
  class ABSL_LOCKABLE AllLocks {};
  // Holds them for a scope, and says at its end whether all is plain.
  class ABSL_SCOPED_LOCKABLE AllLocksHolder {
   public:
    explicit AllLocksHolder(ExecutorCore& core) noexcept ABSL_EXCLUSIVE_LOCK_FUNCTION(core.all_);
    AllLocksHolder(const AllLocksHolder&) = delete;
    AllLocksHolder& operator=(const AllLocksHolder&) = delete;
    ~AllLocksHolder() ABSL_UNLOCK_FUNCTION();

   private:
    ExecutorCore& core_;
  };

  // That of the tasks of a carrier's threads, or of all other threads, which are on none.
  Share& ShareOn(const Carrier* carrier) const noexcept {
    // The first one is the other threads'.
    if (carrier == nullptr) return shares_[0];
    auto index = static_cast<size_t>(carrier->index());
    if (__builtin_expect(index >= share_count_ - 1, 0)) index %= share_count_ - 1;
    return shares_[1 + index];
  }
  // That of the calling thread's.
  Share& ShareHere() const noexcept;
  std::span<Share> shares() const noexcept { return {shares_.get(), share_count_}; }
  // REQUIRES: a lock.
  bool is_plain() const noexcept {
    return is_plain_.load(std::memory_order_relaxed);  // relaxed: changes under the lock.
  }
  // Counts a new one, which joins those that have not ended.
  void Enlist(Share& share, AsyncTask& task) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(share.lock);
  // Whether it is still to be placed. A new one is enlisted.
  bool Admit(AsyncTask& task, Entry entry) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  // Where the reference of a task's path is that will not run.
  enum class Claimed : uint8_t {
    kNot,      // It has begun, or somebody else has claimed it.
    kOnPath,   // With the thread that will come upon it.
    kOffPath,  // The caller's: it was in a queue or delayed.
  };
  // Says that it will not run, and counts it.
  Claimed Claim(AsyncTask& task, uint64_t ExecutorStatistics::*count, WakeList& woken) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  // What Admit has refused.
  absl::Status Refuse(AsyncTask& task, Entry entry) noexcept;
  // One that was admitted, and is on no path: takes it out, and fails its future.
  void DropFromPath(AsyncTask& task, uint64_t ExecutorStatistics::*count,
                    const absl::Status& reason) noexcept;
  void RunByCaller(AsyncTask& task) noexcept;
  absl::Status StatusFor(const AsyncTask& task, absl::StatusCode code,
                         std::string_view cause) const;

  Runtime& runtime_;
  const std::string name_;
  const ThreadKind kind_;
  const ExecutorOptions options_;
  const std::shared_ptr<const FailureSink> sink_;
  std::stop_source stop_;

  AllLocks all_;

 private:
  // Equal times keep their order.
  using Delays = std::map<std::pair<MonotonicTime, uint64_t>, AsyncTask*>;
  using DelayNode = Delays::node_type;

  // Enough for machines whose carriers would wait for each other, and few enough to take them all.
  static constexpr size_t kSharesMax = 9;

  Share& ShareOf(const AsyncTask& task) const noexcept { return shares_[task.share_]; }
  // Of one that is timed: how long it has waited, how long it has run.
  void CountWait(AsyncTask& task) noexcept;
  static void CountRun(Share& share, const AsyncTask& task) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(share.lock);
  // End where all is not plain.
  Ended EndWithAll(AsyncTask& task, Ending ending) noexcept;
  // Counts the end of one that has not been dropped or abandoned, and takes it out; false if it
  // was.
  bool EndIn(Share& share, AsyncTask& task, Ending ending) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(share.lock);
  static void TakeOut(Share& share, AsyncTask& task) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(share.lock) {
    share.live.Remove(task);
    --share.live_count;
    SetState(task, AsyncTask::State::kEnded);
  }
  // The same with all locks held, and what follows from it.
  void Unlink(AsyncTask& task, WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  size_t LiveCount() const noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  bool IsDrained() const noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_) {
    return LiveCount() <= discounted_;
  }
  // Calls `visit(task)` for each that has not ended; it may take that one out.
  template <typename Visit>
  void ForEachLive(Visit visit) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  // Whether its thread is known.
  static bool IsRunning(const AsyncTask& task) noexcept {
    // Pairs with the exchange in Begin.
    return task.state_.load(std::memory_order_acquire) == AsyncTask::State::kRunning;
  }
  static void SetState(AsyncTask& task, AsyncTask::State state) noexcept {
    task.state_.store(state,
                      std::memory_order_relaxed);  // relaxed: read under the lock, or a hint.
  }

  absl::Status SubmitDelayed(AsyncTask& task, std::chrono::nanoseconds delay) noexcept;
  // Puts it among the delays; whether the caller must start somebody who serves them.
  bool PutDelay(AsyncTask& task, DelayNode&& node, MonotonicTime due, WakeList& woken) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  void WakeIfDrained(WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  void HaveDelaysLookAgain(WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  void EndDelaysIfNone(WakeList& woken) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_);
  void StartServingDelays() noexcept;
  void ServeDelays() noexcept;

  // Drops what has not begun, or only what is delayed.
  enum class Unbegun : uint8_t { kAll, kDelayed };
  void Drop(Unbegun which, std::string_view cause) noexcept;

  const size_t share_count_;
  const std::unique_ptr<Share[]> shares_;
  // Written with all locks held, and read with one of them.
  Atomic<bool> is_plain_{true};

  size_t discounted_ ABSL_GUARDED_BY(all_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(all_) = false;
  WaitQueue drained_waiters_ ABSL_GUARDED_BY(all_);

  Delays delays_ ABSL_GUARDED_BY(all_);
  uint64_t last_delay_ ABSL_GUARDED_BY(all_) = 0;
  Waiter* delay_waiter_ ABSL_GUARDED_BY(all_) = nullptr;  // While they are served, and none is due.
  bool delays_are_served_ ABSL_GUARDED_BY(all_) = false;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_EXECUTOR_CORE_H_
