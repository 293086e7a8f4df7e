// SPDX-License-Identifier: Apache-2.0
//
// AskDatabase: what a thread of a trial does with a database server, whichever it is.
//
// It reads one row that needs no table, or one time in eight ten rows of three columns: what is
// compared is how threads wait for a server, not the server.
//
//   Called from   a unit of a trial.
//   Suspends      while it waits for a connection, and for the server.

#ifndef BOBBIN_BENCH_COMPARE_SQL_UNITS_H_
#define BOBBIN_BENCH_COMPARE_SQL_UNITS_H_

#include <cstddef>

#include "absl/status/status.h"

#include <bobbin/db/database.h>

#include "bench/compare/measurement.h"

namespace bobbin::compare {

// The two statements, as this database says them.
struct Questions {
  db::Sql one_row;
  db::Sql ten_rows;
};

absl::Status AskDatabase(db::Database& database, const Questions& questions, size_t unit,
                         Measurement& measurement);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_SQL_UNITS_H_
