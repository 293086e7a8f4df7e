// SPDX-License-Identifier: Apache-2.0
//
// Code that does not know that its database is MySQL.

#include "gtest/gtest.h"

#include <bobbin/db/mysql_pool.h>

#include "tests/db/database_checks.h"
#include "tests/db/mysql_test.h"

namespace bobbin::db {
namespace {

void OnMySql(void (*check)(Database&)) {
  const test::MySqlDatabase database;
  MySqlPool pool = database.Open();
  check(pool);
}

BOBBIN_IO_TEST(MySqlDatabaseTest, StatementsTransactionsAndErrorsAreTheSame) {
  OnMySql(test::CheckStatements);
}

BOBBIN_IO_TEST(MySqlDatabaseTest, HooksAreCalledAfterTheEnd) { OnMySql(test::CheckHooks); }

BOBBIN_IO_TEST(MySqlDatabaseTest, ValuesComeBackAsTheyWere) { OnMySql(test::CheckValues); }

}  // namespace
}  // namespace bobbin::db
