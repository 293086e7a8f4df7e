// SPDX-License-Identifier: Apache-2.0

#include "sched/src/monitor.h"

#include <algorithm>

#include <bobbin/core/deadline.h>
#include <bobbin/core/internal/futex.h>

#include "sched/src/carrier.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

void Monitor::Start() {
  const int carriers = runtime_.carrier_count();
  // With one carrier there is nobody to wake.
  if (carriers == 1 && !watchdog_.is_on() && !deadlock_watch_.is_on()) return;
  turns_.assign(static_cast<size_t>(carriers), 0);
  for (int i = 0; i < carriers && watchdog_.is_on(); ++i) watchdog_.Add(runtime_.carrier(i));
  thread_ = OsThreadHandle("monitor", [this] { Run(); });
}

void Monitor::Stop() noexcept {
  word_.store(kEnding);
  FutexWakeOne(word_);
  if (thread_.is_joinable()) thread_.Join();
}

void Monitor::Rouse() noexcept {
  uint32_t dozing = kDozing;
  if (word_.compare_exchange_strong(dozing, kWatching)) FutexWakeOne(word_);
}

void Monitor::Run() noexcept {
  int quiet_ticks = 0;
  std::chrono::nanoseconds pause = kTick;
  while (word_.load() != kEnding) {
    FutexWait(word_, kWatching, Deadline::After(pause).nanoseconds());
    const Seen seen = Look(pause);
    pause = kTick;
    if (seen.is_suspicious) pause = std::min(pause, watchdog_.SuspicionPause());
    quiet_ticks = seen.has_moved ? 0 : quiet_ticks + 1;
    if (quiet_ticks < kQuietTicksBeforeDoze) continue;
    // Announce, then look once more; CarrierIsBusy does the same the other way round.
    uint32_t watching = kWatching;
    if (!word_.compare_exchange_strong(watching, kDozing)) continue;
    if (AllAsleep()) {
      Doze();
    } else {
      Rouse();
    }
    quiet_ticks = 0;
  }
}

void Monitor::Doze() noexcept {
  int looks_left = deadlock_watch_.is_on() ? kLooksWhileDozing : 0;
  std::chrono::seconds pause(1);
  while (word_.load() == kDozing) {
    Deadline until = Deadline::Never();
    if (looks_left > 0 && deadlock_watch_.Look() == DeadlockWatch::Seen::kForeign) {
      until = Deadline::After(pause);
      pause *= 2;
    }
    --looks_left;
    FutexWait(word_, kDozing, until.nanoseconds());
  }
}

Monitor::Seen Monitor::Look(std::chrono::nanoseconds planned) noexcept {
  Seen seen;
  for (int i = 0; i < runtime_.carrier_count(); ++i) {
    Carrier& carrier = runtime_.carrier(i);
    uint64_t& last = turns_[static_cast<size_t>(i)];
    const uint64_t turns = carrier.counters().turns.value();
    const bool is_stuck = turns == last && carrier.state() == Carrier::State::kAwake;
    seen.has_moved |= turns != last || is_stuck;
    last = turns;
    if (is_stuck && carrier.HasStealable()) runtime_.WakeOneToSearch();
    if (watchdog_.is_on()) seen.is_suspicious |= watchdog_.Look(carrier, planned);
  }
  return seen;
}

bool Monitor::AllAsleep() const noexcept {
  for (int i = 0; i < runtime_.carrier_count(); ++i) {
    if (runtime_.carrier(i).state() == Carrier::State::kAwake) return false;
  }
  return true;
}

}  // namespace bobbin::internal
