// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>

#include <bobbin/core/status.h>
#include <bobbin/db/pg_pool.h>

#include "bench/compare/service.h"
#include "bench/compare/sql_units.h"
#include "bench/compare/units.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

constexpr size_t kConnections = 8;

absl::StatusOr<Figures> Run(const Trial& trial) {
  const char* const conninfo = std::getenv(kPostgresVariable);
  BOBBIN_ASSIGN_OR_RETURN(db::PgPool pool,
                          db::PgPool::Open({.server = {.conninfo = conninfo ? conninfo : ""},
                                            .connections_max = kConnections}));
  const Questions questions = {
      .one_row = "select 1",
      .ten_rows = "select i, i * 2.5::float8, 'row number ' || i from generate_series(1, 10) i"};
  return MeasureUnits(trial, [&](size_t unit, Measurement& measurement) {
    return AskDatabase(pool, questions, unit, measurement);
  });
}

absl::StatusOr<std::unique_ptr<Service>> Serve() {
  return Service::Start({.variable = kPostgresVariable, .script = BOBBIN_POSTGRES_SERVICE});
}

}  // namespace

const Workload kPostgresWorkload = {
    .name = "postgres",
    .title = "every thread asks PostgreSQL for one row, or one time in eight for ten",
    .latency = "that of both, with the wait for one of 8 connections",
    .concurrency_max = 1000,
    .run = Run,
    .serve = Serve,
};

}  // namespace bobbin::compare
