// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_pool_core.h"

#include <bobbin/core/status.h>

namespace bobbin::db::internal {

using bobbin::internal::WaitObject;

namespace {

constexpr ConnectionPoolKind kPostgres = {
    .database = "postgres",
    .connection_wait = {"postgres connection", WaitObject::kAddress},
    .return_wait = {"postgres connections' return", WaitObject::kAddress},
    .keeper_wait = {"postgres idle connections", WaitObject::kAddress}};

ConnectionPoolOptions OptionsOf(const PgPoolOptions& options) {
  return {.connections_max = options.connections_max,
          .waiters_max = options.waiters_max,
          .acquire_wait_max = options.acquire_wait_max,
          .lifetime_max = options.lifetime_max,
          .idle_max = options.idle_max};
}

}  // namespace

PgPoolCore::PgPoolCore(PgPoolOptions options)
    : server_(std::move(options.server)),
      pool_(kPostgres, OptionsOf(options), [this] { return PgConnection::Open(server_); }) {}

absl::StatusOr<PgLease> PgPoolCore::Acquire() {
  BOBBIN_ASSIGN_OR_RETURN(PoolLease lease, pool_.Acquire());
  return PgLease(std::move(lease));
}

}  // namespace bobbin::db::internal
