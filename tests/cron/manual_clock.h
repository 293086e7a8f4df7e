// SPDX-License-Identifier: Apache-2.0
//
// ManualClock: a clock that a test sets. InlineRunner, HoldingRunner: runners that a test sees
// through.
//
//   Called from   the clock: any thread. The runners: one thread at a time.

#ifndef BOBBIN_TESTS_CRON_MANUAL_CLOCK_H_
#define BOBBIN_TESTS_CRON_MANUAL_CLOCK_H_

#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/core/mutex.h>
#include <bobbin/cron/clock.h>
#include <bobbin/cron/job_runner.h>

namespace bobbin::test {

class ManualClock final : public cron::Clock {
 public:
  explicit ManualClock(absl::Time wall) : reading_{.wall = wall, .monotonic = {}} {
    reading_.monotonic += std::chrono::hours(1);
  }

  Reading Now() override {
    MutexLock lock(mutex_);
    return reading_;
  }
  // Time goes by.
  void Advance(absl::Duration duration) {
    MutexLock lock(mutex_);
    reading_.wall += duration;
    reading_.monotonic += absl::ToChronoNanoseconds(duration);
  }
  // Somebody sets the wall clock; or the machine sleeps, which the monotonic clock does not see.
  void SetWall(absl::Time wall) {
    MutexLock lock(mutex_);
    reading_.wall = wall;
  }

 private:
  Mutex mutex_;
  Reading reading_ ABSL_GUARDED_BY(mutex_);
};

// A run takes place at once, on the thread that starts it.
class InlineRunner final : public cron::JobRunner {
 public:
  absl::StatusOr<VirtualThread> Start(std::string_view /*job*/,
                                      absl::AnyInvocable<void() &&> run) override {
    std::move(run)();
    return VirtualThread();
  }
  std::string_view name() const override { return "inline"; }
};

// A run waits until the test lets it take place, or drops it.
class HoldingRunner final : public cron::JobRunner {
 public:
  absl::StatusOr<VirtualThread> Start(std::string_view /*job*/,
                                      absl::AnyInvocable<void() &&> run) override {
    if (refuses) return absl::ResourceExhaustedError("it is full");
    held.push_back(std::move(run));
    return VirtualThread();
  }
  std::string_view name() const override { return "holding"; }

  void RunOne() {
    absl::AnyInvocable<void()&&> run = std::move(held.front());
    held.erase(held.begin());
    std::move(run)();
  }

  std::vector<absl::AnyInvocable<void() &&>> held;
  bool refuses = false;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_CRON_MANUAL_CLOCK_H_
