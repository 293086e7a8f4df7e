// SPDX-License-Identifier: Apache-2.0
//
// MySqlRows: the results of libmariadb, as rows.
//
//   Called from   any thread; one at a time.
//   Suspends      never.
//   Cost          a pass over the values, which are copied twice.

#ifndef BOBBIN_DB_SRC_MYSQL_RESULT_H_
#define BOBBIN_DB_SRC_MYSQL_RESULT_H_

#include <mysql.h>

#include "absl/status/statusor.h"

#include <bobbin/db/row.h>

namespace bobbin::db::internal {

// Of a prepared statement. REQUIRES: the statement has STMT_ATTR_UPDATE_MAX_LENGTH, was executed,
// and its result is stored.
absl::StatusOr<Rows> RowsOf(MYSQL_STMT& statement);
// Of a statement that was sent as a text.
Rows RowsOf(MYSQL_RES& result);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_RESULT_H_
