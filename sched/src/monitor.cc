// SPDX-License-Identifier: Apache-2.0

#include "sched/src/monitor.h"

#include <bobbin/core/deadline.h>

#include <bobbin/core/internal/futex.h>
#include "sched/src/carrier.h"
#include "sched/src/runtime_core.h"

namespace bobbin::internal {

void Monitor::Start() {
  turns_.assign(static_cast<size_t>(runtime_.carrier_count()), 0);
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
  while (word_.load() != kEnding) {
    FutexWait(word_, kWatching, Deadline::After(kTick).nanoseconds());
    quiet_ticks = Look() ? 0 : quiet_ticks + 1;
    if (quiet_ticks < kQuietTicksBeforeDoze) continue;
    // Announce, then look once more; CarrierIsBusy does the same the other way round.
    uint32_t watching = kWatching;
    if (!word_.compare_exchange_strong(watching, kDozing)) continue;
    if (AllAsleep()) {
      while (word_.load() == kDozing) FutexWait(word_, kDozing, Deadline::Never().nanoseconds());
    } else {
      Rouse();
    }
    quiet_ticks = 0;
  }
}

bool Monitor::Look() noexcept {
  bool has_moved = false;
  for (int i = 0; i < runtime_.carrier_count(); ++i) {
    Carrier& carrier = runtime_.carrier(i);
    uint64_t& last = turns_[static_cast<size_t>(i)];
    const uint64_t turns = carrier.counters().turns.value();
    const bool is_stuck = turns == last && carrier.state() == Carrier::State::kAwake;
    has_moved |= turns != last || is_stuck;
    last = turns;
    if (is_stuck && carrier.HasFresh()) runtime_.WakeOneToSearch();
  }
  return has_moved;
}

bool Monitor::AllAsleep() const noexcept {
  for (int i = 0; i < runtime_.carrier_count(); ++i) {
    if (runtime_.carrier(i).state() == Carrier::State::kAwake) return false;
  }
  return true;
}

}  // namespace bobbin::internal
