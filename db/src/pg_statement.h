// SPDX-License-Identifier: Apache-2.0
//
// PgStatement: one statement of a pipeline.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_DB_SRC_PG_STATEMENT_H_
#define BOBBIN_DB_SRC_PG_STATEMENT_H_

#include <string>

#include "absl/status/statusor.h"

#include "db/src/pg_params.h"

namespace bobbin::db::internal {

struct PgStatement {
  std::string sql;
  absl::StatusOr<PgParams> params;  // Or why they cannot be sent.
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_STATEMENT_H_
