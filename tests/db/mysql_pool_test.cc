// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/mysql_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/mysql_test.h"
#include "tests/db/tcp_proxy.h"

namespace bobbin::db {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::AwaitTrue;
using test::IsOkAndHolds;
using test::MustOpen;
using test::MySqlDatabase;
using test::MySqlService;
using test::OpenMySql;
using test::Rounds;
using test::SharedBy;
using test::StatusIs;
using test::TcpProxy;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

// A patience that a loaded machine does not use up.
MySqlServer Patient(MySqlServer server) {
  server.cancel_wait_max = seconds(30);
  return server;
}

// --- Statements and values.

BOBBIN_IO_TEST(MySqlPoolTest, AQueryReturnsItsRows) {
  MySqlPool pool = OpenMySql();
  auto rows = pool.Query("select seq, seq * 1.5e0 r, concat('row ', seq) from seq_1_to_3");
  ASSERT_OK(rows);
  std::vector<std::string> seen;
  for (auto [i, real, text] : rows->As<int, double, std::string_view>()) {
    seen.push_back(std::to_string(i) + " " + std::to_string(real) + " " + std::string(text));
  }
  EXPECT_THAT(seen, ElementsAre("1 1.500000 row 1", "2 3.000000 row 2", "3 4.500000 row 3"));
  EXPECT_EQ(rows->column_name(1), "r");
  EXPECT_EQ(pool.Query("select seq from seq_1_to_3 where false")->size(), 0U);
}

// Puts values into a column of each type, and takes them out again.
class Column {
 public:
  Column(MySqlPool& pool, const std::string& type) : pool_(pool) {
    EXPECT_OK(pool.ExecuteScript(
        UncheckedSql("create or replace table c(k int primary key, v " + type + ")")));
  }
  template <typename T>
  absl::StatusOr<T> Echo(const T& value) {
    BOBBIN_RETURN_IF_ERROR(pool_.Execute("replace into c values (1, $1)", value).status());
    BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool_.Query("select v from c"));
    return rows.Only<T>();
  }

 private:
  MySqlPool& pool_;
};

BOBBIN_IO_TEST(MySqlPoolTest, IntegersComeBackAsTheyWere) {
  MySqlDatabase database;
  MySqlPool pool = database.Open();
  const auto echo_all = [&]<typename T>(const std::string& type, T) {
    Column column(pool, type);
    for (const T value : {T{0}, T{1}, static_cast<T>(T{0} - T{1}), T{42},
                          std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}) {
      EXPECT_THAT(column.Echo(value), IsOkAndHolds(value)) << type;
    }
    for (int i = 0; i < 10; ++i) {
      const T value = static_cast<T>(random().Next());
      EXPECT_THAT(column.Echo(value), IsOkAndHolds(value)) << type;
    }
    EXPECT_THAT(column.Echo(std::optional<T>()), IsOkAndHolds(std::nullopt));
  };
  echo_all("tinyint", int8_t{});
  echo_all("tinyint unsigned", uint8_t{});
  echo_all("smallint", int16_t{});
  echo_all("smallint unsigned", uint16_t{});
  echo_all("int", int32_t{});
  echo_all("int unsigned", uint32_t{});
  echo_all("bigint", int64_t{});
  echo_all("bigint unsigned", uint64_t{});

  Column medium(pool, "mediumint");
  EXPECT_THAT(medium.Echo(-8388608), IsOkAndHolds(-8388608));
  EXPECT_THAT(medium.Echo(8388608).status(), StatusIs(kInvalidArgument));  // It does not fit.
  Column flag(pool, "bool");
  EXPECT_THAT(flag.Echo(true), IsOkAndHolds(true));
  EXPECT_THAT(flag.Echo(false), IsOkAndHolds(false));
  Column bits(pool, "bit(64)");
  EXPECT_THAT(bits.Echo(std::numeric_limits<uint64_t>::max()),
              IsOkAndHolds(std::numeric_limits<uint64_t>::max()));
  EXPECT_THAT(bits.Echo(5), IsOkAndHolds(5));
  Column year(pool, "year");
  EXPECT_THAT(year.Echo(2024), IsOkAndHolds(2024));

  // One above the largest int64_t is read as what can hold it.
  auto rows = pool.Query("select cast(18446744073709551615 as unsigned)");
  ASSERT_OK(rows);
  EXPECT_THAT((*rows)[0].Get<int64_t>(0).status(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT((*rows)[0].Get<double>(0), IsOkAndHolds(18446744073709551615.0));
  EXPECT_EQ(std::get<std::string>((*rows)[0].Get<Value>(0).value()), "18446744073709551615");
}

BOBBIN_IO_TEST(MySqlPoolTest, NumbersAndTextsComeBackAsTheyWere) {
  MySqlDatabase database;
  MySqlPool pool = database.Open();
  Column real(pool, "double");
  for (const double value : {0.0, 0.1, -1e300, 5e-324, std::numeric_limits<double>::max()}) {
    EXPECT_THAT(real.Echo(value), IsOkAndHolds(value));
  }
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(real.Echo(value).status(), StatusIs(kInvalidArgument));
  }
  Column single(pool, "float");
  for (const float value : {0.1F, 3.4e38F, -1e-30F}) {
    EXPECT_THAT(single.Echo(value), IsOkAndHolds(value));
  }
  Column text(pool, "longtext");
  for (const std::string& value :
       {std::string(), std::string("a"), std::string("it's \"quoted\" \\ \n\t"),
        std::string("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), std::string("a\0b", 3),
        std::string(100'000, 'x')}) {
    EXPECT_THAT(text.Echo(value), IsOkAndHolds(value));
  }
  EXPECT_THAT(text.Echo(std::optional<std::string>()), IsOkAndHolds(std::nullopt));
  Column decimal(pool, "decimal(65, 9)");
  EXPECT_THAT(decimal.Echo<std::string>("-123456789012345678901234567890.123456789"),
              IsOkAndHolds("-123456789012345678901234567890.123456789"));
  Column json(pool, "json");
  EXPECT_THAT(json.Echo<std::string>("{\"a\": [1, null]}"), IsOkAndHolds("{\"a\": [1, null]}"));
  EXPECT_THAT(json.Echo<std::string>("{").status(), StatusIs(test::kFailedPrecondition));
  Column choice(pool, "enum('small', 'large')");
  EXPECT_THAT(choice.Echo<std::string>("large"), IsOkAndHolds("large"));
  EXPECT_THAT(choice.Echo<std::string>("none").status(), StatusIs(kInvalidArgument));
  Column uuid(pool, "char(36)");
  const auto id = Uuid::Parse("0f8fad5b-d9cb-469f-a165-70867728950e");
  ASSERT_TRUE(id.has_value());
  EXPECT_THAT(uuid.Echo(*id), IsOkAndHolds(*id));
  EXPECT_THAT(pool.Query("select $1", std::vector<int>{1}).status(), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(MySqlPoolTest, BlobsComeBackAsTheyWere) {
  MySqlDatabase database;
  MySqlPool pool = database.Open();
  std::vector<std::byte> all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
  for (const std::string type : {"longblob", "varbinary(300)"}) {
    Column column(pool, type);
    EXPECT_THAT(column.Echo(all), IsOkAndHolds(all));
    EXPECT_THAT(column.Echo(std::vector<std::byte>()), IsOkAndHolds(testing::IsEmpty()));
    EXPECT_THAT(column.Echo(std::optional<std::vector<std::byte>>()), IsOkAndHolds(std::nullopt));
  }
}

BOBBIN_IO_TEST(MySqlPoolTest, TimesComeBackAsTheyWere) {
  MySqlDatabase database;
  MySqlPool pool = database.Open();
  const auto at = [](absl::CivilSecond second) {
    return absl::FromCivil(second, absl::UTCTimeZone());
  };
  Column datetime(pool, "datetime(6)");
  std::vector<absl::Time> times = {absl::UnixEpoch(), at(absl::CivilSecond(1, 1, 1)),
                                   at(absl::CivilSecond(9999, 12, 31, 23, 59, 59)),
                                   absl::FromUnixMicros(1'700'000'000'123'456)};
  for (int i = 0; i < 30; ++i) {
    times.push_back(absl::FromUnixMicros(static_cast<int64_t>(random().Below(1ULL << 52))));
  }
  for (const absl::Time time : times) EXPECT_THAT(datetime.Echo(time), IsOkAndHolds(time));
  for (const absl::Time time : {absl::InfiniteFuture(), at(absl::CivilSecond(-1, 1, 1))}) {
    EXPECT_THAT(datetime.Echo(time).status(), StatusIs(kInvalidArgument));
  }
  Column timestamp(pool, "timestamp(6)");
  EXPECT_THAT(timestamp.Echo(times[3]), IsOkAndHolds(times[3]));
  // Sessions are in UTC, so that the server's clock is ours.
  auto now = pool.Query("select now(6)")->Only<absl::Time>();
  ASSERT_OK(now);
  EXPECT_LT(absl::AbsDuration(*now - absl::Now()), absl::Hours(1));
  Column date(pool, "date");
  for (const absl::CivilDay day :
       {absl::CivilDay(1970, 1, 1), absl::CivilDay(2024, 2, 29), absl::CivilDay(9999, 12, 31)}) {
    EXPECT_THAT(date.Echo(day), IsOkAndHolds(day));
  }
  EXPECT_THAT(date.Echo(absl::CivilDay(10000, 1, 1)).status(), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(MySqlPoolTest, PlacesOfValuesAreNumbered) {
  MySqlPool pool = OpenMySql();
  EXPECT_THAT(pool.Query("select concat($2, '$1', $1, $2) -- $3", "a", "b")->Only<std::string>(),
              IsOkAndHolds("b$1ab"));
  EXPECT_THAT(pool.Query("select $1", 1, 2).status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Query("select $2", 1).status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Query("select ?", 1).status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Query("select $1 + ?", 1).status(), StatusIs(kInvalidArgument));
}

BOBBIN_IO_TEST(MySqlPoolTest, ExecuteCountsWhatHasChanged) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable();
  EXPECT_THAT(pool.Execute("insert into t select seq from seq_1_to_10"), IsOkAndHolds(10));
  EXPECT_THAT(pool.Execute("update t set n = n + 1 where n > $1", 7), IsOkAndHolds(3));
  EXPECT_THAT(pool.Execute("update t set n = n"), IsOkAndHolds(10));
  EXPECT_THAT(pool.Execute("delete from t where n > $1 returning n", 10), IsOkAndHolds(1));
  EXPECT_THAT(pool.Execute("select * from t"), IsOkAndHolds(0));
  EXPECT_THAT(pool.Execute("truncate t"), IsOkAndHolds(0));
}

BOBBIN_IO_TEST(MySqlPoolTest, AnErrorSaysWhatTheServerSays) {
  MySqlDatabase database;
  MySqlPool pool = database.Open();
  ASSERT_OK(pool.ExecuteScript(
      "create table account(id int primary key, cents int, owner int, "
      "constraint not_poor check (cents >= 0), unique key one_each (owner));"
      "create table booking(account int, constraint of_account foreign key (account) "
      "references account(id))"));
  ASSERT_OK(pool.Execute("insert into account values (1, 100, 7)"));

  const absl::Status twice = pool.Execute("insert into account values (2, 1, 7)").status();
  EXPECT_THAT(twice, StatusIs(kAlreadyExists));
  auto error = MySqlErrorOf(twice);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->number, 1062U);
  EXPECT_EQ(error->sqlstate, "23000");
  EXPECT_EQ(error->constraint, "one_each");
  EXPECT_THAT(std::string(twice.message()), HasSubstr("(error 1062, sqlstate 23000)"));

  const absl::Status poor = pool.Execute("update account set cents = $1", -1).status();
  EXPECT_THAT(poor, StatusIs(test::kFailedPrecondition));
  EXPECT_EQ(MySqlErrorOf(poor)->constraint, "not_poor");
  const absl::Status lost = pool.Execute("insert into booking values (9)").status();
  EXPECT_THAT(lost, StatusIs(test::kFailedPrecondition));
  EXPECT_EQ(MySqlErrorOf(lost)->constraint, "of_account");

  EXPECT_THAT(pool.Query("select 1 frm account").status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Query("select * from nothing").status(), StatusIs(kNotFound));
  EXPECT_THAT(pool.Query("select nothing from account").status(), StatusIs(kNotFound));
  EXPECT_THAT(pool.ExecuteScript("create table account(id int)"), StatusIs(kAlreadyExists));
  EXPECT_THAT(pool.Execute("signal sqlstate '45000' set message_text = 'no'").status(),
              StatusIs(test::kFailedPrecondition));
  EXPECT_FALSE(MySqlErrorOf(absl::OkStatus()).has_value());
  // None of it has left anything behind.
  EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
}

BOBBIN_IO_TEST(MySqlPoolTest, APreparedTextGoesOnWhenItsTableIsAltered) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable(1);
  ASSERT_OK(pool.Execute("insert into t values (1)"));
  for (int i = 0; i < 3; ++i) ASSERT_OK(pool.Query("select * from t"));
  ASSERT_OK(pool.ExecuteScript("alter table t add column more text default 'x'"));
  auto rows = pool.Query("select * from t");
  ASSERT_OK(rows);
  ASSERT_EQ(rows->column_count(), 2U);
  EXPECT_EQ(rows->column_name(0), "n");
  EXPECT_EQ(rows->column_name(1), "more");
}

BOBBIN_IO_TEST(MySqlPoolTest, OnlySoManyStatementsAreKept) {
  MySqlServer server = MySqlService::Shared();
  server.statements_kept_max = 3;
  MySqlPool pool = MustOpen({.server = server, .connections_max = 1});
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 10; ++i) {
      const std::string sql = "select " + std::to_string(i / 2);
      EXPECT_THAT(pool.Query(UncheckedSql(sql))->Only<int>(), IsOkAndHolds(i / 2));
    }
  }
  // Each was prepared again when it came again: the server has been told to forget the others.
  auto counts = pool.Query(
      "select variable_name, cast(variable_value as signed) from "
      "information_schema.session_status where variable_name in ('Com_stmt_prepare', "
      "'Com_stmt_close') order by variable_name");
  ASSERT_OK(counts);
  const int64_t closed = (*counts)[0].Get<int64_t>(1).value();
  const int64_t prepared = (*counts)[1].Get<int64_t>(1).value();
  EXPECT_GE(prepared, 20);
  EXPECT_LE(prepared - closed, 3);
}

BOBBIN_IO_TEST(MySqlPoolTest, AProcedureAnswersWithItsFirstResult) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable(1);
  ASSERT_OK(
      pool.Execute("create procedure p(n int) begin select n + 1; insert into t values (n); select "
                   "'more'; end"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(pool.Query("call p($1)", i)->Only<int>(), IsOkAndHolds(i + 1));
  }
  EXPECT_THAT(pool.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(3));
}

BOBBIN_IO_TEST(MySqlPoolTest, WhatIsLargeBothWaysDoesNotGetStuck) {
  MySqlPool pool = OpenMySql();
  const std::string large(test::kUnderSanitizer ? 4 << 20 : 20 << 20, 'x');
  auto rows = pool.Query("select $1, md5($1)", large);
  ASSERT_OK(rows);
  EXPECT_EQ((*rows)[0].Get<std::string_view>(0)->size(), large.size());
}

BOBBIN_IO_TEST(MySqlPoolTest, AScriptRunsWholeOrNotAtAll) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable();
  ASSERT_OK(
      pool.ExecuteScript("insert into t values (1); select * from t; insert into t values (2)"));
  EXPECT_THAT(pool.ExecuteScript("insert into t values (3); insert into nothing values (4)"),
              StatusIs(kNotFound));
  EXPECT_THAT(pool.Query("select sum(n) from t")->Only<std::string>(), IsOkAndHolds("3"));
}

// --- What a session has.

BOBBIN_IO_TEST(MySqlPoolTest, ASessionIsResetForTheNextOne) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable(1);
  MySqlPool other = database.Open(1);
  ASSERT_OK(pool.Query("select 1"));
  ASSERT_OK(pool.Execute("set @mine = 7, time_zone = '+05:00'"));
  EXPECT_THAT(pool.Query("select @mine")->Only<std::optional<int>>(), IsOkAndHolds(std::nullopt));
  EXPECT_THAT(pool.Query("select @@time_zone")->Only<std::string>(), IsOkAndHolds("+00:00"));
  EXPECT_THAT(pool.Query("select get_lock('bobbin', 0)")->Only<int>(), IsOkAndHolds(1));
  EXPECT_THAT(other.Query("select get_lock('bobbin', 10)")->Only<int>(), IsOkAndHolds(1));
  ASSERT_OK(pool.Execute("create temporary table own(n int)"));
  EXPECT_THAT(pool.Query("select * from own").status(), StatusIs(kNotFound));
  ASSERT_OK(pool.ExecuteScript("set @mine = 8"));
  EXPECT_THAT(pool.Query("select @mine")->Only<std::optional<int>>(), IsOkAndHolds(std::nullopt));
  EXPECT_EQ(pool.Statistics().opened, 1U);
  // Nothing takes back which database it is in.
  ASSERT_OK(pool.ExecuteScript("use mysql"));
  EXPECT_OK(pool.Query("select * from t"));
  EXPECT_EQ(pool.Statistics().opened, 2U);
  // Inside a transaction it stays.
  EXPECT_OK(pool.Transact([](MySqlTransaction& tx) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(tx.Execute("set @mine = 9").status());
    EXPECT_THAT(tx.Query("select @mine")->Only<int>(), IsOkAndHolds(9));
    return absl::OkStatus();
  }));
}

BOBBIN_IO_TEST(MySqlPoolTest, AResetIsOnlyForWhoNeedsIt) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable(1);
  const auto resets = [&] {
    return pool
        .Query(
            "select cast(variable_value as signed) from information_schema.session_status where "
            "variable_name = 'Com_reset_connection'")
        ->Only<int>()
        .value_or(-1);
  };
  const int before = resets();
  ASSERT_OK(pool.Execute("insert into t values (1)"));
  ASSERT_OK(pool.Query("select * from t where n = $1 for update", 1));
  ASSERT_OK(
      pool.Transact([](MySqlTransaction& tx) { return tx.Execute("delete from t").status(); }));
  EXPECT_EQ(resets(), before);
}

// --- Transactions.

BOBBIN_IO_TEST(MySqlTransactionTest, ItCommitsWhatSucceedsAndRollsBackTheRest) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable();
  const auto insert = [](MySqlTransaction& tx) {
    return tx.Execute("insert into t values (1)").status();
  };
  const auto count = [&] { return pool.Query("select count(*) from t")->Only<int>().value(); };
  EXPECT_OK(pool.Transact(insert));
  EXPECT_EQ(count(), 1);

  EXPECT_THAT(pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(insert(tx));
    EXPECT_THAT(tx.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(2));
    EXPECT_EQ(count(), 1);  // Another connection.
    return absl::DataLossError("no");
  }),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(count(), 1);

  EXPECT_THROW(pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
                     EXPECT_OK(insert(tx));
                     throw std::runtime_error("no");
                   })
                   .IgnoreError(),
               std::runtime_error);
  EXPECT_EQ(count(), 1);

  // A statement has failed, and is undone alone.
  EXPECT_OK(pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
    EXPECT_OK(insert(tx));
    EXPECT_THAT(tx.Query("select * from nothing").status(), StatusIs(kNotFound));
    return absl::OkStatus();
  }));
  EXPECT_EQ(count(), 2);

  // A value comes out.
  const absl::StatusOr<int64_t> changed =
      pool.Transact([&](MySqlTransaction& tx) { return tx.Execute("update t set n = 2"); });
  EXPECT_THAT(changed, IsOkAndHolds(2));
  EXPECT_EQ(pool.Statistics().held, 0U);
}

BOBBIN_IO_TEST(MySqlTransactionTest, ItsEndIsItsOwn) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable(1);
  for (const std::string end : {"commit", "create table u(n int)"}) {
    EXPECT_THAT(pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
      EXPECT_THAT(tx.Execute(UncheckedSql(end)).status(), StatusIs(test::kFailedPrecondition));
      EXPECT_THAT(tx.Execute("insert into t values (1)").status(),
                  StatusIs(test::kFailedPrecondition));
      return absl::OkStatus();
    }),
                StatusIs(test::kFailedPrecondition));
  }
  EXPECT_THAT(pool.Execute("begin").status(), StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(pool.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(0));
}

BOBBIN_IO_TEST(MySqlTransactionTest, ADeadlockIsTriedAgain) {
  MySqlDatabase database;
  MySqlPool pool = database.Open();
  ASSERT_OK(
      pool.ExecuteScript("create table account(id int primary key, cents int);"
                         "insert into account values (1, 0), (2, 0)"));
  std::atomic<int> attempts{0};
  constexpr int kThreads = 4;
  constexpr int kRounds = 3;
  TaskGroup group;
  for (int i = 0; i < kThreads; ++i) {
    group.Spawn([&, i]() -> absl::Status {
      for (int round = 0; round < kRounds; ++round) {
        // Both rows, one half of the threads in the one order, one half in the other.
        BOBBIN_RETURN_IF_ERROR(
            pool.Transact({.attempts_max = 1000}, [&](MySqlTransaction& tx) -> absl::Status {
              ++attempts;
              for (const int id : {1 + i % 2, 2 - i % 2}) {
                BOBBIN_RETURN_IF_ERROR(
                    tx.Execute("update account set cents = cents + 1 where id = $1", id).status());
                Yield();
              }
              return absl::OkStatus();
            }));
      }
      return absl::OkStatus();
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_THAT(pool.Query("select cents from account where id = 1")->Only<int>(),
              IsOkAndHolds(kThreads * kRounds));
  EXPECT_THAT(pool.Query("select cents from account where id = 2")->Only<int>(),
              IsOkAndHolds(kThreads * kRounds));
  EXPECT_GE(attempts, kThreads * kRounds);
}

BOBBIN_IO_TEST(MySqlTransactionTest, OneThatHasLostAConflictIsOver) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable();
  ASSERT_OK(pool.Execute("insert into t values (0)"));
  EXPECT_OK(pool.Transact([&](MySqlTransaction& first) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(first.Execute("update t set n = 7").status());
    std::vector<std::string> calls;
    const absl::Status second = pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
      tx.AfterRollback([&] { calls.push_back("rolled back"); });
      BOBBIN_RETURN_IF_ERROR(tx.Execute("set innodb_lock_wait_timeout = 0").status());
      const absl::Status lost = tx.Execute("update t set n = 8").status();
      EXPECT_THAT(tx.Execute("insert into t values (9)").status(),
                  StatusIs(test::kFailedPrecondition));
      return lost;
    });
    EXPECT_THAT(second, StatusIs(test::kAborted));
    EXPECT_TRUE(IsMySqlConflict(second));
    EXPECT_EQ(MySqlErrorOf(second)->number, 1205U);
    EXPECT_THAT(calls, ElementsAre("rolled back"));
    return absl::OkStatus();
  }));
  EXPECT_THAT(pool.Query("select n from t")->Only<int>(), IsOkAndHolds(7));
}

BOBBIN_IO_TEST(MySqlTransactionTest, IsolationAndAccessAreAsAskedFor) {
  MySqlDatabase database;
  MySqlPool pool = database.OpenWithTable(1);
  MySqlPool other = database.Open(1);
  ASSERT_OK(pool.Execute("insert into t values (0)"));
  // What a transaction reads that has read before the other one wrote; -1: the other one may not.
  const auto read_twice = [&](MySqlIsolation isolation) {
    return pool.Transact(
        {.isolation = isolation}, [&](MySqlTransaction& tx) -> absl::StatusOr<int> {
          BOBBIN_ASSIGN_OR_RETURN(const Rows before, tx.Query("select n from t"));
          const absl::Status written =
              other.Execute("set statement innodb_lock_wait_timeout = 0 for update t set n = n + 1")
                  .status();
          if (IsMySqlConflict(written)) return -1;
          BOBBIN_RETURN_IF_ERROR(written);
          BOBBIN_ASSIGN_OR_RETURN(const Rows after, tx.Query("select n from t"));
          return after.Only<int>().value() - before.Only<int>().value();
        });
  };
  EXPECT_THAT(read_twice(MySqlIsolation::kDefault), IsOkAndHolds(0));
  EXPECT_THAT(read_twice(MySqlIsolation::kReadCommitted), IsOkAndHolds(1));
  EXPECT_THAT(read_twice(MySqlIsolation::kRepeatableRead), IsOkAndHolds(0));
  EXPECT_THAT(read_twice(MySqlIsolation::kSerializable), IsOkAndHolds(-1));
  EXPECT_THAT(
      pool.Transact({.access = MySqlAccess::kReadOnly},
                    [](MySqlTransaction& tx) { return tx.Execute("delete from t").status(); }),
      StatusIs(test::kFailedPrecondition));
}

// --- Stopping.

BOBBIN_IO_TEST(MySqlPoolTest, AStatementThatIsStoppedLeavesNothingBehind) {
  MySqlPool pool = MustOpen({.server = Patient(MySqlService::Shared()), .connections_max = 1});
  for (int round = 0; round < Rounds(60); ++round) {
    {
      const DeadlineScope soon(std::chrono::microseconds(random().Below(4000)));
      const absl::StatusOr<Rows> slow = pool.Query("select sleep(60) + benchmark(1, 1)");
      EXPECT_THAT(slow.status(), StatusIs(test::kDeadlineExceeded));
    }
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  }
  EXPECT_EQ(pool.Statistics().opened, 1U);  // It was the same connection all the time.
}

// What no other statement has in its text: one whose connection was lost may still run.
std::string NewMark() {
  static std::atomic<int> count{0};
  return "bobbin mark " + std::to_string(getpid()) + "." + std::to_string(++count) + ".";
}

// Whether the server runs a statement with `mark` in it.
bool IsRunning(MySqlPool& pool, const std::string& mark) {
  auto rows = pool.Query(
      "select count(*) from information_schema.processlist where info like concat('%', $1, '%') "
      "and id <> connection_id()",
      mark);
  return rows.ok() && rows->Only<int>().value() == 1;
}

BOBBIN_IO_TEST(MySqlPoolTest, ACancelReachesTheServer) {
  MySqlPool pool = MustOpen({.server = Patient(MySqlService::Shared())});
  const std::string mark = NewMark();
  const std::string sql = "select sleep(600) /* " + mark + " */";
  const auto is_running = [&] { return IsRunning(pool, mark); };
  VirtualThread sleeper = Spawn([&] { return pool.Query(UncheckedSql(sql)).status(); });
  AwaitTrue(is_running);
  sleeper.Cancel();
  EXPECT_THAT(sleeper.Join(), StatusIs(test::kCancelled));
  EXPECT_FALSE(is_running());
}

BOBBIN_IO_TEST(MySqlPoolTest, ATransactionGoesOnAfterAStatementThatWasStopped) {
  MySqlDatabase database;
  MySqlPool pool = MustOpen({.server = Patient(database.server()), .connections_max = 1});
  ASSERT_OK(pool.ExecuteScript("create table t(n int)"));
  for (int round = 0; round < Rounds(20); ++round) {
    EXPECT_OK(pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into t values (1)").status());
      {
        const DeadlineScope soon(std::chrono::microseconds(random().Below(3000)));
        EXPECT_THAT(tx.Query("select sleep(60)").status(), StatusIs(test::kDeadlineExceeded));
      }
      return tx.Execute("insert into t values (2)").status();
    }));
  }
  EXPECT_THAT(pool.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(2 * Rounds(20)));
}

BOBBIN_IO_TEST(MySqlPoolTest, AnUnansweredCancelCostsTheConnection) {
  TcpProxy proxy(MySqlService::Shared().port);
  {
    MySqlServer server = SharedBy(proxy.port());
    server.cancel_wait_max = milliseconds(10);
    MySqlPool pool = MustOpen({.server = server, .connections_max = 1});
    proxy.Stall();
    // A deadline that is too short for a loaded machine passes before the statement is sent.
    for (milliseconds patience(10); pool.Statistics().discarded == 0; patience *= 2) {
      const DeadlineScope soon(patience);
      EXPECT_THAT(pool.Query("select 1").status(), StatusIs(test::kDeadlineExceeded));
    }
    proxy.Resume();
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
    EXPECT_EQ(pool.Statistics().opened, 2U);
    EXPECT_EQ(pool.Statistics().discarded, 1U);
  }
}

BOBBIN_IO_TEST(MySqlPoolTest, WhatIsHalfSentWhenItIsStoppedCostsTheConnection) {
  TcpProxy proxy(MySqlService::Shared().port);
  {
    MySqlPool pool = MustOpen({.server = SharedBy(proxy.port()), .connections_max = 1});
    EXPECT_OK(pool.Query("select length($1)", "x"));
    proxy.Stall();
    const std::string large(32 << 20, 'x');  // More than sockets and proxy take.
    for (milliseconds patience(10); pool.Statistics().discarded == 0; patience *= 2) {
      const DeadlineScope soon(patience);
      EXPECT_THAT(pool.Query("select length($1)", large).status(),
                  StatusIs(test::kDeadlineExceeded));
    }
    proxy.Resume();
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
    EXPECT_EQ(pool.Statistics().discarded, 1U);
  }
}

BOBBIN_IO_TEST(MySqlPoolTest, ADeadlineCoversConnecting) {
  TcpProxy proxy(MySqlService::Shared().port);
  proxy.Stall();
  MySqlServer server = SharedBy(proxy.port());
  {
    const DeadlineScope soon(milliseconds(10));
    EXPECT_THAT(MySqlPool::Open({.server = server}).status(), StatusIs(test::kDeadlineExceeded));
  }
  server.connect_wait_max = milliseconds(10);
  EXPECT_THAT(MySqlPool::Open({.server = server}).status(), StatusIs(test::kUnavailable));
}

// --- The pool.

BOBBIN_IO_TEST(MySqlPoolTest, OpenSaysWhyItCannot) {
  const auto open = [](const std::function<void(MySqlServer&)>& change) {
    MySqlServer server = MySqlService::Shared();
    change(server);
    return MySqlPool::Open({.server = server}).status();
  };
  EXPECT_THAT(open([](MySqlServer& server) { server.database = "nowhere"; }), StatusIs(kNotFound));
  EXPECT_THAT(open([](MySqlServer& server) {
                server.user = "guarded";
                server.password = "wrong";
              }),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_OK(open([](MySqlServer& server) {
    server.user = "guarded";
    server.password = "secret";
  }));
  EXPECT_THAT(open([](MySqlServer& server) { server.port = 1; }), StatusIs(test::kUnavailable));
  // No name: nobody need be asked.
  EXPECT_THAT(open([](MySqlServer& server) { server.host = "no..where"; }),
              StatusIs(kInvalidArgument));
  // Of several addresses, the one that answers.
  EXPECT_OK(open([](MySqlServer& server) { server.host = "localhost"; }));
}

BOBBIN_IO_TEST(MySqlPoolTest, AUnixSocketIsAsGood) {
  MySqlPool pool = OpenMySql();
  auto path = pool.Query("select @@socket")->Only<std::string>();
  ASSERT_OK(path);
  MySqlServer server = Patient(MySqlService::Shared());
  server.socket = *path;
  server.port = 1;
  MySqlPool by_socket = MustOpen({.server = server});
  EXPECT_THAT(by_socket.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  const DeadlineScope soon(milliseconds(5));
  EXPECT_THAT(by_socket.Query("select sleep(60)").status(), StatusIs(test::kDeadlineExceeded));
}

BOBBIN_IO_TEST(MySqlPoolTest, NoMoreConnectionsThanItMayHave) {
  MySqlPool pool = OpenMySql(3);
  TaskGroup group;
  for (int i = 0; i < 40; ++i) {
    group.Spawn({.migrates = true}, [&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool.Query("select sleep(0.002), 7"));
      EXPECT_THAT(rows[0].Get<int>(1), IsOkAndHolds(7));
      return absl::OkStatus();
    });
  }
  ASSERT_OK(group.Wait());
  const PoolStatistics now = pool.Statistics();
  EXPECT_LE(now.opened, 3U);
  EXPECT_EQ(now.open, now.idle);
  EXPECT_EQ(now.held, 0U);
  EXPECT_EQ(now.waiting, 0U);
}

BOBBIN_IO_TEST(MySqlPoolTest, ADeadIdleConnectionIsNotGivenAway) {
  MySqlPool pool = OpenMySql();
  MySqlPool other = OpenMySql();
  for (int round = 0; round < 5; ++round) {
    auto id = pool.Query("select connection_id()")->Only<int>();
    ASSERT_OK(id);
    const std::string kill = "kill " + std::to_string(*id);
    ASSERT_OK(other.Execute(UncheckedSql(kill)));
    AwaitTrue([&] {
      return other.Query("select count(*) from information_schema.processlist where id = $1", *id)
                 ->Only<int>()
                 .value() == 0;
    });
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  }
}

BOBBIN_IO_TEST(MySqlPoolTest, ALostConnectionIsToldAndReplaced) {
  TcpProxy proxy(MySqlService::Shared().port);
  {
    MySqlPool pool = MustOpen({.server = SharedBy(proxy.port()), .connections_max = 2});
    MySqlPool other = OpenMySql(1);
    const std::string mark = NewMark();
    const std::string sql = "select sleep(600) /* " + mark + " */";
    VirtualThread victim = Spawn([&] { return pool.Query(UncheckedSql(sql)).status(); });
    AwaitTrue([&] { return IsRunning(other, mark); });
    proxy.Cut();
    EXPECT_THAT(victim.Join(), StatusIs(test::kUnavailable));
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
    // The server says nothing more.
    proxy.HalfClose();
    AwaitTrue([&] { return pool.Query("select 42").ok(); });
  }
}

BOBBIN_IO_TEST(MySqlPoolTest, ALostConnectionEndsItsTransaction) {
  MySqlDatabase database;
  TcpProxy proxy(MySqlService::Shared().port);
  {
    MySqlServer server = database.server();
    server.port = static_cast<uint16_t>(proxy.port());
    MySqlPool pool = MustOpen({.server = server, .connections_max = 1});
    ASSERT_OK(pool.ExecuteScript("create table t(n int)"));
    EXPECT_THAT(pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(tx.Execute("insert into t values (1)").status());
      proxy.Cut();
      EXPECT_THAT(tx.Query("select 1").status(), StatusIs(test::kUnavailable));
      EXPECT_THAT(tx.Query("select 1").status(), StatusIs(test::kUnavailable));
      return absl::OkStatus();
    }),
                StatusIs(absl::StatusCode::kUnknown));
    EXPECT_THAT(pool.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(0));
  }
}

BOBBIN_IO_TEST(MySqlPoolTest, WhatComesInSmallPiecesIsWhole) {
  TcpProxy proxy(MySqlService::Shared().port);
  {
    proxy.PassInPieces(37);
    MySqlPool pool = MustOpen({.server = SharedBy(proxy.port())});
    auto rows = pool.Query("select seq from seq_1_to_50");
    ASSERT_OK(rows);
    EXPECT_EQ(rows->size(), 50U);
  }
}

BOBBIN_IO_FOREIGN_TEST(MySqlPoolTest, ForeignThreadsMayUseIt) {
  MySqlPool pool = MustOpen({.server = Patient(MySqlService::Shared())});
  EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  const DeadlineScope soon(milliseconds(5));
  EXPECT_THAT(pool.Query("select sleep(60)").status(), StatusIs(test::kDeadlineExceeded));
}

// --- Addresses as texts.

TEST(MySqlServerTest, ATextSaysWhereItIs) {
  auto server = MySqlServer::Parse("mysql://me:p%40ss@db.example:3307/main?socket=%2Frun%2Fs");
  ASSERT_OK(server);
  EXPECT_EQ(server->user, "me");
  EXPECT_EQ(server->password, "p@ss");
  EXPECT_EQ(server->host, "db.example");
  EXPECT_EQ(server->port, 3307);
  EXPECT_EQ(server->database, "main");
  EXPECT_EQ(server->socket, "/run/s");
  EXPECT_EQ(server->tls, MySqlTls::kDisabled);
  server = MySqlServer::Parse("mysql://db?ssl-mode=VERIFY_IDENTITY&ssl-ca=%2Fca.pem");
  ASSERT_OK(server);
  EXPECT_EQ(server->tls, MySqlTls::kVerifyIdentity);
  EXPECT_EQ(server->ca_file, "/ca.pem");
  EXPECT_EQ(MySqlServer::Parse("mysql://")->host, "localhost");
  EXPECT_EQ(MySqlServer::Parse("mysql://[::1]:3307")->host, "::1");
  EXPECT_EQ(MySqlServer::Parse("mysql://[::1]")->port, 3306);
  for (const std::string_view wrong :
       {"", "db", "postgresql://db", "mysql://db:x", "mysql://db:0", "mysql://db:99999",
        "mysql://%4", "mysql://a%xx@db", "mysql://::1]", "mysql://db?speed=11",
        "mysql://db?ssl-mode=PREFERRED"}) {
    EXPECT_THAT(MySqlServer::Parse(wrong).status(), StatusIs(kInvalidArgument)) << wrong;
  }
}

}  // namespace
}  // namespace bobbin::db
