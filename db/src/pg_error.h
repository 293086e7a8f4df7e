// SPDX-License-Identifier: Apache-2.0
//
// PgStatus: what a PostgreSQL server reports, as a status.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_PG_ERROR_H_
#define BOBBIN_DB_SRC_PG_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

#include <bobbin/db/pg_error.h>

namespace bobbin::db::internal {

inline constexpr std::string_view kInvalidPassword = "28P01";
inline constexpr std::string_view kQueryCanceled = "57014";

// The canonical code for `sqlstate`.
absl::StatusCode CanonicalCodeOf(std::string_view sqlstate);

// The status for it: "<operation>: <message> (sqlstate <sqlstate>)".
absl::Status PgStatus(const PgError& error, std::string_view operation);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_ERROR_H_
