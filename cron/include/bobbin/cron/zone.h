// SPDX-License-Identifier: Apache-2.0
//
// FindZone: the time zone that a text names.
//
//   ""  "UTC"  "Z"  "GMT"     UTC
//   "+05:30"  "-03:00"        a fixed offset, up to 18:59
//   "Europe/Berlin"           what the host's database has
//
// The names are those of the database in /usr/share/zoneinfo, or in $TZDIR, and are told apart by
// case. A name that it does not have is an error with those that are most like it: to be called
// when a program starts, not when a job is due.
//
//   Called from   any thread.
//   Suspends      a virtual thread, while a platform thread reads the database.
//   Cancellation  as RunBlocking.
//   Errors        INVALID_ARGUMENT: no such zone. As RunBlocking.
//   Cost          for a name one file, read once in the life of the process.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(absl::TimeZone zone, bobbin::cron::FindZone(config.zone));

#ifndef BOBBIN_CRON_ZONE_H_
#define BOBBIN_CRON_ZONE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bobbin::cron {

absl::StatusOr<absl::TimeZone> FindZone(std::string_view text);

}  // namespace bobbin::cron

#endif  // BOBBIN_CRON_ZONE_H_
