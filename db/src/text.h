// SPDX-License-Identifier: Apache-2.0
//
// Text: times, dates and numbers as databases read and write them.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_TEXT_H_
#define BOBBIN_DB_SRC_TEXT_H_

#include <string>
#include <string_view>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace bobbin::db::internal {

// `2024-05-01 12:34:56.789012+00`, in UTC and whole microseconds; `infinity`, `-infinity`.
std::string TimeText(absl::Time time);
// `2024-05-01`; a year before 1 as `0044-03-15 BC`.
std::string DayText(absl::CivilDay day);
// So that reading it gives the same number; `NaN`, `Infinity`, `-Infinity`.
std::string RealText(double real);
// A statement's text for messages: its beginning.
std::string ShownSql(std::string_view sql);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_TEXT_H_
