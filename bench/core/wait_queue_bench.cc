// SPDX-License-Identifier: Apache-2.0
//
// Parking and unparking, as every primitive does it. One iteration is one round trip: two of each.

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "benchmark/benchmark.h"

#include <bobbin/core/check.h>
#include <bobbin/core/internal/spin_lock.h>
#include <bobbin/core/internal/wait_queue.h>
#include <bobbin/sched/sleep.h>

#include "bench/support/on_virtual_thread.h"
#include "bench/support/rally.h"

namespace bobbin::bench {
namespace {

using internal::SpinLock;
using internal::SpinLockHolder;
using internal::Waiter;
using internal::WaitQueue;
using internal::Wake;
using internal::WakeList;

// One thread waits for what another one signals, on any two carriers.
class Baton {
 public:
  void Signal() {
    WakeList woken;
    {
      SpinLockHolder hold(lock_);
      if (Waiter* const waiter = waiters_.ClaimFront()) {
        woken.Add(*waiter);
      } else {
        is_signalled_ = true;
      }
    }
    woken.Dispatch();
  }

  void Await() {
    Waiter self;
    {
      SpinLockHolder hold(lock_);
      if (std::exchange(is_signalled_, false)) return;
      waiters_.PushBack(self);
    }
    BOBBIN_CHECK(self.Park() == Wake::kNotified, "nobody cancels it");
  }

 private:
  SpinLock lock_;
  WaitQueue waiters_ ABSL_GUARDED_BY(lock_);
  bool is_signalled_ ABSL_GUARDED_BY(lock_) = false;
};

// The same without the lock: among threads of one carrier there is no race to guard against.
class LocalBaton {
 public:
  void Signal() {
    WakeList woken;
    if (Waiter* const waiter = waiters_.ClaimFront()) {
      woken.Add(*waiter);
    } else {
      is_signalled_ = true;
    }
    woken.Dispatch();
  }

  void Await() {
    if (std::exchange(is_signalled_, false)) return;
    Waiter self;
    waiters_.PushBack(self);
    BOBBIN_CHECK(self.Park() == Wake::kNotified, "nobody cancels it");
  }

 private:
  WaitQueue waiters_;
  bool is_signalled_ = false;
};

void SameCarrier(benchmark::State& state) {
  OnVirtualThread([&state] {
    Rally<LocalBaton> rally;
    VirtualThread other = Spawn([&rally] { rally.Answer(); });
    rally.Measure(state);
    BOBBIN_CHECK(other.Join().ok(), "it cannot fail");
  });
}
BENCHMARK(SameCarrier)->Name("ParkUnpark/SameCarrier");

// Each carrier has a CPU of its own, as the OS threads of the baseline have: otherwise the system
// would decide anew in every run whether a wake has to cross to another CPU.
RuntimeOptions TwoCarriers() { return {.carriers = 2, .pins_carriers = true}; }

// Each carrier has nothing else to do, so it sleeps until the signal comes.
void CrossCarrierAsleep(benchmark::State& state) {
  OnVirtualThread(TwoCarriers(), [&state] {
    Rally<Baton> rally;
    VirtualThread other = SpawnOn(Side::kOtherCarrier, [&rally] { rally.Answer(); });
    rally.Measure(state);
    BOBBIN_CHECK(other.Join().ok(), "it cannot fail");
  });
}
BENCHMARK(CrossCarrierAsleep)->Name("ParkUnpark/CrossCarrierAsleep");

// On each carrier a third thread yields all the time, so that it never sleeps.
void CrossCarrierAwake(benchmark::State& state) {
  OnVirtualThread(TwoCarriers(), [&state] {
    // Set by the measuring thread, read by the other two: says nothing about other memory.
    std::atomic<bool> is_over{false};
    const auto stay_awake = [&is_over] {
      // relaxed: seen soon enough.
      while (!is_over.load(std::memory_order_relaxed)) Yield();
    };
    VirtualThread awake_here = SpawnOn(Side::kSameCarrier, stay_awake);
    VirtualThread awake_there = SpawnOn(Side::kOtherCarrier, stay_awake);

    Rally<Baton> rally;
    VirtualThread other = SpawnOn(Side::kOtherCarrier, [&rally] { rally.Answer(); });
    rally.Measure(state);

    is_over.store(true, std::memory_order_relaxed);  // relaxed: as above.
    for (VirtualThread* thread : {&other, &awake_here, &awake_there}) {
      BOBBIN_CHECK(thread->Join().ok(), "it cannot fail");
    }
  });
}
BENCHMARK(CrossCarrierAwake)->Name("ParkUnpark/CrossCarrierAwake");

}  // namespace
}  // namespace bobbin::bench
