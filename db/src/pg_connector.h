// SPDX-License-Identifier: Apache-2.0
//
// ConnectPg: a new connection to a PostgreSQL server.
//
// Each step of libpq's runs on a platform thread, because there is more in it than can be told:
// files of passwords and certificates, a handshake's arithmetic, a ticket server. Between two steps
// the calling thread waits for the socket, which is another one whenever libpq goes on to the next
// address. Names are looked up before, and libpq is given numbers: one entry for each address, with
// its name beside it, which certificates and passwords are for.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      until the server is ready, or has refused.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED; nothing is left of the connection.
//   Errors        INVALID_ARGUMENT: the conninfo. UNAVAILABLE: nobody answers, or not in time. Of
//                 names that are not known: as io::Resolver.
//                 Others: what the server said; see pg_error.h.
//   Cost          some ten round trips to a platform thread, beside the server's start of a
//                 process.

#ifndef BOBBIN_DB_SRC_PG_CONNECTOR_H_
#define BOBBIN_DB_SRC_PG_CONNECTOR_H_

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include <bobbin/db/pg_server.h>

namespace bobbin::db::internal {

struct FinishConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using PgHandle = std::unique_ptr<PGconn, FinishConnection>;

struct PgLink {
  PgHandle handle;
  // What a request to end a statement is signed with. Nothing: the server takes no such requests.
  std::optional<int32_t> cancel_key;
};

absl::StatusOr<PgLink> ConnectPg(const PgServer& server);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_CONNECTOR_H_
