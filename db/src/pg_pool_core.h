// SPDX-License-Identifier: Apache-2.0
//
// PgPoolCore: a pool of connections to a PostgreSQL server.
//
//   Called from, and all the rest: as ConnectionPool.

#ifndef BOBBIN_DB_SRC_PG_POOL_CORE_H_
#define BOBBIN_DB_SRC_PG_POOL_CORE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/pg_pool.h>

#include "db/src/connection_pool.h"
#include "db/src/pg_connection.h"

namespace bobbin::db::internal {

// Holds a connection.
class PgLease {
 public:
  PgLease() = default;
  explicit PgLease(PoolLease lease) : lease_(std::move(lease)) {}

  PgConnection& connection() const { return static_cast<PgConnection&>(lease_.connection()); }

 private:
  PoolLease lease_;
};

class PgPoolCore {
 public:
  explicit PgPoolCore(PgPoolOptions options);

  absl::StatusOr<PgLease> Acquire();
  absl::Status Close() { return pool_.Close(); }
  PoolStatistics Statistics() const { return pool_.Statistics(); }

 private:
  const PgServer server_;
  ConnectionPool pool_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_POOL_CORE_H_
