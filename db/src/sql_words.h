// SPDX-License-Identifier: Apache-2.0
//
// SqlWords: where the dialects of the databases differ, for tables that this module makes itself.
//
// Times are milliseconds since 1970 by the database's clock. Casts are written `cast(x as bigint)`,
// which all understand.
//
//   Called from   any thread.
//   Suspends      MakeTable, while the database answers.

#ifndef BOBBIN_DB_SRC_SQL_WORDS_H_
#define BOBBIN_DB_SRC_SQL_WORDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/database.h>

namespace bobbin::db::internal {

struct SqlWords {
  std::string_view identity;  // The type of a column whose numbers grow with the rows.
  std::string_view bytes;     // The type of a column of bytes.
  // The clock, at the beginning of the statement.
  std::string_view now;
  // Behind a `select ... from t as m` whose rows are to be updated: passes over those that another
  // transaction has, and keeps the others from it.
  std::string_view skip_locked;
  // A query of the numbers in the value `{}`, which is what Numbers has made.
  std::string_view numbers;
};

// UNIMPLEMENTED for a dialect that has no such words.
absl::StatusOr<const SqlWords*> SqlWordsFor(Dialect dialect, std::string_view operation);

// Some numbers as one value.
std::string Numbers(std::span<const int64_t> numbers);

// Whether `name` is made of letters, digits and underscores, with at most one point.
bool IsTableName(std::string_view name);
// The same without a point.
bool IsPlainName(std::string_view name);

// Of the table `schema.name`: how its index `name_<suffix>` is created, `name_<suffix> on name`,
// with the schema in its place.
std::string IndexOn(Dialect dialect, std::string_view table, std::string_view suffix);

// Runs `script`, unless `table` is there. Others may do the same at the same time: who is late
// finds it done. REQUIRES: the script makes a table that has a column `id`, and nothing that is
// there already.
absl::Status MakeTableUnlessThere(Database& database, std::string_view table,
                                  std::string_view script);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQL_WORDS_H_
