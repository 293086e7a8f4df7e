// SPDX-License-Identifier: Apache-2.0
//
// SqliteStatus: what SQLite reports, as a status.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_SQLITE_STATUS_H_
#define BOBBIN_DB_SRC_SQLITE_STATUS_H_

#include <string_view>

#include "absl/status/status.h"

namespace bobbin::db::internal {

// The canonical code for `extended_code`, an extended result code; `error_number` is the system's,
// or 0.
absl::StatusCode CanonicalCodeOf(int extended_code, int error_number);

// The status for it: "<operation>: <text> (sqlite <code>)".
absl::Status SqliteStatus(int extended_code, int error_number, std::string_view operation,
                          std::string_view text);

// Whether `extended_code` is of the kind of `primary_code`.
constexpr bool IsOfKind(int extended_code, int primary_code) {
  return (extended_code & 0xff) == primary_code;
}

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQLITE_STATUS_H_
