// SPDX-License-Identifier: Apache-2.0
//
// Guarded: the price of the lock around a value, of a turn that is awaited, and of changes that
// satisfy none of those who wait. Beside them Mutex and Condition, which it saves.

#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/condition.h>
#include <bobbin/core/guarded.h>
#include <bobbin/core/mutex.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"
#include "bench/support/rally.h"

namespace bobbin::bench {
namespace {

void Uncontended(benchmark::State& state) {
  OnVirtualThread([&state] {
    Guarded<int> number;
    for ([[maybe_unused]] auto _ : state) number.With([](int& value) { ++value; });
  });
}
BENCHMARK(Uncontended)->Name("Guarded/Uncontended");

class GuardedBaton {
 public:
  void Signal() {
    signals_.With([](int& value) { ++value; });
  }
  void Await() {
    auto held = signals_.Lock();
    BOBBIN_CHECK(held.Await([](int value) { return value > 0; }).ok(), "nobody cancels it");
    --*held;
  }

 private:
  Guarded<int> signals_;
};

class ConditionBaton {
 public:
  void Signal() {
    {
      const MutexLock lock(mutex_);
      ++signals_;
    }
    changed_.NotifyAll();
  }
  void Await() {
    const MutexLock lock(mutex_);
    BOBBIN_CHECK(changed_.Wait(mutex_, [&] { return signals_ > 0; }).ok(), "nobody cancels it");
    --signals_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  int signals_ = 0;  // Guarded by mutex_.
};

template <typename Baton>
void PingPong(benchmark::State& state) {
  OnVirtualThread([&state] {
    Rally<Baton> rally;
    VirtualThread other = Spawn([&rally] { rally.Answer(); });
    rally.Measure(state);
    BOBBIN_CHECK(other.Join().ok(), "it cannot fail");
  });
}
BENCHMARK(PingPong<GuardedBaton>)->Name("Guarded/PingPong");
BENCHMARK(PingPong<ConditionBaton>)->Name("Guarded/PingPong/Condition");

// So many wait, each for a number of its own; the benchmark counts from one to the next.
constexpr int kWaiting = 16;
constexpr int kSteps = 64;

void InVain(benchmark::State& state) {
  OnVirtualThread([&state] {
    while (state.KeepRunningBatch(kWaiting * kSteps)) {
      Guarded<int> number;
      TaskGroup group;
      for (int i = 1; i <= kWaiting; ++i) {
        group.Spawn([&number, i] {
          return number.Lock().Await([i](int value) { return value >= i * kSteps; });
        });
      }
      Yield();
      for (int i = 0; i < kWaiting * kSteps; ++i) {
        number.With([](int& value) { ++value; });
        Yield();
      }
      BOBBIN_CHECK(group.Wait().ok(), "it cannot fail");
    }
  });
}
BENCHMARK(InVain)->Name("Guarded/16WaitInVain");

void InVainCondition(benchmark::State& state) {
  OnVirtualThread([&state] {
    while (state.KeepRunningBatch(kWaiting * kSteps)) {
      Mutex mutex;
      Condition changed;
      int number = 0;
      TaskGroup group;
      for (int i = 1; i <= kWaiting; ++i) {
        group.Spawn([&, i] {
          const MutexLock lock(mutex);
          return changed.Wait(mutex, [&number, i] { return number >= i * kSteps; });
        });
      }
      Yield();
      for (int i = 0; i < kWaiting * kSteps; ++i) {
        {
          const MutexLock lock(mutex);
          ++number;
        }
        changed.NotifyAll();
        Yield();
      }
      BOBBIN_CHECK(group.Wait().ok(), "it cannot fail");
    }
  });
}
BENCHMARK(InVainCondition)->Name("Guarded/16WaitInVain/Condition");

}  // namespace
}  // namespace bobbin::bench
