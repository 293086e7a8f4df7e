// SPDX-License-Identifier: Apache-2.0
//
// PgResult: a result of libpq, as rows, a count, or an error.
//
//   Called from   any thread; one at a time.
//   Suspends      never.
//   Cost          Rows: a pass over the values.

#ifndef BOBBIN_DB_SRC_PG_RESULT_H_
#define BOBBIN_DB_SRC_PG_RESULT_H_

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/container/inlined_vector.h"

#include <bobbin/db/pg_error.h>
#include <bobbin/db/row.h>

#include "db/src/rows_builder.h"

namespace bobbin::db::internal {

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PgResult = std::unique_ptr<PGresult, ClearResult>;

inline bool IsCopy(ExecStatusType kind) {
  return kind == PGRES_COPY_IN || kind == PGRES_COPY_OUT || kind == PGRES_COPY_BOTH;
}

// Collects the rows of results of the same shape.
class PgRows {
 public:
  void Add(const PGresult& result);
  size_t size() const { return count_; }
  size_t bytes() const { return rows_.bytes(); }
  Rows Build() && { return std::move(rows_).Build(); }

 private:
  struct Column {
    CellKind kind = CellKind::kText;
    CellKind element_kind = CellKind::kNull;
  };
  static Column ColumnOf(Oid type);
  void AddColumns(const PGresult& result);
  void AddValue(const Column& column, std::string_view text);

  RowsBuilder rows_;
  absl::InlinedVector<Column, 16> columns_;
  bool has_columns_ = false;
  size_t count_ = 0;
  std::string storage_;
};

// How many rows the statement has changed; 0 for one that changes none.
int64_t ChangesOf(const PGresult& result);
// REQUIRES: it is an error or a notice.
PgError ErrorOf(const PGresult& result);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_RESULT_H_
