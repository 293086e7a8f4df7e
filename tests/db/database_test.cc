// SPDX-License-Identifier: Apache-2.0
//
// Code that does not know which database it has.

#include <functional>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/db/database.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/db/sqlite.h>

#include "tests/db/database_checks.h"
#include "tests/db/pg_test.h"

namespace bobbin::db {
namespace {

using test::StatusIs;

// Calls `body` with an empty database of each kind.
void OnEach(const std::function<void(Database&)>& body) {
  {
    SCOPED_TRACE("sqlite");
    absl::StatusOr<Sqlite> sqlite = Sqlite::Open({.path = ":memory:"});
    ASSERT_OK(sqlite);
    body(*sqlite);
  }
  {
    SCOPED_TRACE("postgres");
    const test::Schema schema;
    PgPool pool = schema.Open();
    body(pool);
  }
}

BOBBIN_IO_TEST(DatabaseTest, StatementsTransactionsAndErrorsAreTheSame) {
  OnEach(test::CheckStatements);
}

BOBBIN_IO_TEST(DatabaseTest, HooksAreCalledAfterTheEnd) { OnEach(test::CheckHooks); }

BOBBIN_IO_TEST(DatabaseTest, ValuesComeBackAsTheyWere) { OnEach(test::CheckValues); }

BOBBIN_IO_TEST(DatabaseTest, ArraysAreRefusedWhereThereAreNone) {
  absl::StatusOr<Sqlite> sqlite = Sqlite::Open({.path = ":memory:"});
  ASSERT_OK(sqlite);
  EXPECT_THAT(sqlite->Query("select $1", std::vector<int>{1}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(sqlite->Query("select $3", 1).status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace bobbin::db
