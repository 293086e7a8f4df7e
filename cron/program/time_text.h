// SPDX-License-Identifier: Apache-2.0
//
// Time text: instants as people write them, and as programs read them.
//
//   Called from   any thread.

#ifndef BOBBIN_CRON_PROGRAM_TIME_TEXT_H_
#define BOBBIN_CRON_PROGRAM_TIME_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bobbin::cron::program {

// "now"; ISO 8601 with an offset, 2026-11-30T02:30:00+01:00 or ...Z; or without one, and then in
// `zone`, down to a second, a minute or a day. A blank may stand for the T.
absl::StatusOr<absl::Time> ParseInstant(std::string_view text, absl::TimeZone zone);

// 2026-11-30T02:30:00+01:00
std::string FormatInstant(absl::Time time, absl::TimeZone zone);

}  // namespace bobbin::cron::program

#endif  // BOBBIN_CRON_PROGRAM_TIME_TEXT_H_
