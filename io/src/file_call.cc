// SPDX-License-Identifier: Apache-2.0

#include "io/src/file_call.h"

#include <cerrno>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/platform_pool.h>

namespace bobbin::io::internal {

using bobbin::internal::Current;
using bobbin::internal::Thread;

namespace {

struct Trip {
  static void Go(void* trip) {
    Trip& self = *static_cast<Trip*>(trip);
    self.has_run = true;
    self.result = self.body(self.call);
  }
  static void Interrupt(void* trip) { static_cast<Trip*>(trip)->call.Interrupt(); }

  FileBody body;
  InterruptibleCall call = {};
  Result result = 0;
  bool has_run = false;
};

// Why it did not run, or OK.
absl::Status Travel(Trip& trip, BlockingLane lane) {
  if (PlatformPool* const pool = bobbin::internal::PoolUnlessMayBlock(lane)) {
    return bobbin::internal::RunAndWait(pool->core(),
                                        {.run = &Trip::Go,
                                         .request_stop = &Trip::Interrupt,
                                         .argument = &trip,
                                         .admission = bobbin::internal::Admission::kAlways});
  }
  Trip::Go(&trip);
  return absl::OkStatus();
}

}  // namespace

absl::Status FileStatus(Result result, const FileOperation& operation) {
  return ResultStatus(result, fmt::format("{} {}", operation.verb, operation.path));
}

absl::StatusOr<size_t> RunFileCall(const FileOperation& operation, FileBody body,
                                   BlockingLane lane) {
  Thread& self = Current();
  self.CheckMayWait();
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  Trip trip{body};
  BOBBIN_RETURN_IF_ERROR(Travel(trip, lane));
  if (trip.result >= 0) return static_cast<size_t>(trip.result);
  if (trip.result == -EINTR && trip.call.is_interrupted()) return self.StopStatus();
  return FileStatus(trip.result, operation);
}

absl::Status RunFileCallAlways(const FileOperation& operation, FileBody body) {
  const CancelShield shield;
  Trip trip{body};
  // Where no thread is left to do it, what must be done is done here.
  Travel(trip, BlockingLane::kGeneral).IgnoreError();
  if (!trip.has_run) Trip::Go(&trip);
  return trip.result < 0 ? FileStatus(trip.result, operation) : absl::OkStatus();
}

}  // namespace bobbin::io::internal
