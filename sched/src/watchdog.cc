// SPDX-License-Identifier: Apache-2.0

#include "sched/src/watchdog.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/internal/backtrace.h>
#include <bobbin/core/internal/stack_sample.h>
#include <bobbin/core/role.h>
#include <bobbin/sched/internal/notice.h>

#include "sched/src/carrier.h"
#include "sched/src/limits.h"

namespace bobbin {

namespace {

// What has happened, without the stack.
std::string Headline(const CarrierHold& hold) {
  const double milliseconds = std::chrono::duration<double, std::milli>(hold.held).count();
  std::string text =
      fmt::format("carrier {} is held for {:.0f} ms by ", hold.carrier, milliseconds);
  text += hold.stack.empty() ? "somebody who has not answered"
          : hold.thread_id == 0
              ? "its own work"
              : fmt::format("virtual thread \"{}\" (id {})", hold.thread_name, hold.thread_id);
  text += hold.kind == CarrierHold::Kind::kComputes ? ", which computes"
                                                    : ", which blocks in the kernel";
  if (hold.unreported != 0) text += fmt::format("; {} more were not reported", hold.unreported);
  return text;
}

}  // namespace

std::string CarrierHold::Text() const {
  return fmt::format("bobbin: {}\n{}", Headline(*this), stack);
}

namespace internal {

void Watchdog::Add(const Carrier& carrier) { suspects_.emplace_back(carrier.os_thread()); }

bool Watchdog::Look(const Carrier& carrier, std::chrono::nanoseconds planned) {
  Suspect& suspect = suspects_[static_cast<size_t>(carrier.index())];
  const uint64_t picks = carrier.dispatch_counters().picks.value();
  if (picks != suspect.picks || carrier.state() != Carrier::State::kAwake) {
    suspect.picks = picks;
    suspect.is_measured = false;
    if (std::exchange(suspect.is_reported, false)) {
      // relaxed: it says all by itself, here and below.
      suspect.held_since.store(0, std::memory_order_relaxed);
    }
    suspect.computed = suspect.blocked = {};
    return false;
  }
  if (suspect.is_reported) return false;
  Measure(suspect, planned);
  if (suspect.computed + suspect.blocked <= options_.limit) return true;
  // It may have gone on while it was measured.
  if (carrier.dispatch_counters().picks.value() != picks) return false;
  suspect.is_reported = true;
  const MonotonicTime since = MonotonicNow() - suspect.computed - suspect.blocked;
  // relaxed: it says all by itself.
  suspect.held_since.store(since.time_since_epoch().count(), std::memory_order_relaxed);
  Report(carrier, suspect);
  return false;
}

uint64_t Watchdog::held_carriers() const noexcept {
  uint64_t held = 0;
  for (const Suspect& suspect : suspects_) {
    // relaxed: it says all by itself.
    if (suspect.held_since.load(std::memory_order_relaxed) != 0) ++held;
  }
  return held;
}

std::vector<HeldCarrier> Watchdog::HeldCarriers() const {
  const std::chrono::nanoseconds now = MonotonicNow().time_since_epoch();
  std::vector<HeldCarrier> held;
  for (int carrier = 0; const Suspect& suspect : suspects_) {
    // relaxed: it says all by itself.
    const int64_t since = suspect.held_since.load(std::memory_order_relaxed);
    if (since != 0) held.push_back({carrier, now - std::chrono::nanoseconds(since)});
    ++carrier;
  }
  return held;
}

void Watchdog::Measure(Suspect& suspect, std::chrono::nanoseconds planned) noexcept {
  const OsThreadMeter::Reading now = suspect.meter.Read();
  const OsThreadMeter::Reading last = std::exchange(suspect.last, now);
  if (!std::exchange(suspect.is_measured, true)) return;
  const std::chrono::nanoseconds cpu = now.cpu - last.cpu;
  if (now.doing == OsThreadMeter::Doing::kWaiting && last.doing == OsThreadMeter::Doing::kWaiting &&
      cpu < planned / 2) {
    suspect.blocked += planned;
  } else {
    suspect.computed += std::min(cpu, planned);
  }
}

bool Watchdog::MayReport() noexcept {
  const MonotonicTime now = MonotonicNow();
  if (now - minute_began_ >= std::chrono::minutes(1)) {
    minute_began_ = now;
    reported_in_minute_ = 0;
  }
  if (reported_in_minute_ >= options_.reports_per_minute) return false;
  ++reported_in_minute_;
  return true;
}

void Watchdog::Report(const Carrier& carrier, const Suspect& suspect) {
  const bool computes = suspect.computed >= suspect.blocked;
  Counter& holds = computes ? computing_holds_ : blocking_holds_;
  if (!MayReport()) {
    holds.add(1);
    ++unreported_;
    return;
  }
  CarrierHold hold;
  hold.kind = computes ? CarrierHold::Kind::kComputes : CarrierHold::Kind::kBlocks;
  hold.carrier = carrier.index();
  hold.held = suspect.computed + suspect.blocked;
  hold.unreported = std::exchange(unreported_, 0);
  DescribeHolder(carrier, suspect.picks, hold);
  // Only now: who waits for the count must not have let go before it was asked.
  holds.add(1);
  if (options_.report) {
    options_.report(hold);
  } else {
    Tell({.text = Headline(hold),
          .fields = {{"bobbin.carrier", hold.carrier},
                     {"bobbin.hold.kind", computes ? "computing" : "blocking"},
                     {"bobbin.vthread", hold.thread_name}},
          .stack = hold.stack});
  }
}

void Watchdog::DescribeHolder(const Carrier& carrier, uint64_t picks, CarrierHold& hold) {
  const std::optional<StackSample> sample = StackSample::Take(carrier.os_thread(), kSamplePatience);
  // It may have let go just now: then the answer is somebody else's.
  if (!sample.has_value() || carrier.dispatch_counters().picks.value() != picks) return;
  if (sample->role == Role::kVirtual) {
    hold.thread_id = sample->id;
    hold.thread_name = sample->name.data();
  }
  for (const void* const frame : sample->backtrace.frames()) {
    hold.stack += "  ";
    AppendFrame(hold.stack, frame);
    hold.stack += '\n';
  }
}

}  // namespace internal

}  // namespace bobbin
