// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/units.h"

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/core/wait_group.h>

#include "bench/compare/crew.h"
#include "bench/compare/text.h"

namespace bobbin::compare {
namespace {

// How long no thread may come up, of those that have been started.
constexpr std::chrono::seconds kPatience{10};

class Units {
 public:
  Units(const Trial& trial, UnitBody body) : trial_(trial), body_(body), measurement_(trial) {}

  absl::StatusOr<Figures> Measure(Crew& crew) {
    not_ready_.Add(static_cast<int64_t>(trial_.concurrency));
    BOBBIN_RETURN_IF_ERROR(crew.Start("starter", [this, &crew] { StartAll(crew); }));
    AwaitReady();
    if (!measurement_.is_stopped()) measurement_.Begin();
    go_.Set();
    crew.Join();

    MutexLock lock(mutex_);
    BOBBIN_RETURN_IF_ERROR(failure_);
    return measurement_.Summarise();
  }

 private:
  void StartAll(Crew& crew) {
    measurement_.NoteBeforeUnits();
    for (size_t unit = 0; unit < trial_.concurrency; ++unit) {
      if (crew.Start("unit", [this, unit] { RunUnit(unit); }).ok()) continue;
      Fail(ThreadsRanOut(unit));
      for (; unit < trial_.concurrency; ++unit) not_ready_.Done();
    }
  }

  // Waits until all units are there, or no more of them come: a virtual thread may have been
  // started and wait for a stack for which there is no room.
  void AwaitReady() {
    int64_t missing = not_ready_.count();
    while (!not_ready_.WaitUntil(Deadline::After(kPatience)).ok()) {
      const int64_t still_missing = not_ready_.count();
      if (still_missing == missing) {
        return Fail(ThreadsRanOut(trial_.concurrency - static_cast<size_t>(missing)));
      }
      missing = still_missing;
    }
  }

  void RunUnit(size_t unit) {
    not_ready_.Done();
    if (!go_.Wait().ok() || measurement_.is_stopped()) return;
    Fail(body_(unit, measurement_));
  }

  // Ends the trial, unless `status` is OK.
  void Fail(const absl::Status& status) {
    if (status.ok()) return;
    MutexLock lock(mutex_);
    failure_.Update(status);
    measurement_.Stop();
  }

  const Trial& trial_;
  const UnitBody body_;
  Measurement measurement_;
  WaitGroup not_ready_;
  Event go_;

  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<Figures> MeasureUnits(const Trial& trial, UnitBody body) {
  BOBBIN_ASSIGN_OR_RETURN(const std::unique_ptr<Crew> crew, MakeCrew(trial.kind));
  return MeasureUnits(trial, *crew, body);
}

absl::StatusOr<Figures> MeasureUnits(const Trial& trial, Crew& crew, UnitBody body) {
  return Units(trial, body).Measure(crew);
}

absl::Status ThreadsRanOut(size_t started) {
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    fmt::format("threads ran out at {}", Grouped(started)));
}

}  // namespace bobbin::compare
