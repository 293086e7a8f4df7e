// SPDX-License-Identifier: Apache-2.0
//
// PgServer: where a PostgreSQL server is, and how one gets along with it.
//
// `conninfo` is a text of libpq's, with all that it knows: an address such as
// "postgresql://app@db1,db2/main?target_session_attrs=read-write", or "host=db dbname=main". What
// is not in it comes from libpq's environment variables (PGHOST and so on), ~/.pgpass, and its
// defaults. Host names are looked up anew for each connection, so that a failover is seen.
//
//   Called from   any thread.
//   Suspends      never.
//
// Example:
//   auto pool = bobbin::db::PgPool::Open({.server = {.conninfo = "host=db user=app dbname=main"}});

#ifndef BOBBIN_DB_PG_SERVER_H_
#define BOBBIN_DB_PG_SERVER_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/functional/any_invocable.h"

#include <bobbin/db/pg_error.h>

namespace bobbin::db {

struct PgServer {
  std::string conninfo = {};
  // For a new connection, from the first name that is looked up to the server's readiness.
  std::chrono::nanoseconds connect_wait_max = std::chrono::seconds(10);
  // How long a server that was asked to end a statement may take before its connection is given up.
  std::chrono::nanoseconds cancel_wait_max = std::chrono::seconds(1);
  // How long a commit and a rollback may take: a caller that is to stop waits for them all the
  // same.
  std::chrono::nanoseconds finish_wait_max = std::chrono::seconds(30);
  // Prepared texts that each connection keeps. 0, if the server is behind a pooler that cannot bear
  // them.
  size_t statements_kept_max = 256;
  // What the server says by the way, such as a function's RAISE NOTICE. Called on the thread whose
  // statement it is, by several at once; must not wait. Null: it is dropped.
  absl::AnyInvocable<void(const PgError& notice) const> on_notice = nullptr;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_SERVER_H_
