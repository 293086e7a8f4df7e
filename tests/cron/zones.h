// SPDX-License-Identifier: Apache-2.0
//
// Zones: time zones, times at which they are hard, and the oracle's view of a schedule.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_CRON_ZONES_H_
#define BOBBIN_TESTS_CRON_ZONES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

#include <bobbin/cron/schedule.h>

#include "tests/support/random.h"

namespace bobbin::test {

// REQUIRES: the host's database has it.
absl::TimeZone ZoneNamed(const std::string& name);

// Every zone of the host's database.
std::vector<std::string> ZoneNames();

// From 1890 to 2110, most often within a day of a change of the clocks, if there is one.
absl::Time TimeNearAChange(Random& random, absl::TimeZone zone);

// The runs from `from` on and before `to`, as the oracle sees them. `text` is the expression's.
std::vector<absl::Time> OracleRuns(const cron::Schedule& schedule, std::string_view text,
                                   absl::Time from, absl::Time to, absl::Duration step);

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_CRON_ZONES_H_
