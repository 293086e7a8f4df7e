// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/cron/lease.h>
#include <bobbin/db/lease_table.h>
#include <bobbin/db/mysql_pool.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/lease_kit.h"
#include "tests/db/mysql_test.h"

namespace bobbin::db {
namespace {

using test::IsOkAndHolds;
using test::MySqlDatabase;
using Layout = LeaseTableOptions::Layout;

test::OpenDatabase OpenIn(const MySqlDatabase& database) {
  return [&database]() -> absl::StatusOr<std::unique_ptr<Database>> {
    BOBBIN_ASSIGN_OR_RETURN(MySqlPool pool,
                            MySqlPool::Open({.server = database.server(), .connections_max = 2}));
    return std::make_unique<MySqlPool>(std::move(pool));
  };
}

BOBBIN_IO_TEST(MySqlLeaseTest, ItPassesTheKit) {
  const MySqlDatabase database;
  test::PassTheKit(OpenIn(database), Layout::kMillis);
}

BOBBIN_IO_TEST(MySqlLeaseTest, WithTimestampsItPassesTheKit) {
  const MySqlDatabase database;
  test::PassTheKit(OpenIn(database), Layout::kTimestamps);
}

BOBBIN_IO_TEST(MySqlLeaseTest, ManyMakeTheTableAndClaimAtTheSameTime) {
  const MySqlDatabase database;
  MySqlPool pool = database.Open(8);
  std::atomic<int> holders{0};
  TaskGroup group;
  for (int i = 0; i < 8; ++i) {
    group.Spawn([&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(LeaseTable table, LeaseTable::Open(pool));
      BOBBIN_ASSIGN_OR_RETURN(const std::optional<cron::Lease> lease, table.Claim({.name = "job"}));
      if (lease.has_value()) ++holders;
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
  EXPECT_EQ(holders, 1);
  // Names differ in their letters' case, as elsewhere.
  absl::StatusOr<LeaseTable> table = LeaseTable::Open(pool);
  ASSERT_OK(table);
  EXPECT_TRUE(table->Claim({.name = "Job"})->has_value());
}

// What another implementation writes, word for word as its own table wants it.
BOBBIN_IO_TEST(MySqlLeaseTest, RowsAreSharedWithOthers) {
  const MySqlDatabase database;
  MySqlPool pool = database.Open();
  ASSERT_OK(pool.ExecuteScript(
      "create table shedlock(name varchar(64) not null, lock_until timestamp(3) not null, "
      "locked_at timestamp(3) not null default current_timestamp(3), "
      "locked_by varchar(255) not null, primary key (name));"
      "insert into shedlock values ('held', timestampadd(hour, 1, utc_timestamp(3)), "
      "utc_timestamp(3), 'java'), ('over', timestampadd(second, -1, utc_timestamp(3)), "
      "timestampadd(hour, -1, utc_timestamp(3)), 'java')"));
  absl::StatusOr<LeaseTable> table =
      LeaseTable::Open(pool, {.table = "shedlock", .layout = Layout::kTimestamps});
  ASSERT_OK(table);
  EXPECT_FALSE(table->Claim({.name = "held"})->has_value());
  EXPECT_TRUE(table->Claim({.name = "over"})->has_value());
  // Now the others see it held: this is how they claim.
  EXPECT_THAT(pool.Execute("update shedlock set lock_until = timestampadd(second, 1, "
                           "utc_timestamp(3)), locked_at = utc_timestamp(3), locked_by = 'java' "
                           "where name = $1 and lock_until <= utc_timestamp(3)",
                           "over"),
              IsOkAndHolds(0));
  EXPECT_EQ(table->List()->size(), 2U);
}

}  // namespace
}  // namespace bobbin::db
