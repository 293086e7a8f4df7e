// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/word_lock.h>
#include <bobbin/core/semaphore.h>

#include "core/src/context.h"
#include "core/src/exception_state.h"
#include "core/src/floating_point.h"
#include "core/src/sanitizer.h"

namespace bobbin::internal {

namespace {
// How many lines of a parked stack its thread touches first when it goes on; as measured, not
// exact.
constexpr size_t kParkedLines = 6;
}  // namespace

// The first frame of every stack.
struct SwitchEntry {
  [[noreturn]] static void Enter(context::Arrival arrival) noexcept;
};

namespace {
// From 1 to 255, then again: two carriers that share one take each other for the same, which costs
// time in a contended mutex and nothing else.
uint8_t NextCarrierTag() noexcept {
  static Atomic<uint32_t> count{0};  // Written by whoever makes a dispatcher.
  // relaxed: orders nothing.
  return static_cast<uint8_t>(count.fetch_add(1, std::memory_order_relaxed) % 255 + 1);
}
}  // namespace

Dispatcher::Dispatcher(TaskPool& tasks, StackPool& stacks) noexcept
    : stacks_(stacks),
      tasks_(tasks),
      home_(Role::kCarrier, this),
      migrants_place_(Role::kCarrier, this) {
  home_.carrier_tag_.store(NextCarrierTag());
}

void Dispatcher::Bind() noexcept {
  BOBBIN_CHECK(CurrentOrNull() == nullptr || Current().role() != Role::kCarrier,
               "an OS thread can be only one carrier");
  exception_globals_ = ExceptionGlobals::OfThisThread();
  const StackBounds stack = OwnStack();
  home_stack_.base = stack.base;
  home_stack_bytes_ = stack.bytes;
#if defined(__SANITIZE_THREAD__)
  home_.sanitizer_context_ = __tsan_get_current_fiber();
#endif
  SetCurrent(&home_);
}

void Dispatcher::Unbind() noexcept {
  BOBBIN_CHECK(&Current() == &home_, "only its own OS thread unbinds a carrier");
  SetCurrent(nullptr);
}

inline Thread& Dispatcher::PopReady() noexcept {
  Thread* const thread = ready_first_;
  ready_first_ = thread->next_;
  // With many threads, each turn finds the next one's lines cold. Fetch the descriptor of the one
  // after next, and the stack of the next: its descriptor was fetched a turn ago.
  if (Thread* const next = ready_first_) {
    __builtin_prefetch(next->next_);
    // What a wait leaves on a stack takes a few lines.
    for (size_t line = 0; line < kParkedLines; ++line) {
      __builtin_prefetch(static_cast<char*>(next->context_) + line * kCacheLineBytes);
    }
  }
  return *thread;
}

inline Thread* Dispatcher::PopFirst() noexcept {
  if (ready_first_ == nullptr) return nullptr;
  if (__builtin_expect(ready_first_ != &migrants_place_, 1)) return &PopReady();
  if (Thread* const migrant = PopMigrant()) return migrant;
  return ready_first_ == nullptr ? nullptr : &PopReady();
}

BOBBIN_INLINE_INTO_CALLER inline Thread& Dispatcher::PickNext(bool may_reuse_stack) noexcept {
  if (__builtin_expect(inbox_.has_any(), 0)) DrainInbox();
  if (--budget_ < 0) return home_;
  const bool fresh_first = counters_.picks.add(1) % kFreshEvery == 0;
  if (!fresh_first) {
    if (Thread* const ready = PopFirst()) return *ready;
  }
  if (may_reuse_stack || stacks_.Reserve()) {
    if (Task* const fresh = TakeFresh()) return *fresh;
  }
  if (fresh_first) {
    if (Thread* const ready = PopFirst()) return *ready;
  }
  counters_.vain_picks.add(1);
  return home_;
}

inline void Dispatcher::Begin(Task& task, Stack stack) noexcept {
  // Pairs with the acquire in Thread::Cancel, whose message uses a link that an intake has used.
  task.dispatcher_.store(this, std::memory_order_release);
  task.carrier_tag_.store(home_.carrier_tag(), std::memory_order_relaxed);  // relaxed: an estimate.
  task.stack_ = stack;
  task.state_.Start();
  counters_.started.add(1);
  SetCurrent(&task);
}

// A stack for a fresh task, with SwitchEntry as its first frame.
BOBBIN_NO_SANITIZE_THREAD inline Stack Dispatcher::PrepareStack(Thread& fresh,
                                                                StackCache& stacks) noexcept {
  const Stack stack = stacks.Take();
  const StackPool& pool = stacks.pool();
  sanitizer::StackInUse(pool.LimitOf(stack), pool.BytesOf(stack));
  fresh.context_ = context::Make(pool.TopOf(stack), pool.BytesOf(stack), &SwitchEntry::Enter);
#if defined(__SANITIZE_THREAD__)
  fresh.sanitizer_context_ = __tsan_create_fiber(0);
#endif
  return stack;
}

BOBBIN_NO_SANITIZE_THREAD [[gnu::noinline, gnu::cold]] void Dispatcher::BeginOfAnySize(
    Task& fresh) noexcept {
  Begin(fresh, PrepareStack(fresh, StacksOf(fresh)));
}

BOBBIN_SWITCH_PATH inline void Dispatcher::AnnounceSwitch([[maybe_unused]] void** save,
                                                          [[maybe_unused]] Thread& next) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  if (&next == &home_) {
    sanitizer::BeforeSwitch(save, home_stack_.base, home_stack_bytes_);
  } else {
    const auto& task = static_cast<Task&>(next);
    const StackPool& pool = stacks_.pool().OfTask(task);
    const Stack stack = task.stack();
    sanitizer::BeforeSwitch(save, pool.LimitOf(stack), pool.BytesOf(stack));
  }
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(next.sanitizer_context_, 0);
#endif
}

// The way nearly all switches go: nothing lives across the jump, so nothing is saved for it twice.
BOBBIN_NO_SANITIZE_THREAD BOBBIN_INLINE_INTO_CALLER inline void Dispatcher::SwitchFrom(
    Thread& self, Thread& next) noexcept {
  const auto* const globals = static_cast<const ExceptionGlobals*>(exception_globals_);
  if (kIsSanitized || __builtin_expect(!globals->is_clear(), 0)) return SwitchFromSlow(self, next);
  if (next.context_ == nullptr) {
    auto& fresh = static_cast<Task&>(next);
    if (__builtin_expect(fresh.has_own_size(), 0)) return SwitchFromSlow(self, next);
    Begin(fresh, PrepareStack(fresh, stacks_));
  } else {
    SetCurrent(&next);
  }
  context::SwitchTo(next.context_, &self.context_);
}

void Dispatcher::Suspend(Thread& self) noexcept {
  BOBBIN_DCHECK(&Current() == &self && self.role() == Role::kVirtual, "suspend on a foreign stack");
  Thread& next = PickNext(false);
  if (&next != &self) SwitchFrom(self, next);
}

void Dispatcher::Yield(Thread& self) noexcept {
  counters_.yields.add(1);
  if (__builtin_expect(self.migrates(), 0)) return YieldMigrant(self);
  AppendReady(self);
  Thread& next = PickNext(false);
  if (&next != &self) SwitchFrom(self, next);
}

bool Dispatcher::YieldToFresh(Thread& self) noexcept {
  if (ready_first_ != nullptr || inbox_.has_any() || budget_ <= 0 || self.migrates() ||
      !stacks_.Reserve()) {
    return false;
  }
  Task* const fresh = TakeFresh();
  if (fresh == nullptr) return false;
  --budget_;
  counters_.picks.add(1);
  counters_.yields.add(1);
  AppendReady(self);
  SwitchFrom(self, *fresh);
  return true;
}

uint32_t Dispatcher::RunReady(uint32_t budget) noexcept {
  budget_ = static_cast<int32_t>(budget);
  while (true) {
    Thread& next = PickNext(false);
    if (&next == &home_) break;
    counters_.is_running.set(1);
    SwitchFrom(home_, next);
    counters_.is_running.set(0);
    if (__builtin_expect(yielded_ == nullptr, 1)) break;
    Offer(*std::exchange(yielded_, nullptr));
  }
  return budget - static_cast<uint32_t>(budget_ < 0 ? 0 : budget_);
}

// --- Migrating threads; dispatcher.h says why this is right.

void Dispatcher::Offer(Task& migrant) noexcept {
  // relaxed: the queue brings it to whoever takes the thread; Own does the rest.
  migrant.dispatcher_.store(nullptr, std::memory_order_relaxed);
  QueueMigrants();
  OfferMigrant(migrant);
}

void Dispatcher::Own(Task& migrant) noexcept {
  // Pairs with the acquire in Thread::Cancel.
  migrant.dispatcher_.store(this, std::memory_order_release);
  // relaxed: an estimate.
  migrant.carrier_tag_.store(home_.carrier_tag(), std::memory_order_relaxed);
  migrant.RecheckCancel();
}

void Dispatcher::MakeMigrantReady(Thread& thread) noexcept {
  TimerNode* const timer = thread.governing();
  if (timer != nullptr && timer->place != TimerNode::Place::kUnarmed) DisarmTimer(*timer);
  if (&thread == &Current()) {
    AppendReady(thread);
  } else {
    Offer(static_cast<Task&>(thread));
  }
}

void Dispatcher::YieldMigrant(Thread& self) noexcept {
  yielded_ = static_cast<Task*>(&self);
  SwitchFrom(self, home_);
}

Thread* Dispatcher::PopMigrant() noexcept {
  if (migrants_due_ == 0) migrants_due_ = migrants();
  Task* const migrant = TakeMigrant();
  // Null: other carriers have taken them all.
  migrants_due_ = migrant == nullptr ? 0 : migrants_due_ - 1;
  if (migrants_due_ == 0) {
    ready_first_ = migrants_place_.next_;
    has_migrants_place_ = false;
    if (migrants() != 0) QueueMigrants();
  }
  if (migrant != nullptr) Own(*migrant);
  return migrant;
}

void Dispatcher::KeepMigrants() noexcept {
  while (Task* const migrant = TakeMigrant()) {
    Own(*migrant);
    AppendReady(*migrant);
  }
}

BOBBIN_NO_SANITIZE_THREAD [[gnu::noinline]] void Dispatcher::SwitchFromSlow(Thread& self,
                                                                            Thread& next) noexcept {
  // What the C++ runtime knows of this thread's exceptions goes with it.
  ExceptionGlobals exceptions;
  std::swap(exceptions, *static_cast<ExceptionGlobals*>(exception_globals_));
  if (next.context_ == nullptr) {
    BeginOfAnySize(static_cast<Task&>(next));
  } else {
    SetCurrent(&next);
  }

  [[maybe_unused]] void* fake_stack = nullptr;
  AnnounceSwitch(&fake_stack, next);
  context::SwitchTo(next.context_, &self.context_);
  sanitizer::AfterSwitch(fake_stack);

  // The carrier may be another one now.
  std::swap(exceptions, *static_cast<ExceptionGlobals*>(self.dispatcher()->exception_globals_));
}

BOBBIN_NO_SANITIZE_THREAD BOBBIN_INLINE_INTO_CALLER inline void Dispatcher::LeaveForGood(
    [[maybe_unused]] const StackPool& pool, [[maybe_unused]] Stack stack, Thread& next) noexcept {
  SetCurrent(&next);
  AnnounceSwitch(nullptr, next);
  // Nothing that is instrumented touches it from here to the switch.
  sanitizer::StackIdle(pool.LimitOf(stack), pool.BytesOf(stack));
  context::LeaveFor(next.context_, &ended_context_);
}

BOBBIN_INLINE_INTO_CALLER inline void Dispatcher::Conclude(Task& task) noexcept {
  // From here on the task belongs to whoever hears of its end.
  SetCurrent(&home_);
  if (task.TellEnd()) task.Free();
  counters_.ended.add(1);
  if (__builtin_expect(live_limit_ != nullptr, 0)) live_limit_->Release();
}

BOBBIN_NO_SANITIZE_THREAD [[gnu::noinline, gnu::cold]] void Dispatcher::EndSized(
    Task& task) noexcept {
  StackCache& stacks = StacksOf(task);
  const Stack stack = task.stack_;
#if defined(__SANITIZE_THREAD__)
  void* const sanitizer_context = task.sanitizer_context_;
#endif
  Conclude(task);
  stacks.pool().Unclaim();
  Thread& next = PickNext(false);
  if (next.context_ == nullptr) BeginOfAnySize(static_cast<Task&>(next));
#if defined(__SANITIZE_THREAD__)
  RetireSanitizerContext(sanitizer_context);
#endif
  stacks.GiveOutOfLine(stack);
  LeaveForGood(stacks.pool(), stack, next);
}

BOBBIN_INLINE_INTO_CALLER inline void Dispatcher::RunTasks() noexcept {
  while (true) {
    auto& task = static_cast<Task&>(Current());
    EnsureDefaultFloatingPoint();
    task.RunBody();

    Dispatcher& here = *task.dispatcher();
    if (__builtin_expect(task.has_own_size(), 0)) here.EndSized(task);
    // From here on the stack belongs to nobody.
    const Stack stack = task.stack_;
#if defined(__SANITIZE_THREAD__)
    void* const sanitizer_context = task.sanitizer_context_;
#endif
    here.Conclude(task);

    // The stack is hot: a fresh task that is next, and needs no other size, starts on it without a
    // switch.
    Thread& next = here.PickNext(true);
    const bool is_fresh = next.context_ == nullptr;
    if (!is_fresh || __builtin_expect(static_cast<Task&>(next).has_own_size(), 0)) {
      if (is_fresh) here.BeginOfAnySize(static_cast<Task&>(next));
#if defined(__SANITIZE_THREAD__)
      here.RetireSanitizerContext(sanitizer_context);
#endif
      here.stacks_.Give(stack);
      here.LeaveForGood(here.stacks_.pool(), stack, next);
    }
#if defined(__SANITIZE_THREAD__)
    next.sanitizer_context_ = sanitizer_context;
#endif
    here.Begin(static_cast<Task&>(next), stack);
  }
}

BOBBIN_NO_SANITIZE_THREAD void SwitchEntry::Enter(context::Arrival arrival) noexcept {
  context::StoreLeaver(arrival);
  sanitizer::AfterSwitch(nullptr);
  // Whoever walks this stack stops here.
  __asm__ __volatile__(".cfi_undefined rip");
  Dispatcher::RunTasks();
}

[[gnu::noinline]] StackCache& Dispatcher::SizedStacks(size_t size_class) noexcept {
  std::unique_ptr<StackCache>& stacks = sized_stacks_[size_class - 1];
  if (stacks == nullptr) {
    stacks = std::make_unique<StackCache>(stacks_.pool().OfClass(size_class));
  }
  return *stacks;
}

void Dispatcher::EndStackPeriod() {
  stacks_.EndPeriod();
  for (const auto& stacks : sized_stacks_) {
    if (stacks != nullptr) stacks->EndPeriod(1);
  }
}

bool Dispatcher::TrimIdleStacks(size_t batch) {
  bool has_more = stacks_.Trim(batch);
  for (const auto& stacks : sized_stacks_) {
    if (stacks != nullptr && stacks->Trim(batch)) has_more = true;
  }
  return has_more;
}

bool Dispatcher::has_idle_sized_stacks() const noexcept {
  for (const auto& stacks : sized_stacks_) {
    if (stacks != nullptr && stacks->size() != 0) return true;
  }
  return false;
}

#if defined(__SANITIZE_THREAD__)
void Dispatcher::RetireSanitizerContext(void* context) noexcept {
  // The running one cannot be destroyed; the one before it can.
  if (retired_sanitizer_context_ != nullptr) __tsan_destroy_fiber(retired_sanitizer_context_);
  retired_sanitizer_context_ = context;
}
#endif

void Dispatcher::Post(Task& task, uint8_t reason) noexcept {
  Dispatcher* const here = Current().dispatcher();
  if (here != nullptr && &here->tasks_.pool() == &tasks_.pool()) {
    PostFromHere(task, reason);
    return;
  }
  // relaxed: the carrier is there as long as the message has not been posted, and who acts on the
  // message sees the count, for both go by the inbox.
  guests_.fetch_add(1, std::memory_order_relaxed);
  PostFromHere(task, reason);
  guests_.fetch_sub(1, std::memory_order_release);  // Pairs with the acquire in AwaitGuests.
}

void Dispatcher::AwaitGuests() noexcept {
  Backoff backoff;
  // Pairs with the release in Post.
  while (guests_.load(std::memory_order_acquire) != 0) backoff.Pause();
}

void Dispatcher::PostFromHere(Task& task, uint8_t reason) noexcept {
  // Pairs with the exchange in DrainInbox.
  if (task.attention_.fetch_or(reason, std::memory_order_acq_rel) != 0) return;
  inbox_.Push(task);
  Ring();
}

bool Dispatcher::DrainInbox() noexcept {
  if (!inbox_.has_any()) return false;
  inbox_.TakeAll([this](Task& task) {
    // Pairs with the fetch_or in Post and in Task::Free.
    const uint8_t reasons = task.attention_.exchange(0, std::memory_order_acq_rel);
    if ((reasons & Task::kRelease) != 0) {
      tasks_.Give(task);
      return;
    }
    if ((reasons & Task::kWoken) != 0) {
      if (Dispatcher* const carrier = task.dispatcher(); __builtin_expect(carrier != this, 0)) {
        // It was here when it was cancelled, and waits elsewhere now.
        carrier->PostReady(task);
        return;
      }
      counters_.posted.add(1);
      MakeReady(task);
    }
    // Else it has moved since, or has ended, and the block may be another thread's by now.
    if ((reasons & Task::kCancelRequest) != 0 && task.WaitsOn(*this)) {
      task.Interrupt(Wake::kCancelled);
    }
  });
  return true;
}

}  // namespace bobbin::internal
