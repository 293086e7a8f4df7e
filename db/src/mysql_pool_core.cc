// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_pool_core.h"

#include <bobbin/core/status.h>

namespace bobbin::db::internal {

using bobbin::internal::WaitObject;

namespace {

constexpr ConnectionPoolKind kMySql = {
    .database = "mysql",
    .connection_wait = {"mysql connection", WaitObject::kAddress},
    .return_wait = {"mysql connections' return", WaitObject::kAddress},
    .keeper_wait = {"mysql idle connections", WaitObject::kAddress}};

ConnectionPoolOptions PoolOptionsOf(const MySqlPoolOptions& options) {
  return {.connections_max = options.connections_max,
          .waiters_max = options.waiters_max,
          .acquire_wait_max = options.acquire_wait_max,
          .lifetime_max = options.lifetime_max,
          .idle_max = options.idle_max};
}

}  // namespace

MySqlPoolCore::MySqlPoolCore(MySqlPoolOptions options)
    : server_(std::move(options.server)),
      pool_(kMySql, PoolOptionsOf(options), [this] { return MySqlConnection::Open(server_); }) {}

absl::StatusOr<MySqlLease> MySqlPoolCore::Acquire() {
  BOBBIN_ASSIGN_OR_RETURN(PoolLease lease, pool_.Acquire());
  return MySqlLease(std::move(lease));
}

}  // namespace bobbin::db::internal
