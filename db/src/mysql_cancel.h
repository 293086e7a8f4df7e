// SPDX-License-Identifier: Apache-2.0
//
// KillMySqlQuery: has a MySQL server end the statement that runs on a connection.
//
// It says so on a connection of its own. Threads of a server have numbers, and another server has
// the same ones: so the request goes to the same address, and only if the server that answers there
// says the same of itself, and of where the one that has the number comes from: after a restart it
// is somebody else's.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      until the server has told the thread that runs the statement.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED; whether the statement ends is then unknown.
//   Errors        as ConnectMySql, and those of the server. FAILED_PRECONDITION: it is another one.
//                 NOT_FOUND: there is no such thread any more.

#ifndef BOBBIN_DB_SRC_MYSQL_CANCEL_H_
#define BOBBIN_DB_SRC_MYSQL_CANCEL_H_

#include <mysql.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/mysql_server.h>

#include "db/src/mysql_link.h"

namespace bobbin::db::internal {

struct MySqlThread {
  MySqlPlace place;
  unsigned long id = 0;
  std::string identity;  // What the server there says of it and of itself.
};

// Asks the server at the other end of `handle`, of its thread `id`.
absl::StatusOr<std::string> IdentityOf(MYSQL& handle, unsigned long id);

absl::Status KillMySqlQuery(const MySqlServer& server, const MySqlThread& thread);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_CANCEL_H_
