// SPDX-License-Identifier: Apache-2.0
//
// OnVirtualThread: runs the loop of a benchmark on a virtual thread of a runtime of its own.
// SpawnOn: starts another one on a chosen side of two carriers.
//
// The runtime has been started before the loop begins and ends after it. A virtual thread stays on
// the OS thread where it began, so the benchmark's two clocks, real time and the thread's CPU time,
// are both read on the carrier that does the work.

#ifndef BOBBIN_BENCH_SUPPORT_ON_VIRTUAL_THREAD_H_
#define BOBBIN_BENCH_SUPPORT_ON_VIRTUAL_THREAD_H_

#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/event.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

namespace bobbin::bench {

// Calls `loop()` on a virtual thread of a new runtime and waits for its end.
template <typename Loop>
void OnVirtualThread(RuntimeOptions options, Loop loop) {
  Runtime runtime(std::move(options));
  BOBBIN_CHECK(runtime.Spawn([&loop] { loop(); }).Join().ok(), "the benchmark's thread has failed");
}

// The same, on one carrier.
template <typename Loop>
void OnVirtualThread(Loop loop) {
  OnVirtualThread({.carriers = 1}, std::move(loop));
}

enum class Side { kSameCarrier, kOtherCarrier };

// Starts a virtual thread that runs `body` on the caller's carrier, or on another one. Which
// carrier a new thread comes to is up to the runtime, so this tries until one has come to the right
// place.
template <typename Body>
VirtualThread SpawnOn(Side side, const Body& body) {
  constexpr int kTries = 100'000;
  const internal::Dispatcher* const here = internal::Current().dispatcher();
  const Placement placement = side == Side::kSameCarrier ? Placement::kHere : Placement::kSpread;
  for (int i = 0; i < kTries; ++i) {
    Event has_begun;
    bool is_right = false;
    VirtualThread thread =
        Spawn({.placement = placement}, [&has_begun, &is_right, here, side, body] {
          const bool is_here = internal::Current().dispatcher() == here;
          const bool goes_on = is_here == (side == Side::kSameCarrier);
          is_right = goes_on;
          has_begun.Set();
          if (goes_on) body();
        });
    BOBBIN_CHECK(has_begun.Wait().ok(), "nobody cancels it");
    if (is_right) return thread;
    BOBBIN_CHECK(thread.Join().ok(), "it did nothing");
  }
  BOBBIN_CHECK(false, "no virtual thread has come to that carrier");
  __builtin_unreachable();
}

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_SUPPORT_ON_VIRTUAL_THREAD_H_
