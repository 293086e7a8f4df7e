// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_cancel.h"

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/db/row.h>

#include "db/src/mysql_text_query.h"

namespace bobbin::db::internal {

absl::StatusOr<std::string> IdentityOf(MYSQL& handle, unsigned long id) {
  BOBBIN_ASSIGN_OR_RETURN(
      const Rows rows,
      AskMySql(handle, fmt::format("select concat_ws('/', @@hostname, @@port, @@server_id, "
                                   "@@version, user, host) from information_schema.processlist "
                                   "where id = {}",
                                   id)));
  return rows.Only<std::string>();
}

absl::Status KillMySqlQuery(const MySqlServer& server, const MySqlThread& thread) {
  BOBBIN_ASSIGN_OR_RETURN(const MySqlLink link, ConnectMySql(server, thread.place));
  BOBBIN_ASSIGN_OR_RETURN(const std::string identity, IdentityOf(*link.handle, thread.id));
  if (identity != thread.identity) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      fmt::format("kill mysql query: the server is \"{}\", not \"{}\"", identity,
                                  thread.identity));
  }
  return AskMySql(*link.handle, fmt::format("kill query {}", thread.id)).status();
}

}  // namespace bobbin::db::internal
