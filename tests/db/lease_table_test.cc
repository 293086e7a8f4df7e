// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/cron/lease_store_kit.h>
#include <bobbin/db/lease_table.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/lease_kit.h"
#include "tests/db/pg_test.h"
#include "tests/support/twin_process.h"

namespace bobbin::db {
namespace {

using cron::Lease;
using cron::LeaseStore;
using cron::LeaseStoreCheck;
using cron::LeaseStoreKit;
using test::IsOkAndHolds;
using test::OwnStore;
using test::PassTheKit;
using test::Schema;
using test::StatusIs;
using test::TwinProcess;
using Layout = LeaseTableOptions::Layout;

absl::StatusOr<std::unique_ptr<Database>> OpenPostgres(const std::string& conninfo) {
  BOBBIN_ASSIGN_OR_RETURN(PgPool pool,
                          PgPool::Open({.server = {.conninfo = conninfo}, .connections_max = 2}));
  return std::make_unique<PgPool>(std::move(pool));
}

absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path) {
  BOBBIN_ASSIGN_OR_RETURN(
      Sqlite sqlite,
      Sqlite::Open({.path = path, .durability = SqliteDurability::kSinceCheckpoint}));
  return std::make_unique<Sqlite>(std::move(sqlite));
}

// A file of its own, gone at the end.
class File {
 public:
  File() {
    std::string folder = (std::filesystem::temp_directory_path() / "bobbin-leases-XXXXXX").string();
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "leases.db").string(); }

 private:
  std::filesystem::path folder_;
};

BOBBIN_IO_TEST(LeaseTableTest, InPostgresItPassesTheKit) {
  const Schema schema;
  PassTheKit([&] { return OpenPostgres(schema.conninfo()); }, Layout::kMillis);
}

BOBBIN_IO_TEST(LeaseTableTest, InPostgresWithTimestampsItPassesTheKit) {
  const Schema schema;
  PassTheKit([&] { return OpenPostgres(schema.conninfo()); }, Layout::kTimestamps);
}

BOBBIN_IO_TEST(LeaseTableTest, InSqliteItPassesTheKit) {
  const File file;
  PassTheKit([&] { return OpenSqlite(file.path()); }, Layout::kMillis);
}

BOBBIN_IO_TEST(LeaseTableTest, InSqliteWithTimestampsItPassesTheKit) {
  const File file;
  PassTheKit([&] { return OpenSqlite(file.path()); }, Layout::kTimestamps);
}

BOBBIN_IO_TEST(LeaseTableTest, ManyMakeTheTableAtTheSameTime) {
  const Schema schema;
  PgPool pool = schema.Open(8);
  TaskGroup group;
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(LeaseTable table, LeaseTable::Open(pool));
      return table.Claim({.name = "job"}).status();
    });
  }
  EXPECT_OK(group.Wait());
  EXPECT_THAT(LeaseTable::Open(pool, {.table = "a b"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

BOBBIN_IO_TEST(LeaseTableTest, ARowThatSomebodyDeletesIsFree) {
  const Schema schema;
  PgPool pool = schema.Open();
  absl::StatusOr<LeaseTable> table = LeaseTable::Open(pool);
  ASSERT_OK(table);
  const auto lease = table->Claim({.name = "job"});
  ASSERT_OK(lease);
  ASSERT_OK(pool.Execute("delete from scheduler_lock"));
  EXPECT_THAT(table->Extend(**lease, absl::Seconds(1)).status(), StatusIs(test::kAborted));
  EXPECT_TRUE(table->Claim({.name = "job"})->has_value());
}

// What another implementation writes, word for word as its own table wants it.
BOBBIN_IO_TEST(LeaseTableTest, RowsAreSharedWithOthers) {
  const Schema schema;
  PgPool pool = schema.Open();
  ASSERT_OK(pool.ExecuteScript(
      "create table shedlock(name varchar(64) not null, lock_until timestamp not null, "
      "locked_at timestamp not null, locked_by varchar(255) not null, primary key (name));"
      "insert into shedlock values ('held', timezone('utc', current_timestamp) + interval '1 hour',"
      " timezone('utc', current_timestamp), 'java'),"
      "('over', timezone('utc', current_timestamp) - interval '1 second',"
      " timezone('utc', current_timestamp) - interval '1 hour', 'java')"));
  absl::StatusOr<LeaseTable> table =
      LeaseTable::Open(pool, {.table = "shedlock", .layout = Layout::kTimestamps});
  ASSERT_OK(table);
  EXPECT_FALSE(table->Claim({.name = "held"})->has_value());
  EXPECT_TRUE(table->Claim({.name = "over"})->has_value());
  // Now the others see it held: this is how they claim.
  EXPECT_THAT(pool.Execute("update shedlock set lock_until = timezone('utc', current_timestamp) + "
                           "interval '1 second', locked_at = timezone('utc', current_timestamp), "
                           "locked_by = 'java' where name = $1 and lock_until <= "
                           "timezone('utc', current_timestamp)",
                           "over"),
              IsOkAndHolds(0));
  EXPECT_THAT(pool.Execute("insert into shedlock(name, lock_until, locked_at, locked_by) values "
                           "('new', timezone('utc', current_timestamp) + interval '1 hour', "
                           "timezone('utc', current_timestamp), 'java')"),
              IsOkAndHolds(1));
  EXPECT_FALSE(table->Claim({.name = "new"})->has_value());
  EXPECT_EQ(table->List()->size(), 3U);

  ASSERT_OK(pool.ExecuteScript(
      "create table other_lock(name text primary key, lock_until bigint not null, "
      "locked_at bigint not null, locked_by text);"
      "insert into other_lock values ('held', 99999999999999, 1, 'a1b2c3d4e5f6#1')"));
  absl::StatusOr<LeaseTable> other = LeaseTable::Open(pool, {.table = "other_lock"});
  ASSERT_OK(other);
  EXPECT_FALSE(other->Claim({.name = "held"})->has_value());
  EXPECT_TRUE(other->Claim({.name = "free"})->has_value());
}

// --- Two real processes.

// Claims as often as the counter says, and adds one to it while it holds the lease: without a lock,
// so that two holders at a time would lose an addition.
absl::Status Count(const std::string& conninfo, int64_t up_to) {
  BOBBIN_ASSIGN_OR_RETURN(PgPool pool, PgPool::Open({.server = {.conninfo = conninfo}}));
  BOBBIN_ASSIGN_OR_RETURN(LeaseTable table, LeaseTable::Open(pool));
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const std::optional<Lease> lease, table.Claim({.name = "count"}));
    if (!lease) continue;
    BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool.Query("select n from t"));
    BOBBIN_ASSIGN_OR_RETURN(const int64_t n, rows.Only<int64_t>());
    if (n < up_to) {
      BOBBIN_RETURN_IF_ERROR(pool.Execute("update t set n = $1", n + 1).status());
      BOBBIN_RETURN_IF_ERROR(
          pool.Execute("insert into adder values ($1)", static_cast<int64_t>(getpid())).status());
    }
    BOBBIN_RETURN_IF_ERROR(table.Release(*lease));
    if (n >= up_to) return absl::OkStatus();
  }
}

constexpr int64_t kUpTo = 30;

BOBBIN_IO_TEST(LeaseTableTest, TwoProcessesNeverHoldItAtOnce) {
  if (const char* const conninfo = TwinProcess::Errand()) {
    EXPECT_OK(Count(conninfo, kUpTo));
    return;
  }
  const Schema schema;
  PgPool pool = schema.OpenWithTable();
  ASSERT_OK(pool.ExecuteScript("insert into t values (0); create table adder(process int8)"));
  TwinProcess first(schema.conninfo());
  TwinProcess second(schema.conninfo());
  EXPECT_THAT(first.Wait(), IsOkAndHolds(0));
  EXPECT_THAT(second.Wait(), IsOkAndHolds(0));
  EXPECT_THAT(pool.Query("select n from t")->Only<int64_t>(), IsOkAndHolds(kUpTo));
  EXPECT_THAT(pool.Query("select count(*) from adder")->Only<int64_t>(), IsOkAndHolds(kUpTo));
  EXPECT_THAT(pool.Query("select count(distinct process) from adder")->Only<int64_t>(),
              IsOkAndHolds(testing::Ge(1)));
}

}  // namespace
}  // namespace bobbin::db
