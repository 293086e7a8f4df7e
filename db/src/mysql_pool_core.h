// SPDX-License-Identifier: Apache-2.0
//
// MySqlPoolCore: a pool of connections to a MySQL server.
//
//   Called from, and all the rest: as ConnectionPool. The end of a lease suspends while a session
//   is reset.

#ifndef BOBBIN_DB_SRC_MYSQL_POOL_CORE_H_
#define BOBBIN_DB_SRC_MYSQL_POOL_CORE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/mysql_pool.h>

#include "db/src/connection_pool.h"
#include "db/src/mysql_connection.h"

namespace bobbin::db::internal {

// Holds a connection.
class MySqlLease {
 public:
  explicit MySqlLease(PoolLease lease)
      : lease_(std::move(lease)),
        connection_(&static_cast<MySqlConnection&>(lease_.connection())) {}
  MySqlLease(MySqlLease&& other) noexcept
      : lease_(std::move(other.lease_)), connection_(std::exchange(other.connection_, nullptr)) {}
  MySqlLease& operator=(MySqlLease&&) = delete;
  ~MySqlLease() {
    if (connection_ != nullptr) connection_->EndUse();
  }

  MySqlConnection& connection() const { return *connection_; }

 private:
  PoolLease lease_;
  MySqlConnection* connection_;
};

class MySqlPoolCore {
 public:
  explicit MySqlPoolCore(MySqlPoolOptions options);

  absl::StatusOr<MySqlLease> Acquire();
  absl::Status Close() { return pool_.Close(); }
  PoolStatistics Statistics() const { return pool_.Statistics(); }

 private:
  const MySqlServer server_;
  ConnectionPool pool_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_POOL_CORE_H_
