// SPDX-License-Identifier: Apache-2.0
//
// CheckStatements and others: what code relies on that does not know which database it has. Each
// wants an empty one.
//
//   Called from   threads that may wait, next to a runtime with an I/O poller.

#ifndef BOBBIN_TESTS_DB_DATABASE_CHECKS_H_
#define BOBBIN_TESTS_DB_DATABASE_CHECKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/db/database.h>

#include "tests/support/bobbin_test.h"

namespace bobbin::test {

inline void CheckStatements(db::Database& database) {
  ASSERT_OK(database.ExecuteScript("create table account(id integer primary key, cents integer)"));
  EXPECT_THAT(database.Execute("insert into account values ($1, $2)", 1, 100), IsOkAndHolds(1));
  EXPECT_THAT(database.Execute("insert into account values ($2, $1)", 50, 2), IsOkAndHolds(1));
  EXPECT_THAT(database.Execute("insert into account values ($1, $1)", 1).status(),
              StatusIs(absl::StatusCode::kAlreadyExists));
  const absl::StatusOr<int64_t> moved = database.Transact([](db::Transaction& transaction)
                                                              -> absl::StatusOr<int64_t> {
    BOBBIN_RETURN_IF_ERROR(
        transaction.Execute("update account set cents = cents - $2 where id = $1", 1, 30).status());
    return transaction.Execute("update account set cents = cents + $2 where id = $1", 2, 30);
  });
  EXPECT_THAT(moved, IsOkAndHolds(1));
  EXPECT_THAT(database.Transact([](db::Transaction& transaction) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(transaction.Execute("delete from account").status());
    return absl::DataLossError("no");
  }),
              StatusIs(absl::StatusCode::kDataLoss));
  auto rows = database.Query("select id, cents from account where cents > $1 order by id", 10);
  ASSERT_OK(rows);
  std::vector<int64_t> cents;
  for (auto [id, each] : rows->As<int, int64_t>()) cents.push_back(each);
  EXPECT_THAT(cents, testing::ElementsAre(70, 80));
  EXPECT_OK(database.Close());
  EXPECT_THAT(database.Query("select 1").status(), StatusIs(kUnavailable));
}

inline void CheckHooks(db::Database& database) {
  std::vector<std::string> calls;
  const auto run = [&](absl::Status end) {
    return database.Transact([&](db::Transaction& transaction) {
      transaction.AfterCommit([&] { calls.push_back("commit"); });
      transaction.AfterRollback([&] { calls.push_back("rollback"); });
      return end;
    });
  };
  EXPECT_OK(run(absl::OkStatus()));
  EXPECT_THAT(run(absl::AbortedError("no")), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(calls, testing::ElementsAre("commit", "rollback"));
}

inline void CheckValues(db::Database& database) {
  // SQLite keeps what it is given, whatever the column is called.
  ASSERT_OK(database.ExecuteScript("create table v(i bigint, r double precision, x text, t text)"));
  const absl::Time time = absl::FromUnixMicros(1'700'000'000'123'456);
  const absl::CivilDay day(2024, 2, 29);
  const db::Uuid uuid = db::Uuid::Parse("0f8fad5b-d9cb-469f-a165-70867728950e").value();
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(database.Execute("delete from v"));
    ASSERT_OK(database.Execute("insert into v values ($1, $2, $3, $4)", 7, 0.1, "text", time));
    ASSERT_OK(database.Execute("insert into v values ($1, $2, $3, $4)", std::optional<int>(), 1e300,
                               uuid, day));
    auto rows = database.Query("select * from v order by r");
    ASSERT_OK(rows);
    ASSERT_EQ(rows->size(), 2U);
    EXPECT_THAT((*rows)[0].Get<int>(0), IsOkAndHolds(7));
    EXPECT_THAT((*rows)[0].Get<double>(1), IsOkAndHolds(0.1));
    EXPECT_THAT((*rows)[0].Get<std::string>(2), IsOkAndHolds("text"));
    EXPECT_THAT((*rows)[0].Get<absl::Time>(3), IsOkAndHolds(time));
    EXPECT_THAT((*rows)[1].Get<std::optional<int>>(0), IsOkAndHolds(std::nullopt));
    EXPECT_THAT((*rows)[1].Get<db::Uuid>(2), IsOkAndHolds(uuid));
    EXPECT_THAT((*rows)[1].Get<absl::CivilDay>(3), IsOkAndHolds(day));
    EXPECT_THAT((*rows)[0].Get<absl::Time>(2).status(), StatusIs(kFailedPrecondition));
  }
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_DATABASE_CHECKS_H_
