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
#include <bobbin/core/wait_group.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/pg_test.h"
#include "tests/db/tcp_proxy.h"

namespace bobbin::db {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::AwaitTrue;
using test::IsOkAndHolds;
using test::MustOpen;
using test::PostgresService;
using test::Rounds;
using test::Schema;
using test::StatusIs;
using test::TcpProxy;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kAlreadyExists = absl::StatusCode::kAlreadyExists;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

// What the server answers for a value that is sent as a `type`.
template <typename T>
absl::StatusOr<T> Echo(PgPool& pool, std::string_view type, const T& value) {
  const std::string sql = "select $1::" + std::string(type);
  BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool.Query(UncheckedSql(sql), value));
  return rows.Only<T>();
}

std::vector<std::byte> BytesOf(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// --- Statements and values.

BOBBIN_IO_TEST(PgPoolTest, AQueryReturnsItsRows) {
  PgPool pool = Schema().Open();
  auto rows = pool.Query("select i, i * 1.5::float8, 'row ' || i from generate_series(1, 3) i");
  ASSERT_OK(rows);
  std::vector<std::string> seen;
  for (auto [i, real, text] : rows->As<int, double, std::string_view>()) {
    seen.push_back(std::to_string(i) + " " + std::to_string(real) + " " + std::string(text));
  }
  EXPECT_THAT(seen, ElementsAre("1 1.500000 row 1", "2 3.000000 row 2", "3 4.500000 row 3"));
  EXPECT_EQ(rows->column_name(2), "?column?");
}

BOBBIN_IO_TEST(PgPoolTest, ValuesComeBackAsTheyWere) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  for (int round = 0; round < 3; ++round) {  // The first times are not prepared.
    for (const int64_t value :
         {int64_t{0}, int64_t{-1}, int64_t{42}, std::numeric_limits<int64_t>::min(),
          std::numeric_limits<int64_t>::max()}) {
      EXPECT_THAT(Echo(pool, "int8", value), IsOkAndHolds(value));
    }
    EXPECT_THAT(Echo<int16_t>(pool, "int2", -32768), IsOkAndHolds(-32768));
    EXPECT_THAT(Echo<int32_t>(pool, "int4", 2147483647), IsOkAndHolds(2147483647));
    EXPECT_THAT(Echo(pool, "bool", true), IsOkAndHolds(true));
    EXPECT_THAT(Echo(pool, "bool", false), IsOkAndHolds(false));
    for (const double value : {0.0, 0.1, -1e300, 5e-324, std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()}) {
      EXPECT_THAT(Echo(pool, "float8", value), IsOkAndHolds(value));
    }
    EXPECT_TRUE(std::isnan(Echo(pool, "float8", std::nan("")).value()));
    EXPECT_THAT(Echo(pool, "float4", 0.1F), IsOkAndHolds(0.1F));
    for (const std::string value :
         {"", "a", "it's \"quoted\" \\ \n\t", "\xc3\xa4\xe2\x82\xac", "NULL"}) {
      EXPECT_THAT(Echo(pool, "text", value), IsOkAndHolds(value));
    }
    EXPECT_THAT(Echo<std::string>(pool, "numeric", "123456789012345678901234567890.123456789"),
                IsOkAndHolds("123456789012345678901234567890.123456789"));
    EXPECT_THAT(Echo<std::string>(pool, "jsonb", "{\"a\": [1, null]}"),
                IsOkAndHolds("{\"a\": [1, null]}"));
    EXPECT_THAT(Echo(pool, "text", std::optional<std::string>()), IsOkAndHolds(std::nullopt));
    EXPECT_THAT(Echo(pool, "int4", std::optional<int>(7)), IsOkAndHolds(7));
  }
}

BOBBIN_IO_TEST(PgPoolTest, BlobsComeBackAsTheyWere) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  std::vector<std::byte> all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(Echo(pool, "bytea", all), IsOkAndHolds(all));
    EXPECT_THAT(Echo(pool, "bytea", std::vector<std::byte>()), IsOkAndHolds(testing::IsEmpty()));
    EXPECT_THAT(Echo(pool, "bytea", std::optional<std::vector<std::byte>>()),
                IsOkAndHolds(std::nullopt));
  }
  auto old = pool.Transact([&](PgTransaction& tx) -> absl::StatusOr<Rows> {
    BOBBIN_RETURN_IF_ERROR(tx.Execute("set local bytea_output = escape").status());
    return tx.Query("select $1::bytea", all);
  });
  EXPECT_THAT(old->Only<std::vector<std::byte>>(), IsOkAndHolds(all));
}

BOBBIN_IO_TEST(PgPoolTest, TimesComeBackAsTheyWere) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  std::vector<absl::Time> times = {
      absl::UnixEpoch(),
      absl::InfiniteFuture(),
      absl::InfinitePast(),
      absl::FromCivil(absl::CivilSecond(1, 1, 1), absl::UTCTimeZone()),
      absl::FromCivil(absl::CivilSecond(-43, 3, 15, 12), absl::UTCTimeZone()),  // 44 BC.
      absl::FromCivil(absl::CivilSecond(123456, 12, 31, 23, 59, 59), absl::UTCTimeZone()),
      absl::FromUnixMicros(1'700'000'000'123'456)};
  for (int i = 0; i < 50; ++i) {
    times.push_back(
        absl::FromUnixMicros(static_cast<int64_t>(random().Below(1ULL << 52)) - (1LL << 51)));
  }
  for (const std::string_view zone :
       {"utc", "america/new_york", "asia/kolkata", "africa/monrovia"}) {
    EXPECT_OK(pool.Transact([&](PgTransaction& tx) -> absl::Status {
      const std::string set = "set local timezone = '" + std::string(zone) + "'";
      BOBBIN_RETURN_IF_ERROR(tx.Execute(UncheckedSql(set)).status());
      for (const absl::Time time : times) {
        BOBBIN_ASSIGN_OR_RETURN(const Rows rows, tx.Query("select $1::timestamptz", time));
        EXPECT_THAT(rows.Only<absl::Time>(), IsOkAndHolds(time)) << zone;
      }
      return absl::OkStatus();
    }));
  }
  for (const absl::Time time : times)
    EXPECT_THAT(Echo(pool, "timestamp", time), IsOkAndHolds(time));
  for (const absl::CivilDay day : {absl::CivilDay(1970, 1, 1), absl::CivilDay(2024, 2, 29),
                                   absl::CivilDay(-43, 3, 15), absl::CivilDay(12345, 6, 7)}) {
    EXPECT_THAT(Echo(pool, "date", day), IsOkAndHolds(day));
  }
  const auto uuid = Uuid::Parse("0f8FAD5b-d9cb-469f-a165-70867728950E");
  ASSERT_TRUE(uuid.has_value());
  EXPECT_THAT(Echo(pool, "uuid", *uuid), IsOkAndHolds(*uuid));
}

BOBBIN_IO_TEST(PgPoolTest, ArraysComeBackAsTheyWere) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  const std::vector<int64_t> numbers = {1, -2, std::numeric_limits<int64_t>::max()};
  EXPECT_THAT(Echo(pool, "int8[]", numbers), IsOkAndHolds(numbers));
  EXPECT_THAT(Echo(pool, "int4[]", std::vector<int>()), IsOkAndHolds(testing::IsEmpty()));
  const std::vector<std::optional<std::string>> texts = {
      "a", "", std::nullopt, "NULL", "with \"quotes\", {braces} and \\", " "};
  EXPECT_THAT(Echo(pool, "text[]", texts), IsOkAndHolds(texts));
  const std::vector<bool> bits = {true, false};
  EXPECT_THAT(Echo(pool, "bool[]", bits), IsOkAndHolds(bits));
  const std::vector<double> reals = {0.1, -1e300};
  EXPECT_THAT(Echo(pool, "float8[]", reals), IsOkAndHolds(reals));
  const std::vector<std::vector<std::byte>> blobs = {BytesOf("a\\b"), {}};
  EXPECT_THAT(Echo(pool, "bytea[]", blobs), IsOkAndHolds(blobs));
  const std::vector<std::vector<int>> matrix = {{1, 2}, {3, 4}};
  EXPECT_THAT(Echo(pool, "int4[]", matrix), IsOkAndHolds(matrix));
  const std::vector<absl::Time> times = {absl::UnixEpoch()};
  EXPECT_THAT(Echo(pool, "timestamptz[]", times), IsOkAndHolds(times));
  auto shifted = pool.Query("select '[0:1]={7,8}'::int4[]");
  EXPECT_THAT(shifted->Only<std::vector<int>>(), IsOkAndHolds(ElementsAre(7, 8)));
}

BOBBIN_IO_TEST(PgPoolTest, ExecuteCountsWhatHasChanged) {
  Schema schema;
  PgPool pool = schema.OpenWithTable();
  EXPECT_THAT(pool.Execute("insert into t select generate_series(1, 10)"), IsOkAndHolds(10));
  EXPECT_THAT(pool.Execute("update t set n = n + 1 where n > $1", 7), IsOkAndHolds(3));
  EXPECT_THAT(pool.Execute("delete from t where n > $1 returning n", 10), IsOkAndHolds(1));
  EXPECT_THAT(pool.Execute("select * from t"), IsOkAndHolds(0));
  EXPECT_THAT(pool.Execute("truncate t"), IsOkAndHolds(0));
}

BOBBIN_IO_TEST(PgPoolTest, AnErrorSaysWhatTheServerSays) {
  Schema schema;
  PgPool pool = schema.Open();
  ASSERT_OK(
      pool.ExecuteScript("create table account(id int primary key, cents int constraint not_poor "
                         "check (cents >= 0))"));
  ASSERT_OK(pool.Execute("insert into account values (1, 100)"));

  const absl::Status twice = pool.Execute("insert into account values (1, 1)").status();
  EXPECT_THAT(twice, StatusIs(kAlreadyExists));
  auto error = PgErrorOf(twice);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->sqlstate, "23505");
  EXPECT_EQ(error->constraint, "account_pkey");
  EXPECT_EQ(error->table, "account");
  EXPECT_EQ(error->schema, schema.name());
  EXPECT_THAT(error->detail, HasSubstr("(id)=(1)"));

  const absl::Status poor = pool.Execute("update account set cents = $1", -1).status();
  EXPECT_THAT(poor, StatusIs(test::kFailedPrecondition));
  EXPECT_EQ(PgErrorOf(poor)->constraint, "not_poor");

  const absl::Status wrong = pool.Query("select 1 frm account").status();
  EXPECT_THAT(wrong, StatusIs(kInvalidArgument));
  EXPECT_EQ(PgErrorOf(wrong)->position, 14);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("(sqlstate 42601)"));

  EXPECT_THAT(pool.Query("select * from nothing").status(), StatusIs(kNotFound));
  EXPECT_THAT(pool.Query("select $1::int4", "seven").status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Query("select $1::int4").status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Query("select $1::text", std::string_view("a\0b", 3)).status(),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Query("copy account to stdout").status(), StatusIs(kInvalidArgument));
  EXPECT_FALSE(PgErrorOf(absl::OkStatus()).has_value());
  // None of it has left anything behind.
  EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
}

BOBBIN_IO_TEST(PgPoolTest, APreparedTextThatDoesNotFitAnyMoreIsPreparedAgain) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  ASSERT_OK(pool.Execute("insert into t values (1)"));
  for (int i = 0; i < 3; ++i) ASSERT_OK(pool.Query("select * from t"));
  ASSERT_OK(pool.ExecuteScript("alter table t add column more text default 'x'"));
  auto rows = pool.Query("select * from t");
  ASSERT_OK(rows);
  EXPECT_EQ(rows->column_count(), 2U);
  // The server has forgotten all of them.
  for (int i = 0; i < 3; ++i) ASSERT_OK(pool.Query("select 1"));
  ASSERT_OK(pool.Execute("discard all"));
  EXPECT_OK(pool.Query("select 1"));
}

BOBBIN_IO_TEST(PgPoolTest, OnlySoManyTextsAreKept) {
  PgPool pool =
      MustOpen({.server = {.conninfo = PostgresService::SharedConninfo(), .statements_kept_max = 3},
                .connections_max = 1});
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 10; ++i) {
      const std::string sql = "select " + std::to_string(i / 2);
      EXPECT_THAT(pool.Query(UncheckedSql(sql))->Only<int>(), IsOkAndHolds(i / 2));
    }
  }
  auto kept = pool.Query("select count(*) from pg_prepared_statements");
  EXPECT_LE(kept->Only<int>().value(), 3);
}

BOBBIN_IO_TEST(PgPoolTest, WhatIsLargeBothWaysDoesNotGetStuck) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  const std::string large(test::kUnderSanitizer ? 4 << 20 : 32 << 20, 'x');
  auto rows = pool.Query("select $1::text, md5($1::text)", large);
  ASSERT_OK(rows);
  EXPECT_EQ((*rows)[0].Get<std::string_view>(0)->size(), large.size());
}

BOBBIN_IO_TEST(PgPoolTest, NoticesGoWhereTheyAreWanted) {
  std::atomic<int> notices{0};
  std::string last;
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo(),
                                     .on_notice =
                                         [&](const PgError& notice) {
                                           ++notices;
                                           last = notice.message;
                                         }},
                          .connections_max = 1});
  EXPECT_OK(pool.ExecuteScript(
      "do $$begin for i in 1..1000 loop raise notice 'number %', i; end loop; end$$"));
  EXPECT_EQ(notices, 1000);
  EXPECT_EQ(last, "number 1000");
}

// --- Transactions.

BOBBIN_IO_TEST(PgTransactionTest, ItCommitsWhatSucceedsAndRollsBackTheRest) {
  Schema schema;
  PgPool pool = schema.OpenWithTable();
  const auto insert = [](PgTransaction& tx) {
    return tx.Execute("insert into t values (1)").status();
  };
  const auto count = [&] { return pool.Query("select count(*) from t")->Only<int>().value(); };
  EXPECT_OK(pool.Transact(insert));
  EXPECT_EQ(count(), 1);

  EXPECT_THAT(pool.Transact([&](PgTransaction& tx) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(insert(tx));
    EXPECT_THAT(tx.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(2));
    EXPECT_EQ(count(), 1);  // Another connection.
    return absl::DataLossError("no");
  }),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(count(), 1);

  EXPECT_THROW(pool.Transact([&](PgTransaction& tx) -> absl::Status {
                     EXPECT_OK(insert(tx));
                     throw std::runtime_error("no");
                   })
                   .IgnoreError(),
               std::runtime_error);
  EXPECT_EQ(count(), 1);

  // A statement has failed, and the body says that all is well.
  EXPECT_THAT(pool.Transact([&](PgTransaction& tx) -> absl::Status {
    EXPECT_OK(insert(tx));
    EXPECT_THAT(tx.Query("select 1 / 0").status(), StatusIs(kInvalidArgument));
    return absl::OkStatus();
  }),
              StatusIs(test::kFailedPrecondition));
  EXPECT_EQ(count(), 1);

  // A value comes out.
  const absl::StatusOr<int64_t> changed =
      pool.Transact([&](PgTransaction& tx) { return tx.Execute("update t set n = 2"); });
  EXPECT_THAT(changed, IsOkAndHolds(1));
  EXPECT_EQ(pool.Statistics().held, 0U);
}

BOBBIN_IO_TEST(PgTransactionTest, ItsEndIsItsOwn) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  EXPECT_THAT(pool.Transact([](PgTransaction& tx) -> absl::Status {
    EXPECT_THAT(tx.Execute("commit").status(), StatusIs(test::kFailedPrecondition));
    EXPECT_THAT(tx.Execute("insert into t values (1)").status(),
                StatusIs(test::kFailedPrecondition));
    return absl::OkStatus();
  }),
              StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(pool.Execute("begin").status(), StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(pool.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(0));
}

BOBBIN_IO_TEST(PgTransactionTest, HooksAreCalledWhenItsConnectionIsFreeAgain) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  std::vector<std::string> calls;
  const auto body = [&](absl::Status end) {
    return [&calls, &pool, end](PgTransaction& tx) -> absl::Status {
      tx.AfterCommit([&] {
        calls.push_back("committed");
        EXPECT_OK(pool.Query("select 1"));  // The only connection.
      });
      tx.AfterCommit([&] { calls.push_back("committed, too"); });
      tx.AfterRollback([&] { calls.push_back("rolled back"); });
      EXPECT_TRUE(calls.empty());
      return end;
    };
  };
  EXPECT_OK(pool.Transact(body(absl::OkStatus())));
  EXPECT_THAT(calls, ElementsAre("committed", "committed, too"));
  calls.clear();
  EXPECT_THAT(pool.Transact(body(absl::DataLossError(""))), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(calls, ElementsAre("rolled back"));
}

BOBBIN_IO_TEST(PgTransactionTest, WhatCannotBeSerializedIsTriedAgain) {
  Schema schema;
  PgPool pool = schema.OpenWithTable();
  ASSERT_OK(pool.Execute("insert into t values (0)"));
  std::atomic<int> attempts{0};
  constexpr int kThreads = 4;
  constexpr int kRounds = 5;
  TaskGroup group;
  for (int i = 0; i < kThreads; ++i) {
    group.Spawn([&]() -> absl::Status {
      for (int round = 0; round < kRounds; ++round) {
        BOBBIN_RETURN_IF_ERROR(pool.Transact(
            {.isolation = PgIsolation::kSerializable, .attempts_max = 100},
            [&](PgTransaction& tx) -> absl::Status {
              ++attempts;
              BOBBIN_ASSIGN_OR_RETURN(const Rows rows, tx.Query("select n from t"));
              Yield();
              return tx.Execute("update t set n = $1", rows.Only<int>().value() + 1).status();
            }));
      }
      return absl::OkStatus();
    });
  }
  ASSERT_OK(group.Wait());
  EXPECT_THAT(pool.Query("select n from t")->Only<int>(), IsOkAndHolds(kThreads * kRounds));
  EXPECT_GE(attempts, kThreads * kRounds);
}

BOBBIN_IO_TEST(PgTransactionTest, OneThatCannotBeSerializedSaysSo) {
  Schema schema;
  PgPool pool = schema.OpenWithTable();
  ASSERT_OK(pool.Execute("insert into t values (0)"));
  const absl::Status status = pool.Transact(
      {.isolation = PgIsolation::kRepeatableRead}, [&](PgTransaction& tx) -> absl::Status {
        BOBBIN_RETURN_IF_ERROR(tx.Query("select n from t").status());
        BOBBIN_RETURN_IF_ERROR(pool.Execute("update t set n = 7").status());
        return tx.Execute("update t set n = 8").status();
      });
  EXPECT_THAT(status, StatusIs(test::kAborted));
  EXPECT_TRUE(IsSerializationFailure(status));
  EXPECT_THAT(pool.Transact({.access = PgAccess::kReadOnly},
                            [](PgTransaction& tx) { return tx.Execute("delete from t").status(); }),
              StatusIs(test::kFailedPrecondition));
}

// --- Stopping.

// A statement that takes ten minutes, and can be told from all others.
class LongStatement {
 public:
  LongStatement() {
    static std::atomic<int> count{0};
    mark_ = "bobbin mark " + std::to_string(getpid()) + "_" + std::to_string(++count);
  }

  absl::Status RunOn(PgPool& pool) const {
    const std::string sql = "select pg_sleep(600) /* " + mark_ + " */";
    return pool.Query(UncheckedSql(sql)).status();
  }
  // Whether the server is at work on it. It does not notice that a client is lost.
  bool IsRunning(PgPool& pool) const {
    const absl::StatusOr<Rows> rows = pool.Query(
        "select count(*) from pg_stat_activity where state = 'active' and query like '%' || $1 || "
        "'%' and pid <> pg_backend_pid()",
        mark_);
    return rows.ok() && rows->Only<int>().value() == 1;
  }

 private:
  std::string mark_;
};

BOBBIN_IO_TEST(PgPoolTest, AStatementThatIsStoppedLeavesNothingBehind) {
  PgPool pool = MustOpen(
      {.server = {.conninfo = PostgresService::SharedConninfo(), .cancel_wait_max = seconds(20)},
       .connections_max = 1});
  for (int round = 0; round < Rounds(100); ++round) {
    {
      const DeadlineScope soon(std::chrono::microseconds(random().Below(4000)));
      const absl::StatusOr<Rows> slow = pool.Query("select pg_sleep(60), 1");
      EXPECT_THAT(slow.status(), StatusIs(test::kDeadlineExceeded));
    }
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  }
  EXPECT_EQ(pool.Statistics().opened, 1U);  // It was the same connection all the time.
}

BOBBIN_IO_TEST(PgPoolTest, ACancelReachesTheServer) {
  PgPool pool = MustOpen(
      {.server = {.conninfo = PostgresService::SharedConninfo(), .cancel_wait_max = seconds(20)}});
  const LongStatement statement;
  VirtualThread sleeper = Spawn([&] { return statement.RunOn(pool); });
  AwaitTrue([&] { return statement.IsRunning(pool); });
  sleeper.Cancel();
  EXPECT_THAT(sleeper.Join(), StatusIs(test::kCancelled));
  EXPECT_FALSE(statement.IsRunning(pool));
}

BOBBIN_IO_TEST(PgPoolTest, AnUnansweredCancelCostsTheConnection) {
  TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
  {
    PgPool pool = MustOpen(
        {.server = {.conninfo = test::WithPort(PostgresService::SharedConninfo(), proxy.port()),
                    .cancel_wait_max = milliseconds(10)},
         .connections_max = 1});
    proxy.Stall();
    {
      const DeadlineScope soon(milliseconds(10));
      EXPECT_THAT(pool.Query("select 1").status(), StatusIs(test::kDeadlineExceeded));
    }
    proxy.Resume();
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
    EXPECT_EQ(pool.Statistics().opened, 2U);
    EXPECT_EQ(pool.Statistics().discarded, 1U);
  }
}

BOBBIN_IO_TEST(PgPoolTest, ADeadlineCoversConnecting) {
  TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
  proxy.Stall();
  const std::string conninfo = test::WithPort(PostgresService::SharedConninfo(), proxy.port());
  {
    const DeadlineScope soon(milliseconds(10));
    EXPECT_THAT(PgPool::Open({.server = {.conninfo = conninfo}}).status(),
                StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_THAT(PgPool::Open({.server = {.conninfo = conninfo, .connect_wait_max = milliseconds(10)}})
                  .status(),
              StatusIs(test::kUnavailable));
}

// --- The pool.

BOBBIN_IO_TEST(PgPoolTest, OpenSaysWhyItCannot) {
  const std::string& conninfo = PostgresService::SharedConninfo();
  EXPECT_THAT(PgPool::Open({.server = {.conninfo = "no such thing"}}).status(),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(PgPool::Open({.server = {.conninfo = conninfo + " dbname=nowhere"}}).status(),
              StatusIs(kNotFound));
  EXPECT_THAT(
      PgPool::Open({.server = {.conninfo = conninfo + " user=guarded password=wrong"}}).status(),
      StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_OK(PgPool::Open({.server = {.conninfo = conninfo + " user=guarded password=secret"}}));
  EXPECT_THAT(PgPool::Open({.server = {.conninfo = "host=127.0.0.1 port=1"}}).status(),
              StatusIs(test::kUnavailable));
  // No name: nobody need be asked.
  EXPECT_THAT(PgPool::Open({.server = {.conninfo = "host=no..where"}}).status(),
              StatusIs(kInvalidArgument));
  // Of several places, the first one that answers; names are looked up.
  EXPECT_OK(PgPool::Open({.server = {.conninfo = test::WithPort(conninfo, 0) +
                                                 " host=no..where,127.0.0.1,localhost port=1,1," +
                                                 std::to_string(test::PortOf(conninfo))}}));
}

BOBBIN_IO_TEST(PgPoolTest, NoMoreConnectionsThanItMayHave) {
  Schema schema;
  PgPool pool = schema.Open(3);
  TaskGroup group;
  for (int i = 0; i < 40; ++i) {
    group.Spawn([&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool.Query("select pg_sleep(0.002), 7"));
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
  EXPECT_EQ(now.acquired, 41U);
}

BOBBIN_IO_TEST(PgPoolTest, WhoIsRefusedLearnsWhoHoldsWhat) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()},
                          .connections_max = 1,
                          .waiters_max = 1,
                          .acquire_wait_max = milliseconds(5)});
  Event go;
  Event is_held;
  VirtualThread holder = Spawn({.name = "the-holder"}, [&] {
    return pool.Transact([&](PgTransaction&) {
      is_held.Set();
      return go.Wait();
    });
  });
  ASSERT_OK(is_held.Wait());
  const absl::Status exhausted = pool.Query("select 1").status();
  EXPECT_THAT(exhausted, StatusIs(test::kResourceExhausted));
  EXPECT_THAT(std::string(exhausted.message()), HasSubstr("\"the-holder\""));
  EXPECT_THAT(std::string(exhausted.message()), HasSubstr("connections_max"));
  go.Set();
  EXPECT_OK(holder.Join());

  const absl::Status nested =
      pool.Transact([&](PgTransaction&) { return pool.Query("select 1").status(); });
  EXPECT_THAT(nested, StatusIs(test::kResourceExhausted));
  EXPECT_THAT(std::string(nested.message()), HasSubstr("the calling thread itself"));
}

BOBBIN_IO_TEST(PgPoolTest, TooManyWaitersAreRefusedAtOnce) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()},
                          .connections_max = 1,
                          .waiters_max = 1});
  EXPECT_OK(pool.Transact([&](PgTransaction&) -> absl::Status {
    VirtualThread waiter = Spawn([&] { return pool.Query("select 1").status(); });
    AwaitTrue([&] { return pool.Statistics().waiting == 1; });
    EXPECT_THAT(pool.Query("select 1").status(), StatusIs(test::kResourceExhausted));
    waiter.Cancel();
    EXPECT_THAT(waiter.Join(), StatusIs(test::kCancelled));
    return absl::OkStatus();
  }));
  EXPECT_EQ(pool.Statistics().waiting, 0U);
}

BOBBIN_IO_TEST(PgPoolTest, ConnectionsAreGivenInTheOrderInWhichTheyWereAskedFor) {
  PgPool pool =
      MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}, .connections_max = 1});
  std::vector<int> order;
  TaskGroup group;
  EXPECT_OK(pool.Transact([&](PgTransaction&) -> absl::Status {
    for (size_t i = 0; i < 5; ++i) {
      group.Spawn([&, i] {
        return pool.Transact([&](PgTransaction&) {
          order.push_back(static_cast<int>(i));
          return absl::OkStatus();
        });
      });
      AwaitTrue([&] { return pool.Statistics().waiting == i + 1; });
    }
    return absl::OkStatus();
  }));
  EXPECT_OK(group.Wait());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

BOBBIN_IO_TEST(PgPoolTest, ACancelAndAHandOverRaceWithoutLosingAConnection) {
  PgPool pool =
      MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}, .connections_max = 2});
  for (int round = 0; round < Rounds(40); ++round) {
    TaskGroup group;
    for (int i = 0; i < 20; ++i) {
      const auto patience = std::chrono::microseconds(random().Below(3000));
      group.Spawn([&pool, patience]() -> absl::Status {
        const DeadlineScope soon(patience);
        const absl::Status status = pool.Query("select 1").status();
        if (status.code() == test::kDeadlineExceeded) return absl::OkStatus();
        return status;
      });
    }
    ASSERT_OK(group.Wait());
    const PoolStatistics now = pool.Statistics();
    ASSERT_EQ(now.held, 0U);
    ASSERT_EQ(now.waiting, 0U);
  }
  EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
}

BOBBIN_IO_TEST(PgPoolTest, ADeadIdleConnectionIsNotGivenAway) {
  PgPool pool =
      MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}, .connections_max = 4});
  PgPool other = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  for (int round = 0; round < 5; ++round) {
    auto pid = pool.Query("select pg_backend_pid()")->Only<int>();
    ASSERT_OK(pid);
    ASSERT_OK(other.Query("select pg_terminate_backend($1)", *pid));
    AwaitTrue([&] {
      return other.Query("select count(*) from pg_stat_activity where pid = $1", *pid)
                 ->Only<int>()
                 .value() == 0;
    });
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  }
}

BOBBIN_IO_TEST(PgPoolTest, ALostConnectionIsToldAndReplaced) {
  TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
  {
    PgPool pool = MustOpen(
        {.server = {.conninfo = test::WithPort(PostgresService::SharedConninfo(), proxy.port())},
         .connections_max = 2});
    PgPool other = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
    const LongStatement statement;
    VirtualThread victim = Spawn([&] { return statement.RunOn(pool); });
    AwaitTrue([&] { return statement.IsRunning(other); });
    proxy.Cut();
    EXPECT_THAT(victim.Join(), StatusIs(test::kUnavailable));
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
    // The server says nothing more.
    proxy.HalfClose();
    AwaitTrue([&] { return pool.Query("select 42").ok(); });
  }
}

BOBBIN_IO_TEST(PgPoolTest, WhatComesInSmallPiecesIsWhole) {
  TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
  {
    proxy.PassInPieces(37);
    PgPool pool = MustOpen(
        {.server = {.conninfo = test::WithPort(PostgresService::SharedConninfo(), proxy.port())}});
    auto rows = pool.Query("select i from generate_series(1, 50) i");
    ASSERT_OK(rows);
    EXPECT_EQ(rows->size(), 50U);
  }
}

BOBBIN_IO_TEST(PgPoolTest, OldConnectionsAreReplaced) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()},
                          .connections_max = 1,
                          .lifetime_max = std::chrono::nanoseconds(1)});
  auto first = pool.Query("select pg_backend_pid()")->Only<int>();
  auto second = pool.Query("select pg_backend_pid()")->Only<int>();
  EXPECT_NE(first.value(), second.value());
  EXPECT_EQ(pool.Statistics().open, 0U);
}

BOBBIN_IO_TEST(PgPoolTest, IdleConnectionsAreClosed) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()},
                          .connections_max = 3,
                          .idle_max = std::chrono::nanoseconds(1)});
  EXPECT_OK(pool.Query("select 1"));
  EXPECT_LE(pool.Statistics().open, 1U);
}

// Opens as many connections as the pool may have, at once, and gives them back.
absl::Status UseAll(PgPool& pool, int connections) {
  WaitGroup all;
  all.Add(connections);
  TaskGroup group;
  for (int i = 0; i < connections; ++i) {
    group.Spawn([&] {
      return pool.Transact([&](PgTransaction&) {
        all.Done();
        return all.Wait();
      });
    });
  }
  return group.Wait();
}

BOBBIN_IO_TEST(PgPoolTest, APoolAtRestClosesWhatIsIdle) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()},
                          .connections_max = 3,
                          .idle_max = milliseconds(20)});
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(UseAll(pool, 3));
    AwaitTrue([&] { return pool.Statistics().open == 0; });
  }
  EXPECT_EQ(pool.Statistics().discarded, 0U);
}

BOBBIN_IO_TEST(PgPoolTest, APoolAtRestClosesWhatIsTooOld) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()},
                          .connections_max = 3,
                          .lifetime_max = milliseconds(20)});
  ASSERT_OK(UseAll(pool, 3));
  AwaitTrue([&] { return pool.Statistics().open == 0; });
}

BOBBIN_IO_TEST(PgPoolTest, WhatIsClosedAtRestIsNobodysConnection) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()},
                          .connections_max = 2,
                          .idle_max = std::chrono::microseconds(300)});
  TaskGroup group;
  for (int i = 0; i < 4; ++i) {
    const int offset = static_cast<int>(random().Below(1000));
    group.Spawn([&pool, offset]() -> absl::Status {
      for (int n = 0; n < Rounds(40); ++n) {
        BOBBIN_RETURN_IF_ERROR(pool.Query("select 1").status());
        BOBBIN_RETURN_IF_ERROR(SleepFor(std::chrono::microseconds((offset + 137 * n) % 1000)));
      }
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
}

// Wherever its keeper is.
BOBBIN_IO_TEST(PgPoolTest, ARestingPoolIsClosedAtOnce) {
  for (int round = 0; round < Rounds(20); ++round) {
    PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
    if (random().Below(2) == 0) {
      EXPECT_OK(pool.Query("select 1"));
    }
    test::Spin(random().Below(2000));
    if (random().Below(2) == 0) Yield();
    EXPECT_OK(pool.Close());
    EXPECT_EQ(pool.Statistics().open, 0U);
  }
}

BOBBIN_IO_FOREIGN_TEST(PgPoolTest, APoolOutlivesARuntimeThatUsedIt) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  for (int round = 0; round < 2; ++round) {
    Runtime brief({.carriers = 1, .poller = io::AutoPoller()});
    EXPECT_OK(brief.Spawn([&] { return pool.Query("select 1").status(); }).Join());
    EXPECT_OK(brief.Shutdown());
  }
  EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
}

BOBBIN_IO_TEST(PgPoolTest, CloseWaitsForThoseThatHoldAndRefusesTheRest) {
  PgPool pool =
      MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}, .connections_max = 1});
  Event go;
  Event is_held;
  VirtualThread holder = Spawn([&] {
    return pool.Transact([&](PgTransaction&) {
      is_held.Set();
      return go.Wait();
    });
  });
  ASSERT_OK(is_held.Wait());
  VirtualThread waiter = Spawn([&] { return pool.Query("select 1").status(); });
  AwaitTrue([&] { return pool.Statistics().waiting == 1; });
  {
    const DeadlineScope soon(milliseconds(1));
    EXPECT_THAT(pool.Close(), StatusIs(test::kDeadlineExceeded));
  }
  EXPECT_THAT(waiter.Join(), StatusIs(test::kUnavailable));
  EXPECT_THAT(pool.Query("select 1").status(), StatusIs(test::kUnavailable));
  go.Set();
  EXPECT_OK(holder.Join());
  EXPECT_OK(pool.Close());
  EXPECT_OK(pool.Close());
}

BOBBIN_IO_FOREIGN_TEST(PgPoolTest, ForeignThreadsMayUseIt) {
  PgPool pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
  EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  const DeadlineScope soon(milliseconds(5));
  EXPECT_THAT(pool.Query("select pg_sleep(60)").status(), StatusIs(test::kDeadlineExceeded));
}

}  // namespace
}  // namespace bobbin::db
