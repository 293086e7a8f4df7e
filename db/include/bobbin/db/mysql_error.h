// SPDX-License-Identifier: Apache-2.0
//
// MySqlError: what a MySQL or MariaDB server says about a statement that has failed.
//
// Every status of this module that comes from the server, or from its client library, carries it.
// The code of the status is made of `number` and of the class of `sqlstate`: 1062 is
// ALREADY_EXISTS, the rest of 23 FAILED_PRECONDITION; 1213, 1205 and the rest of 40 are ABORTED; 22
// and 42 are INVALID_ARGUMENT (a table, column or database that is missing NOT_FOUND, one that is
// there ALREADY_EXISTS, a right that is missing PERMISSION_DENIED); 08 and numbers of the client
// library UNAVAILABLE; 1040 and what else is full RESOURCE_EXHAUSTED; 28 UNAUTHENTICATED; 25 and 45
// FAILED_PRECONDITION; 0A UNIMPLEMENTED; 1317, without a request of bobbin's own, CANCELLED; others
// INTERNAL.
//
//   Called from   any thread.
//   Suspends      never.
//
// Example:
//   const auto error = bobbin::db::MySqlErrorOf(status);
//   if (error && error->constraint == "account_owner_key") return TakenName(owner);

#ifndef BOBBIN_DB_MYSQL_ERROR_H_
#define BOBBIN_DB_MYSQL_ERROR_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace bobbin::db {

struct MySqlError {
  // Such as 1062; from 2000 to 2999, and from 5000 on, those of the client library.
  unsigned number = 0;
  // Five characters, such as 23000.
  std::string sqlstate = {};
  std::string message = {};
  // The key, foreign key or check that refused the row, where the message names one.
  std::string constraint = {};
};

// What the server said; nothing, if the status does not come from one.
std::optional<MySqlError> MySqlErrorOf(const absl::Status& status);

// Whether the transaction was rolled back for the sake of others, and may succeed when it is tried
// again: it was chosen to end a deadlock, or has waited too long for a lock.
bool IsMySqlConflict(const absl::Status& status);

}  // namespace bobbin::db

#endif  // BOBBIN_DB_MYSQL_ERROR_H_
