// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/internal/select_case.h>

#include <algorithm>
#include <functional>

#include <bobbin/core/internal/current.h>

namespace bobbin::internal {

namespace {

// Calls `visit(case, index)` for each case that can become ready, from a random one on, until it
// says true; then returns that one.
template <typename Visit>
SelectCase* FindFromAny(std::span<SelectCase* const> cases, Visit visit) {
  size_t index = Current().NextChoice(static_cast<uint32_t>(cases.size()));
  for (size_t looks = 0; looks < cases.size(); ++looks) {
    if (cases[index]->place() != nullptr && visit(*cases[index])) return cases[index];
    if (++index == cases.size()) index = 0;
  }
  return nullptr;
}

// The case that the wait is to end with if nothing else does, or null.
SelectCase* EarliestDeadline(std::span<SelectCase* const> cases) {
  SelectCase* earliest = nullptr;
  for (SelectCase* const candidate : cases) {
    const Deadline deadline = candidate->deadline();
    if (deadline.is_never()) continue;
    if (earliest == nullptr || deadline < earliest->deadline()) earliest = candidate;
  }
  return earliest;
}

// Sorts the cases that have a lock by it, and leaves one for each lock. Returns how many.
size_t SortByPlace(std::span<SelectCase* const> cases, std::span<SelectCase*> by_place) {
  const auto end = std::copy_if(cases.begin(), cases.end(), by_place.begin(),
                                [](const SelectCase* one) { return one->place() != nullptr; });
  std::sort(by_place.begin(), end, [](const SelectCase* left, const SelectCase* right) {
    return std::less<>()(left->place(), right->place());
  });
  const auto last =
      std::unique(by_place.begin(), end, [](const SelectCase* left, const SelectCase* right) {
        return left->place() == right->place();
      });
  return static_cast<size_t>(last - by_place.begin());
}

}  // namespace

SelectCase* TakeReady(std::span<SelectCase* const> cases) {
  return FindFromAny(cases, [](SelectCase& one) { return one.TryNow(); });
}

absl::StatusOr<SelectCase*> AwaitOne(std::span<SelectCase* const> cases, std::span<Waiter> waiters,
                                     std::span<SelectCase*> by_place) {
  Thread& self = waiters.front().thread();
  if (self.ShouldStop()) return self.StopStatus();
  SelectCase* const timer = EarliestDeadline(cases);
  const DeadlineScope scope(timer == nullptr ? Deadline::Never() : timer->deadline());
  const std::span<SelectCase*> locks = by_place.first(SortByPlace(cases, by_place));

  // The second look, and the places in the queues: under all locks.
  WakeList woken;
  for (SelectCase* const one : locks) one->Lock();
  SelectCase* const ready =
      FindFromAny(cases, [&woken](SelectCase& one) { return one.TryLocked(woken); });
  if (ready == nullptr) {
    waiters.front().BeginWait(Phase::kWaitingAny);
    for (size_t i = 0; i < cases.size(); ++i) {
      waiters[i].ShareWait(waiters.front());
      if (cases[i]->place() != nullptr) cases[i]->Join(waiters[i]);
    }
  }
  for (SelectCase* const one : locks) one->Unlock();
  woken.Dispatch();
  if (ready != nullptr) return ready;

  static constexpr WaitKind kSelectWait = {"select", WaitObject::kNone};
  waiters.front().Name(kSelectWait);
  const Wake wake = waiters.front().Park();
  SelectCase* winner = nullptr;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i]->place() == nullptr) continue;
    cases[i]->Leave(waiters[i]);
    if (waiters[i].is_claimed()) winner = cases[i];
  }
  if (wake == Wake::kNotified) return winner;
  const bool is_own_deadline =
      wake == Wake::kExpired && timer != nullptr && scope.effective() == timer->deadline();
  if (is_own_deadline) return timer;
  return Thread::StatusOf(wake);
}

// --- Events.

bool EventPlace::TryLocked(WakeList&) noexcept { return event_.IsSet(); }

void EventPlace::Join(Waiter& waiter) noexcept {
  event_.waiters_.Join(waiter);
  event_.word_.SetLocked(Event::kHasWaiters);
}

void EventPlace::Leave(Waiter& waiter) noexcept {
  if (!waiter.is_claimed()) static_cast<void>(event_.Forget(waiter));
}

// --- Semaphores.

bool SemaphorePlace::TryLocked(WakeList&) noexcept {
  const Semaphore::Word word = semaphore_.word_.Load();
  if (Semaphore::FreeOf(word) < permits_ || (word & Semaphore::kHasWaiters) != 0) return false;
  semaphore_.word_.SetLocked(word - Semaphore::WordOf(permits_));
  return true;
}

void SemaphorePlace::Join(Waiter& waiter) noexcept {
  waiter.amount = permits_;
  semaphore_.waiters_.Join(waiter);
  semaphore_.word_.SetLocked(semaphore_.word_.Load() | Semaphore::kHasWaiters);
}

void SemaphorePlace::Leave(Waiter& waiter) noexcept {
  if (!waiter.is_claimed()) semaphore_.Forget(waiter);
}

// --- Futures.

bool FuturePlace::TryLocked(WakeList&) noexcept { return state_->IsReady(); }

void FuturePlace::Join(Waiter& waiter) noexcept { state_->EnrolLocked(waiter); }

void FuturePlace::Leave(Waiter& waiter) noexcept {
  if (!waiter.is_claimed()) state_->Withdraw();
}

// --- Deadlines: without a place, so nobody calls these.

bool DeadlinePlace::TryLocked(WakeList&) noexcept { return false; }
void DeadlinePlace::Join(Waiter&) noexcept {}
void DeadlinePlace::Leave(Waiter&) noexcept {}

}  // namespace bobbin::internal
