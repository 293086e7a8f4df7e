// SPDX-License-Identifier: Apache-2.0
//
// Dispatcher: core's half of a carrier - who runs next, and the switch to them.
//
// It keeps the queue of ready threads and switches straight from the thread that stops to the one
// that goes on, looking into the inbox on the way; only when there is nobody or when the turn's
// budget is spent does it go home, to the carrier's own stack and loop. The other half - sleeping,
// timers, new work from elsewhere - is behind the virtual functions, which sched implements.
//
// Order. Ready threads run first come, first served. Fresh tasks (never run) come after them, but
// one of every kFreshEvery picks looks at the fresh ones first, so that neither kind starves the
// other. Who is about to wait for the end of a task, while nobody else is ready, lets a fresh task
// go first, which mostly is that one: where it ends at once, the wait is spared.
//
// Migrating threads
//
//   belongs to it   runs, waits, or has been woken and owes its turn to this carrier's inbox
//   belongs to none  is ready, and in some carrier's queue of those: any carrier may take it
//
//   belongs to it   -> to none  MakeReady, Yield   the carrier
//   belongs to none -> to it    Own                whichever carrier picks it to run
//
// Why no stack runs twice. A thread is offered to others only by its carrier, when it has left its
// stack: one that yields goes by way of the carrier's own stack; one that finds itself woken before
// it has switched away stays here for that turn.
//
// Why no timer is touched by two. One that may leave has no timer here: what was armed when it
// parked is disarmed before it is offered, and armed anew where it parks next. While it runs it has
// none armed, so that the scopes around the governing one need not be known.
//
// Why no wake-up is lost. A thread that waits stays where it is, so whoever ends its wait posts to
// the right carrier. But a block is in one inbox at most: while a message for the thread (a cancel)
// lies in that of a carrier which it has left, a wake is added there. That carrier passes it on.
//
// Their order. They have one place in the queue of ready threads while there are any. When it
// comes to the head, as many of them as are ready then go on, first come, first served, and the
// place goes to the end: neither kind is passed by more of the other than are ready at once.
//
//   Called from   the carrier's OS thread, except PostReady and PostCancel (any thread).
//   Suspends      Suspend, Yield, YieldToFresh, YieldTurn: the running virtual thread.
//   Cost          a switch: one jump and about a dozen loads and stores; no atomic operation.

#ifndef BOBBIN_CORE_INTERNAL_DISPATCHER_H_
#define BOBBIN_CORE_INTERNAL_DISPATCHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/counter.h>
#include <bobbin/core/internal/inbox.h>
#include <bobbin/core/internal/stack_cache.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/internal/task_cache.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/internal/timer_node.h>

namespace bobbin {
class Semaphore;
}

namespace bobbin::internal {

// Counters of one dispatcher. Written by its OS thread only; read by anyone. Each event on the hot
// path is counted once, and the rest follows:
//
//   resumed = picks - started - vain_picks       ready threads that went on
//   parks   = started + resumed - yields - ended, without the one that runs now
//   ready   = woken + yields - resumed
//   parked  = parks - woken
struct DispatchCounters {
  Counter picks;           // Looks for a next thread...
  Counter vain_picks;      // ...that found nobody.
  Counter started, ended;  // Bodies that were entered, and that have returned.
  Counter woken;           // Waits that were ended, for whatever reason...
  Counter posted;          // ...those of them that another OS thread has ended.
  Counter yields;
  Counter is_running;  // 1 while a virtual thread is on the carrier, else 0.
};

class Dispatcher {
 public:
  // One of so many picks takes a fresh task before a ready thread.
  static constexpr uint32_t kFreshEvery = 32;

  Dispatcher(TaskPool& tasks, StackPool& stacks) noexcept;
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // --- The running thread's calls.

  // Runs others until somebody makes `self` ready. REQUIRES: `self` runs here, its wait has begun.
  void Suspend(Thread& self) noexcept;
  // Lets the ready threads run first.
  void Yield(Thread& self) noexcept;
  // Lets one fresh task run first, if nobody is ready and nothing else is to be done; false if it
  // has not.
  bool YieldToFresh(Thread& self) noexcept;
  // The same as Yield, and ends the turn.
  void YieldTurn(Thread& self) noexcept {
    EndTurn();
    Yield(self);
  }
  // Whoever is next, the carrier's own loop goes on before.
  void EndTurn() noexcept { budget_ = 0; }

  // --- On this OS thread.

  // Appends to the ready queue. REQUIRES: the caller won the thread's state word.
  void MakeReady(Thread& thread) noexcept {
    counters_.woken.add(1);
    if (__builtin_expect(thread.migrates(), 0)) return MakeMigrantReady(thread);
    AppendReady(thread);
  }
  // True if it expires in the future and is armed now; false if it has passed.
  virtual bool ArmTimer(TimerNode& node) noexcept = 0;
  virtual void DisarmTimer(TimerNode& node) noexcept = 0;

  TaskCache& tasks() noexcept { return tasks_; }
  // Those of the runtime's own size.
  StackCache& stacks() noexcept { return stacks_; }
  Thread& home() noexcept { return home_; }
  // Grows with every choice of who runs next: as long as it is the same, nobody else has run here.
  uint32_t picks() const noexcept { return static_cast<uint32_t>(counters_.picks.value()); }
  // When this turn began, in monotonic nanoseconds.
  int64_t turn_time() const noexcept { return turn_time_; }

  // Whether somebody is in the ready queue.
  bool has_ready() const noexcept { return ready_first_ != nullptr; }

  // --- From any thread.

  // Has the carrier make `task` ready. REQUIRES: the caller won the task's state word.
  void PostReady(Task& task) noexcept { Post(task, Task::kWoken); }
  // Has the carrier end the task's wait, if it has one that may be cancelled.
  void PostCancel(Task& task) noexcept { Post(task, Task::kCancelRequest); }

  // Waits until those are gone who have woken a thread here from outside the runtime: the thread
  // may have run, and its runtime ended, before they have let go of the carrier. Called from: who
  // destroys the runtime, when no virtual thread is left.
  void AwaitGuests() noexcept;

 protected:
  ~Dispatcher() = default;

  // The newest task that has never run, or null.
  virtual Task* TakeFresh() noexcept = 0;
  // Migrating threads that are ready: adds one, takes the oldest or null, says how many there are,
  // at least. Null: the number is zero until one is added.
  virtual void OfferMigrant(Task& task) noexcept = 0;
  virtual Task* TakeMigrant() noexcept = 0;
  virtual size_t migrants() const noexcept = 0;
  // Makes sure that the carrier looks at its inbox soon, also if it sleeps.
  virtual void Ring() noexcept = 0;

  // Makes the calling OS thread the one of this dispatcher, until Unbind.
  void Bind() noexcept;
  void Unbind() noexcept;

  // From the carrier's own stack: runs threads until `budget` switches are used up or there is
  // nobody left to run. Returns how many switches were used.
  uint32_t RunReady(uint32_t budget) noexcept;
  // Whether there is a stack for a fresh task.
  bool CanStart() noexcept { return stacks_.Reserve(); }
  bool CanStart(const Task& fresh) noexcept { return StacksOf(fresh).Reserve(); }
  // Of all sizes: see StackCache. Of those that threads ask for, which may be large, all that
  // nobody needed is cold.
  void EndStackPeriod();
  bool TrimIdleStacks(size_t batch);
  bool has_idle_sized_stacks() const noexcept;

  // Acts on what other threads posted. Returns whether there was anything.
  bool DrainInbox() noexcept;
  bool InboxIsEmptyOrdered() const noexcept { return !inbox_.HasAnyOrdered(); }

  // Sees to it that ready migrating threads have their place in the queue.
  void QueueMigrants() noexcept {
    if (std::exchange(has_migrants_place_, true)) return;
    AppendReady(migrants_place_);
  }
  // Makes those that are ready its own, for one turn each.
  void KeepMigrants() noexcept;
  // Whether somebody is in the ready queue who must go on here.
  bool has_ready_own() const noexcept {
    return ready_first_ != nullptr &&
           (ready_first_ != &migrants_place_ || migrants_place_.next_ != nullptr);
  }

  // Where each thread that ends gives a permit back, or null. Set before the first one begins.
  void set_live_limit(Semaphore* limit) noexcept { live_limit_ = limit; }
  Semaphore* live_limit() const noexcept { return live_limit_; }

  DispatchCounters counters_;
  int64_t turn_time_ = 0;  // The carrier's OS thread only; it sets it.

 private:
  friend struct SwitchEntry;
  friend struct DebuggerView;

  void Post(Task& task, uint8_t reason) noexcept;
  void PostFromHere(Task& task, uint8_t reason) noexcept;
  void AppendReady(Thread& thread) noexcept {
    thread.next_ = nullptr;
    *(ready_first_ == nullptr ? &ready_first_ : &ready_last_->next_) = &thread;
    ready_last_ = &thread;
  }
  // The next thread to run: a ready one, a fresh one, or home. A fresh one only if there is a stack
  // for it: the caller's, which has ended, or one of the cache.
  Thread& PickNext(bool may_reuse_stack) noexcept;
  Thread& PopReady() noexcept;
  // The next ready one, or null.
  Thread* PopFirst() noexcept;
  Thread* PopMigrant() noexcept;
  void MakeMigrantReady(Thread& thread) noexcept;
  void YieldMigrant(Thread& self) noexcept;
  // Lets go of it and takes it.
  void Offer(Task& migrant) noexcept;
  void Own(Task& migrant) noexcept;
  // Leaves `self` and continues with `next`; returns when somebody continues `self`.
  void SwitchFrom(Thread& self, Thread& next) noexcept;
  void SwitchFromSlow(Thread& self, Thread& next) noexcept;
  Stack PrepareStack(Thread& fresh, StackCache& stacks) noexcept;
  // The same, and what comes first, for a task of any size.
  void BeginOfAnySize(Task& fresh) noexcept;
  // The stacks of the size that it needs.
  StackCache& StacksOf(const Task& task) noexcept {
    return __builtin_expect(!task.has_own_size(), 1) ? stacks_ : SizedStacks(task.size_class());
  }
  StackCache& SizedStacks(size_t size_class) noexcept;
  // Makes `task` the one that runs on `stack` from now on.
  void Begin(Task& task, Stack stack) noexcept;
  // What is left to do for a task that has run, but for its stack.
  void Conclude(Task& task) noexcept;
  // The same, and leaves its stack for good, where that has a size of its own.
  [[noreturn]] void EndSized(Task& task) noexcept;
  // What a stack does from its first line to its last: run a task, then fresh ones as long as they
  // are next, then leave.
  [[noreturn]] static void RunTasks() noexcept;
  // Leaves `stack`, on which the caller stands, and which is back in its cache, for `next`. Nobody
  // can take it before this thread has left it: the cache is this OS thread's own.
  [[noreturn]] void LeaveForGood(const StackPool& pool, Stack stack, Thread& next) noexcept;
  void AnnounceSwitch(void** save, Thread& next) noexcept;

  // The carrier's OS thread only.
  Thread* ready_first_ = nullptr;
  Thread* ready_last_ = nullptr;
  int32_t budget_ = 0;
  Task* yielded_ = nullptr;  // A migrating one that is on its way off its stack.
  size_t migrants_due_ = 0;  // How many of them go on before the place leaves the head.
  bool has_migrants_place_ = false;
  Semaphore* live_limit_ = nullptr;
  void* exception_globals_ = nullptr;  // The C++ runtime's, of this OS thread.
  void* ended_context_ = nullptr;      // Where a stack that is not continued leaves its context.
  StackCache stacks_;
  TaskCache tasks_;
  Thread home_;
  Thread migrants_place_;  // Never runs.
  Stack home_stack_;       // For the sanitizers, which want to know every stack.
  size_t home_stack_bytes_ = 0;
  std::unique_ptr<StackCache> sized_stacks_[StackPool::kSizeClasses];  // Where they were needed.
#if defined(__SANITIZE_THREAD__)
  void RetireSanitizerContext(void* context) noexcept;
  void* retired_sanitizer_context_ = nullptr;
#endif

  // Everyone.
  alignas(kCacheLineBytes) Inbox inbox_;
  // OS threads inside Post whose end the end of this runtime does not await. They count themselves;
  // AwaitGuests reads.
  Atomic<uint32_t> guests_{0};
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_DISPATCHER_H_
