// SPDX-License-Identifier: Apache-2.0
//
// ThreadProbe: lets a test wait until a thread waits - for the state, not for time. AwaitTrue: the
// same for any condition. Spin: lets two threads meet a little earlier or later.
//
//   Called from   Attach: the thread that is watched, right before the wait. The rest: any thread.
//   Suspends      AwaitParked and AwaitTrue let others run until it is so.
//
// Example:
//   ThreadProbe probe;
//   group.Spawn([&] { probe.Attach(); return slots.Acquire(); });
//   probe.AwaitParked();

#ifndef BOBBIN_TESTS_SUPPORT_THREAD_PROBE_H_
#define BOBBIN_TESTS_SUPPORT_THREAD_PROBE_H_

#include <sched.h>

#include <atomic>
#include <cstdint>

#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/sched/sleep.h>

namespace bobbin::test {

template <typename Condition>
void AwaitTrue(Condition condition) {
  for (int looks = 1; !condition(); ++looks) {
    Yield();
    // The one that is awaited may be on another carrier, which needs this CPU.
    if (looks % 64 == 0) internal::GiveUpSlice();
  }
}

// Some nanoseconds a turn.
inline void Spin(uint64_t turns) {
  for (; turns > 0; --turns) std::atomic_signal_fence(std::memory_order_seq_cst);
}

class ThreadProbe {
 public:
  void Attach() { thread_.store(&internal::Current()); }

  bool IsParked() const {
    const internal::Thread* const thread = thread_.load();
    if (thread == nullptr) return false;
    const internal::Phase phase = thread->state().phase();
    return phase == internal::Phase::kWaiting || phase == internal::Phase::kWaitingAny ||
           phase == internal::Phase::kWaitingShielded;
  }
  void AwaitParked() const {
    AwaitTrue([this] { return IsParked(); });
  }

 private:
  std::atomic<internal::Thread*> thread_{
      nullptr};  // Written by the watched thread, read by others.
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SUPPORT_THREAD_PROBE_H_
