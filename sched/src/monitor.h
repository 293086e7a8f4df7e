// SPDX-License-Identifier: Apache-2.0
//
// Monitor: an OS thread that looks after carriers which do not come round.
//
// A carrier in a long run cannot share what others put on its plate. Every tick the monitor
// compares each carrier's turn count with the last one; where it has not moved and new virtual
// threads wait there, an idle carrier is woken to take them.
//
// It must cost an idle process nothing. After a second without any turn it sleeps without limit,
// and the first carrier to wake wakes it, so that its wake costs somebody microseconds at most once
// a second.
//
//   Called from   Start, Stop: the runtime's owner. CarrierIsBusy: carriers.
//   Suspends      its own OS thread only.

#ifndef BOBBIN_SCHED_SRC_MONITOR_H_
#define BOBBIN_SCHED_SRC_MONITOR_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include <bobbin/core/internal/atomic.h>

#include "sched/src/os_thread_handle.h"

namespace bobbin::internal {

class RuntimeCore;

class Monitor {
 public:
  explicit Monitor(RuntimeCore& runtime) : runtime_(runtime) {}
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void Start();
  void Stop() noexcept;

  void CarrierIsBusy() noexcept {
    // Pairs, as a sequentially consistent access, with the one in Run: a carrier leaves its sleep,
    // then reads this; the monitor sets this, then reads the carriers' states.
    if (__builtin_expect(word_.load() == kDozing, 0)) Rouse();
  }

 private:
  // What the word says: watching, asleep without limit, told to end.
  static constexpr uint32_t kWatching = 0;
  static constexpr uint32_t kDozing = 1;
  static constexpr uint32_t kEnding = 2;

  static constexpr std::chrono::milliseconds kTick{10};
  static constexpr int kQuietTicksBeforeDoze = 100;

  void Run() noexcept;
  // Looks at every carrier; returns whether any had come round since the last look.
  bool Look() noexcept;
  bool AllAsleep() const noexcept;
  void Rouse() noexcept;

  RuntimeCore& runtime_;
  Atomic<uint32_t> word_{kWatching};  // The futex word; written by all, read by all.
  std::vector<uint64_t> turns_;       // Of each carrier, at the last look.
  OsThreadHandle thread_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_MONITOR_H_
