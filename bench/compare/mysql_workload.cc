// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>

#include <bobbin/core/status.h>
#include <bobbin/db/mysql_pool.h>

#include "bench/compare/service.h"
#include "bench/compare/sql_units.h"
#include "bench/compare/units.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

constexpr size_t kConnections = 8;

absl::StatusOr<Figures> Run(const Trial& trial) {
  const char* const address = std::getenv(kMySqlVariable);
  BOBBIN_ASSIGN_OR_RETURN(db::MySqlServer server, db::MySqlServer::Parse(address ? address : ""));
  BOBBIN_ASSIGN_OR_RETURN(
      db::MySqlPool pool,
      db::MySqlPool::Open({.server = std::move(server), .connections_max = kConnections}));
  const Questions questions = {
      .one_row = "select 1",
      .ten_rows = "with recursive s(i) as (select 1 union all select i + 1 from s where i < 10) "
                  "select i, i * 2.5e0, concat('row number ', i) from s"};
  return MeasureUnits(trial, [&](size_t unit, Measurement& measurement) {
    return AskDatabase(pool, questions, unit, measurement);
  });
}

absl::StatusOr<std::unique_ptr<Service>> Serve() {
  return Service::Start({.variable = kMySqlVariable, .script = BOBBIN_MYSQL_SERVICE});
}

}  // namespace

const Workload kMySqlWorkload = {
    .name = "mysql",
    .title = "every thread asks MariaDB for one row, or one time in eight for ten",
    .latency = "that of both, with the wait for one of 8 connections",
    .concurrency_max = 1000,
    .run = Run,
    .serve = Serve,
};

}  // namespace bobbin::compare
