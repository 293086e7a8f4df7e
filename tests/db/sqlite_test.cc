// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sqlite3.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "db/src/sqlite_connection.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/os_threads.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/thread_probe.h"

namespace bobbin::db {
namespace {

using std::chrono::milliseconds;
using test::AwaitTrue;
using test::IsOkAndHolds;
using test::StatusIs;
using test::ThreadProbe;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

// A statement that runs for longer than any test waits; each of its steps is cheap.
constexpr char kEndless[] =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() /
            ("bobbin-sqlite-" + std::to_string(getpid()) + "-" + std::to_string(++count));
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string File(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

Sqlite MustOpen(SqliteOptions options) {
  absl::StatusOr<Sqlite> db = Sqlite::Open(std::move(options));
  BOBBIN_CHECK(db.ok(), MessageOf(db.status()));
  return *std::move(db);
}

// In a file, without waiting for the disk.
Sqlite OpenIn(const Folder& folder) {
  return MustOpen(
      {.path = folder.File("test.db"), .durability = SqliteDurability::kSinceCheckpoint});
}

std::vector<std::byte> Blob(std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <typename T, typename... Args>
absl::StatusOr<T> Ask(Sqlite& db, Sql sql, const Args&... args) {
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, db.Query(sql, args...));
  return rows.Only<T>();
}

// --- Values.

BOBBIN_TEST(SqliteTest, ValuesComeBackAsTheyWent) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const std::string zero_inside("a\0b", 3);
  const std::vector<std::byte> blob = Blob(std::string_view("\0\xff\x7f", 3));
  ASSERT_OK(db.Execute("create table t(i, r, s, b, n, o, z, u)"));
  EXPECT_THAT(db.Execute("insert into t values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", int64_t{-1} << 62,
                         -0.5, zero_inside, blob, nullptr, std::optional<int>(), true,
                         std::optional<uint32_t>(4'000'000'000)),
              IsOkAndHolds(1));
  const absl::StatusOr<Rows> rows = db.Query("select * from t");
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 1);
  const auto typed = rows->As<int64_t, double, std::string, std::vector<std::byte>,
                              std::optional<int>, std::optional<std::string>, bool, uint32_t>();
  EXPECT_EQ(typed[0], std::make_tuple(int64_t{-1} << 62, -0.5, zero_inside, blob, std::nullopt,
                                      std::nullopt, true, 4'000'000'000));
}

BOBBIN_TEST(SqliteTest, EmptyTextsAndBlobsAreNotNull) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const absl::StatusOr<Rows> rows = db.Query("select typeof(?1), typeof(?2), typeof(?3), ?2, ?3",
                                             "", std::string_view(), std::span<const std::byte>());
  ASSERT_OK(rows);
  const auto [a, b, c, text, blob] =
      rows->As<std::string, std::string, std::string, std::string, std::vector<std::byte>>()[0];
  EXPECT_THAT(std::vector({a, b, c}), ElementsAre("text", "text", "blob"));
  EXPECT_EQ(text, "");
  EXPECT_TRUE(blob.empty());
}

BOBBIN_TEST(SqliteTest, UnicodeIsKept) {
  Sqlite db = MustOpen({.path = ":memory:"});
  constexpr std::string_view kText = "Grüße, 世界, 👩‍🚀, \xF0\x9F\x8E\xB5";
  EXPECT_THAT(Ask<std::string>(db, "select ?1", kText), IsOkAndHolds(std::string(kText)));
  EXPECT_THAT(Ask<int>(db, "select length('世界')"), IsOkAndHolds(2));
}

BOBBIN_TEST(SqliteTest, RowsAreReadInALoop) {
  Sqlite db = MustOpen({.path = ":memory:"});
  ASSERT_OK(db.ExecuteScript(
      "create table account(id integer primary key, owner text not null, cents integer);"
      "insert into account values (1, 'Ada', 500), (2, 'Bob', 2000000), (3, 'Cy', 3000000);"));
  const absl::StatusOr<Rows> rows =
      db.Query("select id, owner from account where cents > ?1 order by id", 1'000'000);
  ASSERT_OK(rows);
  std::string seen;
  for (auto [id, owner] : rows->As<int64_t, std::string>()) seen += std::to_string(id) + owner;
  EXPECT_EQ(seen, "2Bob3Cy");
  for (auto [id, owner] : rows->As<int64_t, std::string_view>()) seen += owner;
  EXPECT_EQ(seen, "2Bob3CyBobCy");
  EXPECT_EQ(rows->column_name(1), "owner");
  EXPECT_THAT(rows->ColumnIndex("owner"), IsOkAndHolds(1));
  EXPECT_THAT(rows->ColumnIndex("address"), StatusIs(kNotFound));
}

BOBBIN_TEST(SqliteTest, AValueOfAnotherTypeIsAnErrorThatNamesItsPlace) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const absl::StatusOr<Rows> rows =
      db.Query("select 1 as id, 'Ada' as owner union all select 2, null");
  ASSERT_OK(rows);
  const auto of_null = rows->TryAs<int64_t, std::string>();
  EXPECT_THAT(of_null, StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(of_null.status().ToString(),
              HasSubstr("read row 2 column 2 \"owner\": it is NULL, but text was asked for"));
  const auto of_type = rows->TryAs<int64_t, std::optional<int>>();
  EXPECT_THAT(of_type, StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(of_type.status().ToString(), HasSubstr("it is text, but an integer was asked for"));
  EXPECT_OK((rows->TryAs<int64_t, std::optional<std::string>>()));

  EXPECT_THAT((rows->TryAs<int64_t>()), StatusIs(kInvalidArgument));
  EXPECT_THAT((rows->TryAs<int64_t>()).status().ToString(),
              HasSubstr("it has 2 columns, but 1 were asked for"));
  EXPECT_THAT((*rows)[0].Get<std::vector<std::byte>>(1), StatusIs(test::kFailedPrecondition));
  EXPECT_THAT((*rows)[0].Get<std::string>(1), IsOkAndHolds(std::string("Ada")));
  EXPECT_TRUE((*rows)[1].IsNull(1));
}

BOBBIN_TEST(SqliteTest, ANumberThatDoesNotFitIsAnError) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const absl::StatusOr<Rows> rows = db.Query("select 300, -1, 2");
  ASSERT_OK(rows);
  EXPECT_THAT((*rows)[0].Get<uint8_t>(0), StatusIs(test::kOutOfRange));
  EXPECT_THAT((*rows)[0].Get<uint64_t>(1), StatusIs(test::kOutOfRange));
  EXPECT_THAT((*rows)[0].Get<bool>(2), StatusIs(test::kOutOfRange));
  EXPECT_THAT((*rows)[0].Get<double>(0), IsOkAndHolds(300.0));
  EXPECT_THAT(db.Query("select ?1", ~uint64_t{0}), StatusIs(kInvalidArgument));
}

BOBBIN_TEST(SqliteTest, AnyValueCanBeReadAndBoundAgain) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const std::vector<Value> values = {nullptr, int64_t{7}, 2.5, std::string("x"), Blob("y")};
  for (const Value& value : values) {
    EXPECT_THAT(Ask<Value>(db, "select ?1", value), IsOkAndHolds(value));
  }
}

BOBBIN_TEST(SqliteTest, OnlyWantsOneRow) {
  Sqlite db = MustOpen({.path = ":memory:"});
  EXPECT_THAT(Ask<int>(db, "select 1 where false"), StatusIs(kNotFound));
  EXPECT_THAT(Ask<int>(db, "values (1), (2)"), StatusIs(test::kFailedPrecondition));
  const absl::StatusOr<Rows> rows = db.Query("select 1, 'a'");
  ASSERT_OK(rows);
  EXPECT_THAT((rows->Only<int, std::string>()), IsOkAndHolds(std::make_tuple(1, std::string("a"))));
}

BOBBIN_TEST(SqliteTest, ABigResultIsWhole) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const absl::StatusOr<Rows> rows = db.Query(
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1)"
      " select i, hex(zeroblob(20)) from n",
      100'000);
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 100'000);
  int64_t sum = 0;
  for (auto [i, text] : rows->As<int64_t, std::string_view>()) {
    sum += i;
    if (text != std::string_view("0000000000000000000000000000000000000000")) ADD_FAILURE() << i;
  }
  EXPECT_EQ(sum, int64_t{100'000} * 100'001 / 2);
}

BOBBIN_TEST(SqliteTest, AResultAboveItsLimitIsRefused) {
  Sqlite db = MustOpen({.path = ":memory:", .result_bytes_max = 10'000});
  const absl::StatusOr<Rows> rows = db.Query("select zeroblob(20000)");
  EXPECT_THAT(rows, StatusIs(test::kResourceExhausted));
  EXPECT_THAT(rows.status().ToString(), HasSubstr("larger than 10000 bytes"));
  EXPECT_OK(db.Query("select zeroblob(9000)"));
}

// --- Statements.

BOBBIN_TEST(SqliteTest, ExecuteCountsWhatItChanged) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  EXPECT_THAT(db.Execute("create table t(i)"), IsOkAndHolds(0));
  EXPECT_THAT(db.Execute("insert into t values (1), (2), (3)"), IsOkAndHolds(3));
  EXPECT_THAT(db.Execute("create index x on t(i)"), IsOkAndHolds(0));
  EXPECT_THAT(db.Execute("update t set i = i + 1 where i > ?1", 1), IsOkAndHolds(2));
  EXPECT_THAT(db.Execute("select * from t"), IsOkAndHolds(0));
  EXPECT_THAT(db.Execute("delete from t"), IsOkAndHolds(3));
  EXPECT_THAT(db.Execute("delete from t"), IsOkAndHolds(0));
}

BOBBIN_TEST(SqliteTest, AQueryThatWritesGoesToTheWriter) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(id integer primary key, s)"));
  EXPECT_THAT(Ask<int>(db, "insert into t(s) values ('a') returning id"), IsOkAndHolds(1));
  // This one looks as if it only read.
  EXPECT_THAT(
      Ask<int>(db, "with v(s) as (values ('b')) insert into t(s) select s from v returning id"),
      IsOkAndHolds(2));
  EXPECT_THAT(Ask<int>(db, "/* how many */ select count(*) from t"), IsOkAndHolds(2));
}

BOBBIN_TEST(SqliteTest, ATextHoldsOneStatement) {
  Sqlite db = MustOpen({.path = ":memory:"});
  EXPECT_THAT(db.Query("select 1; select 2"), StatusIs(kInvalidArgument));
  EXPECT_OK(db.Query("select 1 ; ; -- and no more"));
  EXPECT_THAT(db.Query(""), StatusIs(kInvalidArgument));
  EXPECT_THAT(db.Query(" ; "), StatusIs(kInvalidArgument));
  EXPECT_THAT(db.Query("-- nothing"), StatusIs(kInvalidArgument));
  EXPECT_THAT(db.Query(UncheckedSql(std::string_view())), StatusIs(kInvalidArgument));
  EXPECT_THAT(db.Query(UncheckedSql(std::string_view("select 1\0", 9))),
              StatusIs(kInvalidArgument));
}

BOBBIN_TEST(SqliteTest, ABadStatementIsAnErrorThatShowsIt) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  const absl::Status status = db.Query("selekt 1").status();
  EXPECT_THAT(status, StatusIs(kInvalidArgument));
  EXPECT_THAT(status.ToString(),
              HasSubstr("\"selekt 1\": near \"selekt\": syntax error (sqlite 1)"));
  EXPECT_THAT(status.ToString(), HasSubstr("test.db"));
  EXPECT_EQ(SqliteCodeOf(status), SQLITE_ERROR);
  EXPECT_THAT(db.Query("select * from nowhere"), StatusIs(kInvalidArgument));
  EXPECT_EQ(SqliteCodeOf(absl::OkStatus()), 0);
}

BOBBIN_TEST(SqliteTest, TheNumberOfValuesMustFit) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const absl::Status few = db.Query("select ?1, ?2", 1).status();
  EXPECT_THAT(few, StatusIs(kInvalidArgument));
  EXPECT_THAT(few.ToString(), HasSubstr("it takes 2 values, but 1 were given"));
  EXPECT_THAT(db.Query("select 1", 1), StatusIs(kInvalidArgument));
}

BOBBIN_TEST(SqliteTest, ConstraintsHaveTheirOwnCodes) {
  Sqlite db = MustOpen({.path = ":memory:"});
  ASSERT_OK(db.ExecuteScript(
      "create table p(id integer primary key, name text unique not null check (name <> ''));"
      "create table c(p references p(id));"
      "insert into p values (1, 'a');"));
  const auto code = [&](const absl::Status& status, absl::StatusCode wanted) {
    EXPECT_THAT(status, StatusIs(wanted));
    return SqliteCodeOf(status);
  };
  EXPECT_EQ(code(db.Execute("insert into p values (1, 'b')").status(), kAlreadyExists),
            SQLITE_CONSTRAINT_PRIMARYKEY);
  EXPECT_EQ(code(db.Execute("insert into p values (2, 'a')").status(), kAlreadyExists),
            SQLITE_CONSTRAINT_UNIQUE);
  EXPECT_EQ(code(db.Execute("insert into p values (2, null)").status(), test::kFailedPrecondition),
            SQLITE_CONSTRAINT_NOTNULL);
  EXPECT_EQ(code(db.Execute("insert into p values (2, '')").status(), test::kFailedPrecondition),
            SQLITE_CONSTRAINT_CHECK);
  const absl::Status foreign = db.Execute("insert into c values (7)").status();
  EXPECT_EQ(code(foreign, test::kFailedPrecondition), SQLITE_CONSTRAINT_FOREIGNKEY);
  EXPECT_THAT(foreign.ToString(), HasSubstr("FOREIGN KEY constraint failed (sqlite 787)"));
}

BOBBIN_TEST(SqliteTest, MoreTextsThanAreKeptWork) {
  Sqlite db = MustOpen({.path = ":memory:", .statements_kept_max = 2});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) {
      const std::string text = "select " + std::to_string(i);
      EXPECT_THAT(Ask<int>(db, UncheckedSql(text)), IsOkAndHolds(i));
    }
  }
}

BOBBIN_TEST(SqliteTest, AStatementMayNotKeepATransactionOpen) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  EXPECT_THAT(db.Execute("begin"), StatusIs(kInvalidArgument));
  EXPECT_THAT(db.Execute("savepoint a"), StatusIs(kInvalidArgument));
  EXPECT_THAT(db.Query("begin"), StatusIs(kInvalidArgument));
  ASSERT_OK(db.Execute("insert into t values (1)"));
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(1));
}

BOBBIN_TEST(SqliteTest, AScriptIsAllOrNothing) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.ExecuteScript("create table t(i); -- first\n create table u(i);\n /* end */ "));
  EXPECT_THAT(db.ExecuteScript("insert into t values (1); insert into nowhere values (1)"),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(db.ExecuteScript("insert into t values (1); commit; insert into t values (2)"),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(db.ExecuteScript("insert into u values (?1)"), StatusIs(kInvalidArgument));
  EXPECT_THAT(Ask<int>(db, "select count(*) from u"), IsOkAndHolds(0));
}

// --- Files.

BOBBIN_TEST(SqliteTest, WhatWasWrittenIsThereAfterReopening) {
  const Folder folder;
  {
    Sqlite db = MustOpen({.path = folder.File("kept.db")});
    ASSERT_OK(db.Execute("create table t(i)"));
    ASSERT_OK(db.Execute("insert into t values (?1)", 42));
    EXPECT_THAT(Ask<std::string>(db, "select * from pragma_journal_mode"),
                IsOkAndHolds(std::string("wal")));
    ASSERT_OK(db.Close());
    EXPECT_FALSE(std::filesystem::exists(folder.File("kept.db-wal")));  // Closed cleanly.
  }
  Sqlite db = MustOpen({.path = folder.File("kept.db"), .access = SqliteAccess::kReadOnly});
  EXPECT_THAT(Ask<int>(db, "select i from t"), IsOkAndHolds(42));
  EXPECT_THAT(db.Execute("insert into t values (1)"),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

BOBBIN_TEST(SqliteTest, AFileThatCannotBeOpenedSaysWhy) {
  const Folder folder;
  const auto open = [](std::string path, SqliteAccess access = SqliteAccess::kReadWriteCreate) {
    return Sqlite::Open({.path = std::move(path), .access = access}).status();
  };
  EXPECT_THAT(open(folder.File("no/such/folder.db")), StatusIs(kNotFound));
  EXPECT_THAT(open(folder.File("missing.db"), SqliteAccess::kReadWrite), StatusIs(kNotFound));
  EXPECT_THAT(open(folder.File("missing.db"), SqliteAccess::kReadOnly), StatusIs(kNotFound));
  EXPECT_THAT(open(folder.File("")), testing::Not(test::IsOk()));  // A folder.
  EXPECT_THAT(open(std::string("a\0b", 3)), StatusIs(kInvalidArgument));
  std::ofstream(folder.File("text.db")) << std::string(4096, 'x');
  const absl::Status not_one = open(folder.File("text.db"));
  EXPECT_THAT(not_one, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(SqliteCodeOf(not_one), SQLITE_NOTADB);
  EXPECT_THAT(not_one.ToString(), HasSubstr("text.db"));
}

BOBBIN_TEST(SqliteTest, ManyOpenTheSameNewFileAtOnce) {
  const Folder folder;
  TaskGroup group;
  for (int i = 0; i < 6; ++i) {
    group.Spawn([&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(Sqlite db, Sqlite::Open({.path = folder.File("new.db")}));
      return db.Execute("create table if not exists t(i)").status();
    });
  }
  EXPECT_OK(group.Wait());
}

// --- Transactions.

BOBBIN_TEST(SqliteTest, ATransactionThatReturnsOkIsCommitted) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  const absl::StatusOr<int> seen = db.Transact([&](SqliteTransaction& tx) -> absl::StatusOr<int> {
    BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into t values (1), (2)").status());
    // Nobody else sees it yet.
    EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(0));
    BOBBIN_ASSIGN_OR_RETURN(const Rows rows, tx.Query("select count(*) from t"));
    return rows.Only<int>();
  });
  EXPECT_THAT(seen, IsOkAndHolds(2));
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(2));
}

BOBBIN_TEST(SqliteTest, AnErrorAnExceptionAndADeadlineRollBack) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  const auto insert = [](SqliteTransaction& tx) {
    return tx.Execute("insert into t values (1)").status();
  };

  EXPECT_THAT(db.Transact([&](SqliteTransaction& tx) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(insert(tx));
    return absl::AbortedError("changed my mind");
  }),
              StatusIs(absl::StatusCode::kAborted));

  const auto throwing = [&](SqliteTransaction& tx) -> absl::Status {
    EXPECT_OK(insert(tx));
    throw std::runtime_error("lost");
  };
  EXPECT_THROW(db.Transact(throwing).IgnoreError(), std::runtime_error);
  EXPECT_THROW(db.TransactBlocking(throwing).IgnoreError(), std::runtime_error);

  {
    const DeadlineScope scope(milliseconds(20));
    EXPECT_THAT(db.Transact([&](SqliteTransaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(insert(tx));
      EXPECT_THAT(SleepFor(std::chrono::hours(1)), StatusIs(test::kDeadlineExceeded));
      return absl::OkStatus();  // Too late: it must not be committed.
    }),
                StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(0));
  EXPECT_OK(db.Transact(insert));  // The writer is free again.
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(1));
}

BOBBIN_TEST(SqliteTest, AConstraintThatFailsAtTheCommitRollsBack) {
  Sqlite db = MustOpen({.path = ":memory:"});
  ASSERT_OK(
      db.ExecuteScript("create table p(id integer primary key);"
                       "create table c(p references p(id) deferrable initially deferred);"));
  const absl::Status status = db.Transact(
      [](SqliteTransaction& tx) { return tx.Execute("insert into c values (7)").status(); });
  EXPECT_THAT(status, StatusIs(test::kFailedPrecondition));
  EXPECT_EQ(SqliteCodeOf(status), SQLITE_CONSTRAINT_FOREIGNKEY);
  EXPECT_THAT(Ask<int>(db, "select count(*) from c"), IsOkAndHolds(0));
}

BOBBIN_TEST(SqliteTest, ATransactionThatSqliteRolledBackRunsNothingMore) {
  Sqlite db = MustOpen({.path = ":memory:"});
  ASSERT_OK(db.Execute("create table t(i unique on conflict rollback)"));
  const absl::Status status = db.Transact([](SqliteTransaction& tx) -> absl::Status {
    EXPECT_OK(tx.Execute("insert into t values (1)"));
    EXPECT_THAT(tx.Execute("insert into t values (1)"), StatusIs(kAlreadyExists));
    // By itself this would be committed at once.
    EXPECT_THAT(tx.Execute("insert into t values (2)"), StatusIs(kAlreadyExists));
    return absl::OkStatus();
  });
  EXPECT_THAT(status, StatusIs(kAlreadyExists));
  EXPECT_THAT(db.Transact([](SqliteTransaction& tx) { return tx.Execute("commit").status(); }),
              StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(0));
}

BOBBIN_TEST(SqliteTest, ANestedCallIsRefusedInsteadOfWaitingForItself) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  const auto nested = [&](SqliteTransaction&) -> absl::Status {
    EXPECT_OK(db.Query("select 1"));  // A reader is free.
    EXPECT_THAT(db.Transact([](SqliteTransaction&) { return absl::OkStatus(); }),
                StatusIs(test::kFailedPrecondition));
    return db.Execute("insert into t values (1)").status();
  };
  EXPECT_THAT(db.Transact(nested), StatusIs(test::kFailedPrecondition));
  const absl::Status status = db.TransactBlocking(nested);
  EXPECT_THAT(status, StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(status.ToString(), HasSubstr("inside a transaction of it"));
}

BOBBIN_TEST(SqliteTest, TwoThreadsInOneTransactionAreRefused) {
  Sqlite db = MustOpen({.path = ":memory:"});
  EXPECT_OK(db.Transact([&](SqliteTransaction& tx) -> absl::Status {
    VirtualThread other = Spawn([&] {
      absl::Status status;
      do {  // Until it is alone inside.
        status = tx.Query(kEndless).status();
        Yield();
      } while (status.code() == test::kFailedPrecondition);
      return status;
    });
    absl::Status second;
    do {
      second = tx.Query("select 1").status();
      Yield();
    } while (second.ok());
    EXPECT_THAT(second, StatusIs(test::kFailedPrecondition));
    other.Cancel();
    EXPECT_THAT(other.Join(), StatusIs(test::kCancelled));
    return absl::OkStatus();
  }));
}

BOBBIN_TEST(SqliteTest, TransactBlockingRunsItsBodyOnThePlatformThread) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  EXPECT_OK(db.TransactBlocking([](SqliteTransaction& tx) -> absl::Status {
    EXPECT_EQ(CurrentRole(), Role::kPlatform);
    for (int i = 0; i < 500; ++i) {
      BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into t values (?1)", i).status());
    }
    return absl::OkStatus();
  }));
  EXPECT_THAT(Ask<int>(db, "select sum(i) from t"), IsOkAndHolds(500 * 499 / 2));
}

BOBBIN_TEST(SqliteTest, EightWritersCountExactlyAndSeeNoBusy) {
  const Folder folder;
  Sqlite left = OpenIn(folder);
  Sqlite right = OpenIn(folder);  // As another process would.
  ASSERT_OK(left.ExecuteScript("create table t(n integer); insert into t values (0)"));
  const int rounds = test::kUnderThreadSanitizer ? 20 : 60;
  TaskGroup group;
  for (int writer = 0; writer < 8; ++writer) {
    group.Spawn([&, writer]() -> absl::Status {
      Sqlite& db = writer % 2 == 0 ? left : right;
      for (int round = 0; round < rounds; ++round) {
        BOBBIN_RETURN_IF_ERROR(db.Transact([](SqliteTransaction& tx) -> absl::Status {
          BOBBIN_ASSIGN_OR_RETURN(const Rows rows, tx.Query("select n from t"));
          BOBBIN_ASSIGN_OR_RETURN(const int64_t n, rows.Only<int64_t>());
          return tx.Execute("update t set n = ?1", n + 1).status();
        }));
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
  EXPECT_THAT(Ask<int>(right, "select n from t"), IsOkAndHolds(8 * rounds));
}

// --- Waiting for a connection, and for a lock.

BOBBIN_TEST(SqliteTest, ReadersDoNotWaitForTheWriter) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.ExecuteScript("create table t(i); insert into t values (1)"));
  EXPECT_OK(db.Transact([&](SqliteTransaction& tx) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into t values (2)").status());
    TaskGroup group;
    for (int reader = 0; reader < 10; ++reader) {
      group.Spawn([&]() -> absl::Status {
        EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(1));
        return absl::OkStatus();
      });
    }
    return group.Wait();
  }));
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(2));
}

BOBBIN_TEST(SqliteTest, WritersTakeTurnsInTheOrderTheyCame) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  std::vector<VirtualThread> writers;
  EXPECT_OK(db.Transact([&](SqliteTransaction&) -> absl::Status {
    for (int i = 0; i < 5; ++i) {
      ThreadProbe probe;
      writers.push_back(Spawn([&db, &probe, i] {
        probe.Attach();
        return db.Execute("insert into t values (?1)", i).status();
      }));
      probe.AwaitParked();
    }
    return absl::OkStatus();
  }));
  for (VirtualThread& writer : writers) EXPECT_OK(writer.Join());
  EXPECT_THAT(Ask<std::string>(db, "select group_concat(i) from (select i from t order by rowid)"),
              IsOkAndHolds(std::string("0,1,2,3,4")));
}

BOBBIN_TEST(SqliteTest, WaitingForAConnectionEndsWithTheDeadlineOrACancel) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  EXPECT_OK(db.Transact([&](SqliteTransaction& tx) -> absl::Status {
    VirtualThread timed = Spawn([&] {
      const DeadlineScope scope(milliseconds(5));
      return db.Execute("insert into t values (1)").status();
    });
    EXPECT_THAT(timed.Join(), StatusIs(test::kDeadlineExceeded));
    ThreadProbe probe;
    VirtualThread cancelled = Spawn([&] {
      probe.Attach();
      return db.Execute("insert into t values (1)").status();
    });
    probe.AwaitParked();
    cancelled.Cancel();
    EXPECT_THAT(cancelled.Join(), StatusIs(test::kCancelled));
    return tx.Query("select 1").status();
  }));
  EXPECT_THAT(db.Execute("delete from t"), IsOkAndHolds(0));
}

BOBBIN_TEST(SqliteTest, ALockOfAnotherProcessIsWaitedForUpToALimit) {
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("test.db"), .busy_wait_max = milliseconds(30)});
  Sqlite other = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  EXPECT_OK(other.Transact([&](SqliteTransaction&) -> absl::Status {
    const absl::Status busy = db.Execute("insert into t values (1)").status();
    EXPECT_THAT(busy, StatusIs(test::kUnavailable));
    EXPECT_EQ(SqliteCodeOf(busy) & 0xff, SQLITE_BUSY);
    const absl::Status begin = db.Transact([](SqliteTransaction&) { return absl::OkStatus(); });
    EXPECT_THAT(begin, StatusIs(test::kUnavailable));
    return absl::OkStatus();
  }));
  EXPECT_OK(db.Execute("insert into t values (1)"));
}

BOBBIN_TEST(SqliteTest, WaitingForALockEndsWithTheDeadline) {
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("test.db"), .busy_wait_max = std::chrono::hours(1)});
  Sqlite other = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  EXPECT_OK(other.Transact([&](SqliteTransaction&) -> absl::Status {
    {
      const DeadlineScope scope(milliseconds(10));
      EXPECT_THAT(db.Execute("insert into t values (1)"), StatusIs(test::kDeadlineExceeded));
    }
    const DeadlineScope scope(milliseconds(10));
    EXPECT_THAT(db.TransactBlocking([](SqliteTransaction&) { return absl::OkStatus(); }),
                StatusIs(test::kDeadlineExceeded));
    return absl::OkStatus();
  }));
  EXPECT_OK(db.Execute("insert into t values (1)"));
}

// --- Interrupting.

BOBBIN_TEST(SqliteTest, ARunningStatementEndsWithTheDeadline) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  const DeadlineScope scope(milliseconds(10));
  const absl::Status status = db.Query(kEndless).status();
  EXPECT_THAT(status, StatusIs(test::kDeadlineExceeded));
  EXPECT_THAT(status.ToString(), HasSubstr("interrupted"));
  EXPECT_THAT(db.Query("select 1"), StatusIs(test::kDeadlineExceeded));  // Level-triggered.
}

BOBBIN_TEST(SqliteTest, ARunningStatementEndsWithACancel) {
  Sqlite db = MustOpen({.path = ":memory:"});
  ThreadProbe probe;
  VirtualThread query = Spawn([&] {
    probe.Attach();
    return db.Query(kEndless).status();
  });
  probe.AwaitParked();
  EXPECT_OK(SleepFor(milliseconds(2)));
  query.Cancel();
  EXPECT_THAT(query.Join(), StatusIs(test::kCancelled));
  EXPECT_OK(db.Query("select 1"));
}

BOBBIN_TEST(SqliteTest, ABatchEndsWithTheDeadlineAndRollsBack) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  {
    const DeadlineScope scope(milliseconds(20));
    EXPECT_THAT(db.TransactBlocking([&](SqliteTransaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into t values (1)").status());
      return tx.Query(kEndless).status();
    }),
                StatusIs(test::kDeadlineExceeded));
    EXPECT_THAT(CheckStop(), StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(0));
}

// The deadline falls before, into and after the statement; the next one, on the same connection,
// has none.
BOBBIN_TEST(SqliteTest, AnInterruptNeverHitsTheNextStatement) {
  Sqlite db = MustOpen({.path = ":memory:"});
  const int rounds = test::kUnderThreadSanitizer ? 150 : 600;
  int interrupted = 0;
  for (int round = 0; round < rounds; ++round) {
    {
      const DeadlineScope scope(std::chrono::microseconds(20 + 5 * (round % 80)));
      const absl::Status status =
          db.Query(
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)"
                " select count(*) from n")
              .status();
      if (!status.ok()) {
        EXPECT_THAT(status, StatusIs(test::kDeadlineExceeded));
        ++interrupted;
      }
    }
    const absl::StatusOr<int> next =
        Ask<int>(db,
                 "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500)"
                 " select count(*) from n");
    ASSERT_THAT(next, IsOkAndHolds(1500)) << "round " << round;
  }
  RecordProperty("interrupted", interrupted);
}

BOBBIN_TEST(SqliteTest, AnInterruptedWriteLeavesNothingBehind) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  {
    const DeadlineScope scope(milliseconds(10));
    EXPECT_THAT(db.Execute("insert into t with recursive n(i) as"
                           " (select 1 union all select i + 1 from n) select i from n"),
                StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(0));
  EXPECT_OK(db.Execute("insert into t values (1)"));
}

// --- Threads.

std::atomic<uint32_t> roles_seen{0};

int RecordRole(uint32_t, void*, void*, void*) {
  roles_seen.fetch_or(1U << static_cast<uint32_t>(CurrentRole()));
  return 0;
}

int TraceConnection(sqlite3* database, const char**, const sqlite3_api_routines*) {
  return sqlite3_trace_v2(database, SQLITE_TRACE_STMT | SQLITE_TRACE_CLOSE, &RecordRole, nullptr);
}

BOBBIN_TEST(SqliteTest, OnlyPlatformThreadsRunSqlite) {
  // SQLite calls it for every connection that is opened from now on.
  const auto hook = reinterpret_cast<void (*)()>(&TraceConnection);
  ASSERT_EQ(sqlite3_auto_extension(hook), SQLITE_OK);
  roles_seen = 0;
  {
    const Folder folder;
    Sqlite db = OpenIn(folder);
    ASSERT_OK(db.Execute("create table t(i)"));
    EXPECT_OK(db.Query("select * from t"));
    EXPECT_OK(db.Transact(
        [](SqliteTransaction& tx) { return tx.Execute("insert into t values (1)").status(); }));
    EXPECT_OK(db.TransactBlocking(
        [](SqliteTransaction& tx) { return tx.Execute("insert into t values (1)").status(); }));
    EXPECT_OK(db.Checkpoint());
  }
  sqlite3_cancel_auto_extension(hook);
  EXPECT_EQ(roles_seen.load(), 1U << static_cast<uint32_t>(Role::kPlatform));
}

BOBBIN_TEST(SqliteTest, TheCarrierRunsOthersWhileAStatementRuns) {
  Sqlite db = MustOpen({.path = ":memory:"});
  ThreadProbe probe;
  VirtualThread query = Spawn([&] {
    probe.Attach();
    return db.Query(kEndless).status();
  });
  probe.AwaitParked();
  for (int i = 0; i < 5; ++i) EXPECT_OK(SleepFor(milliseconds(1)));  // With one carrier: this one.
  query.Cancel();
  EXPECT_THAT(query.Join(), StatusIs(test::kCancelled));
}

BOBBIN_FOREIGN_TEST(SqliteTest, ForeignAndVirtualThreadsShareADatabase) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  {
    test::Crew crew(runtime());
    for (int i = 0; i < 6; ++i) {
      crew.Start(i % 2 == 0 ? test::Kind::kForeign : test::Kind::kVirtual, [&db] {
        for (int round = 0; round < 10; ++round) {
          EXPECT_OK(db.Execute("insert into t values (1)"));
          EXPECT_OK(db.Query("select * from t"));
        }
      });
    }
  }
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(60));
  const DeadlineScope scope(milliseconds(5));
  EXPECT_THAT(db.Query(kEndless), StatusIs(test::kDeadlineExceeded));
}

BOBBIN_TEST(SqliteTest, APoolOfTheUsersIsUsed) {
  PlatformPool pool({.name = "disk", .threads = 1, .queue_max = 4});
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("test.db"), .pool = &pool});
  ASSERT_OK(db.Execute("create table t(i)"));
  // From a body of that pool, too: it is a platform thread, and need not change to another.
  EXPECT_OK(pool.RunBlocking([&] {
    return db.Transact([](SqliteTransaction& tx) -> absl::Status {
      EXPECT_THAT(DescribeCurrentThread(), HasSubstr("disk-1"));
      return tx.Execute("insert into t values (1)").status();
    });
  }));
  // There, too, a statement ends with the deadline.
  EXPECT_THAT(pool.RunBlocking([&] {
    const DeadlineScope scope(milliseconds(5));
    return db.Query(kEndless).status();
  }),
              StatusIs(test::kDeadlineExceeded));
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(1));
  EXPECT_EQ(pool.Statistics().completed, 5);  // Nested calls are no trips of their own.
}

BOBBIN_TEST(SqliteTest, AFullPoolDoesNotKeepATransactionOpen) {
  PlatformPool pool({.threads = 1, .queue_max = 0});
  const Folder folder;
  Sqlite db = MustOpen({.path = folder.File("test.db"), .pool = &pool});
  ASSERT_OK(db.Execute("create table t(i)"));
  std::atomic<bool> may_end{false};
  std::atomic<bool> has_begun{false};
  EXPECT_THAT(db.Transact([&](SqliteTransaction& tx) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into t values (1)").status());
    EXPECT_OK(pool.Submit([&] {
      has_begun = true;
      while (!may_end) usleep(100);
    }));
    AwaitTrue([&] { return has_begun.load(); });
    absl::Status refused = tx.Query("select 1").status();
    may_end = true;  // The rollback waits for its turn.
    return refused;
  }),
              StatusIs(test::kResourceExhausted));
  AwaitTrue([&] { return pool.Statistics().active == 0; });
  EXPECT_THAT(Ask<int>(db, "select count(*) from t"), IsOkAndHolds(0));
}

BOBBIN_TEST(SqliteTest, ManyReadersAndAWriterAtOnce) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.ExecuteScript("create table t(a integer, b integer); insert into t values (0, 0)"));
  std::atomic<bool> is_done{false};
  TaskGroup group;
  group.Spawn([&]() -> absl::Status {
    for (int i = 1; i <= 50; ++i) {
      BOBBIN_RETURN_IF_ERROR(db.Transact([&](SqliteTransaction& tx) -> absl::Status {
        BOBBIN_RETURN_IF_ERROR(tx.Execute("update t set a = ?1", i).status());
        return tx.Execute("update t set b = ?1", i).status();
      }));
    }
    is_done = true;
    return absl::OkStatus();
  });
  for (int reader = 0; reader < 6; ++reader) {
    group.Spawn([&]() -> absl::Status {
      int last = 0;
      while (!is_done) {
        BOBBIN_ASSIGN_OR_RETURN(const Rows rows, db.Query("select a, b from t"));
        const auto [a, b] = rows.As<int, int>()[0];
        if (a != b) return absl::InternalError("half of a transaction");
        if (a < last) return absl::InternalError("back in time");
        last = a;
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
}

BOBBIN_TEST(SqliteTest, AResultThatIsKeptHoldsNoSnapshot) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.ExecuteScript("create table t(b); insert into t values (1)"));
  const absl::StatusOr<Rows> kept = db.Query("select * from t");
  for (int i = 0; i < 20; ++i) ASSERT_OK(db.Execute("insert into t values (zeroblob(100000))"));
  EXPECT_GT(std::filesystem::file_size(folder.File("test.db-wal")), 0);
  ASSERT_OK(db.Checkpoint());
  EXPECT_EQ(std::filesystem::file_size(folder.File("test.db-wal")), 0);
  EXPECT_EQ(kept->size(), 1);
}

// --- The end.

BOBBIN_TEST(SqliteTest, CloseEndsThoseWhoWaitAndWaitsForTheOthers) {
  const Folder folder;
  Sqlite db = OpenIn(folder);
  ASSERT_OK(db.Execute("create table t(i)"));
  std::atomic<bool> may_end{false};
  std::atomic<bool> is_inside{false};
  VirtualThread first = Spawn([&] {
    return db.Transact([&](SqliteTransaction& tx) -> absl::Status {
      is_inside = true;
      AwaitTrue([&] { return may_end.load(); });
      return tx.Execute("insert into t values (1)").status();
    });
  });
  AwaitTrue([&] { return is_inside.load(); });
  ThreadProbe probe;
  VirtualThread second = Spawn([&] {
    probe.Attach();
    return db.Execute("insert into t values (2)").status();
  });
  probe.AwaitParked();
  {
    const DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(db.Close(), StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_THAT(second.Join(), StatusIs(test::kUnavailable));
  EXPECT_THAT(db.Query("select 1"), StatusIs(test::kUnavailable));
  may_end = true;
  EXPECT_OK(db.Close());
  EXPECT_OK(first.Join());
  EXPECT_OK(db.Close());  // Again.
  Sqlite again = OpenIn(folder);
  EXPECT_THAT(Ask<int>(again, "select count(*) from t"), IsOkAndHolds(1));
}

BOBBIN_TEST(SqliteTest, CloseAndStopsRace) {
  const Folder folder;
  const int rounds = test::kUnderThreadSanitizer ? 10 : 30;
  for (int round = 0; round < rounds; ++round) {
    Sqlite db = OpenIn(folder);
    TaskGroup group;
    for (int i = 0; i < 4; ++i) {
      group.Spawn([&db, i] {
        const DeadlineScope scope(std::chrono::microseconds(200 * (i + 1)));
        EXPECT_THAT(db.Query(kEndless), testing::Not(test::IsOk()));
      });
    }
    EXPECT_OK(SleepFor(std::chrono::microseconds(100 * (round % 8))));
    EXPECT_OK(db.Close());
    EXPECT_OK(group.Wait());
  }
}

BOBBIN_TEST(SqliteTest, AMovedDatabaseWorks) {
  Sqlite first = MustOpen({.path = ":memory:"});
  ASSERT_OK(first.Execute("create table t(i)"));
  Sqlite second = std::move(first);
  EXPECT_OK(second.Execute("insert into t values (1)"));
}

// The threads of other tests must not be there when the dying one is forked.
class SqliteDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SqliteDeathTest, ASessionOnACarrierAborts) {
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        const SqliteOptions options{.path = ":memory:"};
        internal::SqliteConnection connection(options, internal::SqliteRole::kWriter);
        EXPECT_OK(runtime
                      .Spawn({.name = "careless"},
                             [&] { const internal::SqliteSession session(connection); })
                      .Join());
      },
      "SQLite blocks the OS thread.*virtual thread \"careless\"");
}

TEST_F(SqliteDeathTest, AsAbortsWithThePlaceOfTheMismatch) {
  EXPECT_DEATH(
      {
        Sqlite db = MustOpen({.path = ":memory:"});
        const absl::StatusOr<Rows> rows = db.Query("select null as owner");
        rows->As<std::string>();
      },
      "read row 1 column 1 \"owner\": it is NULL, but text was asked for");
}

}  // namespace
}  // namespace bobbin::db
