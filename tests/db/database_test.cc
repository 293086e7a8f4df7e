// SPDX-License-Identifier: Apache-2.0
//
// Code that does not know which database it has.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/db/database.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/db/sqlite.h>

#include "tests/db/pg_test.h"

namespace bobbin::db {
namespace {

using test::IsOkAndHolds;
using test::StatusIs;
using testing::ElementsAre;

constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;

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
  OnEach([](Database& db) {
    ASSERT_OK(db.ExecuteScript("create table account(id integer primary key, cents integer)"));
    EXPECT_THAT(db.Execute("insert into account values ($1, $2)", 1, 100), IsOkAndHolds(1));
    EXPECT_THAT(db.Execute("insert into account values ($2, $1)", 50, 2), IsOkAndHolds(1));
    EXPECT_THAT(db.Execute("insert into account values ($1, $1)", 1).status(),
                StatusIs(kAlreadyExists));
    const absl::StatusOr<int64_t> moved =
        db.Transact([](Transaction& transaction) -> absl::StatusOr<int64_t> {
          BOBBIN_RETURN_IF_ERROR(
              transaction.Execute("update account set cents = cents - $2 where id = $1", 1, 30)
                  .status());
          return transaction.Execute("update account set cents = cents + $2 where id = $1", 2, 30);
        });
    EXPECT_THAT(moved, IsOkAndHolds(1));
    EXPECT_THAT(db.Transact([](Transaction& transaction) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(transaction.Execute("delete from account").status());
      return absl::DataLossError("no");
    }),
                StatusIs(absl::StatusCode::kDataLoss));
    auto rows = db.Query("select id, cents from account where cents > $1 order by id", 10);
    ASSERT_OK(rows);
    std::vector<int64_t> cents;
    for (auto [id, each] : rows->As<int, int64_t>()) cents.push_back(each);
    EXPECT_THAT(cents, ElementsAre(70, 80));
    EXPECT_OK(db.Close());
    EXPECT_THAT(db.Query("select 1").status(), StatusIs(test::kUnavailable));
  });
}

BOBBIN_IO_TEST(DatabaseTest, HooksAreCalledAfterTheEnd) {
  OnEach([](Database& db) {
    std::vector<std::string> calls;
    const auto run = [&](absl::Status end) {
      return db.Transact([&](Transaction& transaction) {
        transaction.AfterCommit([&] { calls.push_back("commit"); });
        transaction.AfterRollback([&] { calls.push_back("rollback"); });
        return end;
      });
    };
    EXPECT_OK(run(absl::OkStatus()));
    EXPECT_THAT(run(absl::AbortedError("no")), StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT(calls, ElementsAre("commit", "rollback"));
  });
}

BOBBIN_IO_TEST(DatabaseTest, ValuesComeBackAsTheyWere) {
  OnEach([](Database& db) {
    // SQLite keeps what it is given, whatever the column is called.
    ASSERT_OK(db.ExecuteScript("create table v(i bigint, r double precision, x text, t text)"));
    const absl::Time time = absl::FromUnixMicros(1'700'000'000'123'456);
    const absl::CivilDay day(2024, 2, 29);
    const Uuid uuid = Uuid::Parse("0f8fad5b-d9cb-469f-a165-70867728950e").value();
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK(db.Execute("delete from v"));
      ASSERT_OK(db.Execute("insert into v values ($1, $2, $3, $4)", 7, 0.1, "text", time));
      ASSERT_OK(db.Execute("insert into v values ($1, $2, $3, $4)", std::optional<int>(), 1e300,
                           uuid, day));
      auto rows = db.Query("select * from v order by r");
      ASSERT_OK(rows);
      ASSERT_EQ(rows->size(), 2U);
      EXPECT_THAT((*rows)[0].Get<int>(0), IsOkAndHolds(7));
      EXPECT_THAT((*rows)[0].Get<double>(1), IsOkAndHolds(0.1));
      EXPECT_THAT((*rows)[0].Get<std::string>(2), IsOkAndHolds("text"));
      EXPECT_THAT((*rows)[0].Get<absl::Time>(3), IsOkAndHolds(time));
      EXPECT_THAT((*rows)[1].Get<std::optional<int>>(0), IsOkAndHolds(std::nullopt));
      EXPECT_THAT((*rows)[1].Get<Uuid>(2), IsOkAndHolds(uuid));
      EXPECT_THAT((*rows)[1].Get<absl::CivilDay>(3), IsOkAndHolds(day));
      EXPECT_THAT((*rows)[0].Get<absl::Time>(2).status(), StatusIs(test::kFailedPrecondition));
    }
  });
}

BOBBIN_IO_TEST(DatabaseTest, ArraysAreRefusedWhereThereAreNone) {
  absl::StatusOr<Sqlite> sqlite = Sqlite::Open({.path = ":memory:"});
  ASSERT_OK(sqlite);
  EXPECT_THAT(sqlite->Query("select $1", std::vector<int>{1}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(sqlite->Query("select $3", 1).status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace bobbin::db
