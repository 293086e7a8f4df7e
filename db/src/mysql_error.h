// SPDX-License-Identifier: Apache-2.0
//
// MySqlStatus: what a MySQL server or its client library reports, as a status.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_MYSQL_ERROR_H_
#define BOBBIN_DB_SRC_MYSQL_ERROR_H_

#include <mysql.h>

#include <string_view>

#include "absl/status/status.h"

#include <bobbin/db/mysql_error.h>

namespace bobbin::db::internal {

// Numbers of errors, as the server's manual has them.
inline constexpr unsigned kMySqlLockWait = 1205;
inline constexpr unsigned kMySqlDeadlock = 1213;
inline constexpr unsigned kMySqlUnknownStatement = 1243;
inline constexpr unsigned kMySqlNotPreparable = 1295;
inline constexpr unsigned kMySqlInterrupted = 1317;
inline constexpr unsigned kMySqlToBePrepared = 1615;

// The canonical code of an error.
absl::StatusCode CanonicalCodeOf(const MySqlError& error);

// Whether the connection is of no use after it.
bool EndsConnection(const MySqlError& error);

// The last error of a handle, and of a statement.
MySqlError ErrorOf(MYSQL& handle);
MySqlError ErrorOf(MYSQL_STMT& statement);

// The status for it: "<operation>: <message> (error <number>, sqlstate <sqlstate>)".
absl::Status MySqlStatus(const MySqlError& error, std::string_view operation);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_ERROR_H_
