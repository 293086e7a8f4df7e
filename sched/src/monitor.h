// SPDX-License-Identifier: Apache-2.0
//
// Monitor: an OS thread that looks after carriers which do not come round.
//
// A carrier in a long run cannot share what others put on its plate. Every tick the monitor
// compares each carrier's turn count with the last one; where it has not moved and new virtual
// threads wait there, an idle carrier is woken to take them. Whether one virtual thread keeps it
// for too long is the watchdog's question (watchdog.h), which is asked at the same time; a
// suspicion shortens the tick.
//
// It must cost an idle process nothing. After a second without any turn it looks for a deadlock
// (deadlock_watch.h) and sleeps without limit, and the first carrier to wake wakes it, so that its
// wake costs somebody microseconds at most once a second.
//
//   Called from   Start, Stop: the runtime's owner. CarrierIsBusy: carriers.
//   Suspends      its own OS thread only.

#ifndef BOBBIN_SCHED_SRC_MONITOR_H_
#define BOBBIN_SCHED_SRC_MONITOR_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include <bobbin/core/internal/atomic.h>

#include "sched/src/deadlock_watch.h"
#include "sched/src/os_thread_handle.h"
#include "sched/src/watchdog.h"

namespace bobbin::internal {

class RuntimeCore;

class Monitor {
 public:
  Monitor(RuntimeCore& runtime, WatchdogOptions& watchdog, DeadlockOptions& deadlock)
      : runtime_(runtime), watchdog_(watchdog), deadlock_watch_(runtime, deadlock) {}
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Does nothing where there is nothing to do. REQUIRES: the carriers' OS threads run.
  void Start();
  void Stop() noexcept;
  const Watchdog& watchdog() const noexcept { return watchdog_; }
  const DeadlockWatch& deadlock_watch() const noexcept { return deadlock_watch_; }

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
  // While only foreign threads could wake somebody, one of them may begin to wait, or end, and
  // nobody tells. So there are some more looks, at pauses of 1, 2, 4... seconds.
  static constexpr int kLooksWhileDozing = 8;

  // What a look at all carriers has shown.
  struct Seen {
    bool has_moved = false;  // One has come round since the last look, or should have.
    bool is_suspicious = false;
  };

  void Run() noexcept;
  // `planned`: the pause that was meant to lie between the last look and this one.
  Seen Look(std::chrono::nanoseconds planned) noexcept;
  bool AllAsleep() const noexcept;
  // Sleeps until a carrier wakes. REQUIRES: the word was set to kDozing, and all carriers slept.
  void Doze() noexcept;
  void Rouse() noexcept;

  RuntimeCore& runtime_;
  Atomic<uint32_t> word_{kWatching};  // The futex word; written by all, read by all.
  Watchdog watchdog_;
  DeadlockWatch deadlock_watch_;
  std::vector<uint64_t> turns_;  // Of each carrier, at the last look.
  OsThreadHandle thread_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_SRC_MONITOR_H_
