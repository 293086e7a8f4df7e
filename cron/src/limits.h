// SPDX-License-Identifier: Apache-2.0
//
// Limits: the bounds of cron, each with its reason.

#ifndef BOBBIN_CRON_SRC_LIMITS_H_
#define BOBBIN_CRON_SRC_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace bobbin::cron::internal {

// More moments on a day than this are not listed one by one in a description.
inline constexpr int kTimesListedMax = 4;

// So many names are proposed in the place of a time zone that does not exist.
inline constexpr size_t kNearNamesMax = 3;

// The longest name of the database has some 30 bytes. For what is longer, none is proposed.
inline constexpr size_t kZoneNameBytesMax = 64;

// More due times than this, slept through by one job, are not counted one by one: that takes half a
// millisecond.
inline constexpr int64_t kDueTimesCountedMax = 10'000;

// So long a run waits at its end for a store to take its lease back, which ends by itself anyway.
inline constexpr std::chrono::seconds kReleaseMax(5);

// A wall clock that is put back by more was wrong before.
inline constexpr absl::Duration kSetBackMax = absl::Hours(24);

}  // namespace bobbin::cron::internal

#endif  // BOBBIN_CRON_SRC_LIMITS_H_
