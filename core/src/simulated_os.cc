// SPDX-License-Identifier: Apache-2.0
//
// The operating system of a simulation: in the place of os.cc and futex.cc.

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/asymmetric_fence.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/futex.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/simulator.h>
#include <bobbin/core/internal/word_lock.h>

namespace bobbin {

MonotonicTime MonotonicNow() {
  internal::Simulator* const simulator = internal::Simulator::Active();
  if (simulator == nullptr) return MonotonicClock::now();
  return MonotonicTime(std::chrono::nanoseconds(simulator->Now()));
}

namespace internal {

bool HasHeavyFence() noexcept { return true; }

void HeavyFence() noexcept { AtomicThreadFence(std::memory_order_seq_cst); }

bool HasFault(FaultPoint point) noexcept { return Simulator::Fails(point); }

void GiveUpSlice() noexcept { Simulator::Pause(); }

void PauseSpin() noexcept { Simulator::Pause(); }

bool OthersRunMeanwhile() noexcept { return true; }

void AtThreadExit(void (*exit)(void*), void* argument) noexcept {
  if (Simulator* const simulator = Simulator::Active()) simulator->AtThreadExit(exit, argument);
}

uint64_t CountOsThreads() noexcept {
  const Simulator* const simulator = Simulator::Active();
  return simulator == nullptr ? 1 : simulator->CountThreads();
}

StackBounds OwnStack() noexcept {
  const Simulator* const simulator = Simulator::Active();
  if (simulator == nullptr) return {};
  const std::span<char> stack = simulator->RunningStack();
  return {stack.data(), stack.size()};
}

bool FutexWait(Atomic<uint32_t>& word, uint32_t value, int64_t deadline) noexcept {
  Simulator* const simulator = Simulator::Active();
  if (simulator == nullptr) return true;
  Simulator::Step(StepKind::kFutexWait, &word, Place::Here());
  if (word.newest() != value || Simulator::Fails(faults::kSpuriousWake)) return true;
  return simulator->WaitOn(&word, deadline);
}

void FutexWakeOne(Atomic<uint32_t>& word) noexcept {
  Simulator* const simulator = Simulator::Active();
  if (simulator == nullptr) return;
  Simulator::Step(StepKind::kFutexWake, &word, Place::Here());
  simulator->WakeOne(&word);
}

}  // namespace internal

}  // namespace bobbin
