// SPDX-License-Identifier: Apache-2.0
//
// PassTheKit: a LeaseTable, whichever database it is in, before cron's conformance kit.
//
//   Called from   threads that may wait, next to a runtime with an I/O poller.

#ifndef BOBBIN_TESTS_DB_LEASE_KIT_H_
#define BOBBIN_TESTS_DB_LEASE_KIT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/cron/lease_store_kit.h>
#include <bobbin/db/database.h>
#include <bobbin/db/lease_table.h>
#include <bobbin/sched/sleep.h>

#include "tests/support/bobbin_test.h"

namespace bobbin::test {

// A store with a database of its own: as in another process.
class OwnStore final : public cron::LeaseStore {
 public:
  OwnStore(std::unique_ptr<db::Database> database, db::LeaseTable table)
      : database_(std::move(database)), table_(std::move(table)) {}

  static absl::StatusOr<std::unique_ptr<cron::LeaseStore>> Open(
      std::unique_ptr<db::Database> database, db::LeaseTableOptions::Layout layout) {
    BOBBIN_ASSIGN_OR_RETURN(db::LeaseTable table,
                            db::LeaseTable::Open(*database, {.layout = layout}));
    return std::make_unique<OwnStore>(std::move(database), std::move(table));
  }

  absl::StatusOr<std::optional<cron::Lease>> Claim(const cron::LeaseTerms& terms) override {
    return table_.Claim(terms);
  }
  absl::StatusOr<cron::Lease> Extend(const cron::Lease& lease, absl::Duration at_most) override {
    return table_.Extend(lease, at_most);
  }
  absl::Status Release(const cron::Lease& lease) override { return table_.Release(lease); }
  absl::StatusOr<std::vector<cron::Lease>> List() override { return table_.List(); }

 private:
  std::unique_ptr<db::Database> database_;
  db::LeaseTable table_;
};

using OpenDatabase = std::function<absl::StatusOr<std::unique_ptr<db::Database>>()>;

// Lets the database's clock go on: all that it has written down is moved back instead. So no test
// depends on how long a machine takes.
inline std::string MoveBack(db::Dialect dialect, db::LeaseTableOptions::Layout layout,
                            absl::Duration time) {
  const std::string millis = std::to_string(absl::ToInt64Milliseconds(time));
  const auto earlier = [&](const std::string& column) -> std::string {
    if (layout == db::LeaseTableOptions::Layout::kMillis) return column + " - " + millis;
    switch (dialect) {
      case db::Dialect::kPostgres:
        return column + " - " + millis + " * interval '1 millisecond'";
      case db::Dialect::kMySql:
        return column + " - interval " + millis + " * 1000 microsecond";
      case db::Dialect::kSqlite:
        break;
    }
    return "strftime('%Y-%m-%d %H:%M:%f', " + column + ", (-" + millis +
           " / 1000.0) || ' seconds')";
  };
  const auto moved = [&](const std::string& column) { return column + " = " + earlier(column); };
  return "update scheduler_lock set " + moved("locked_at") + ", " + moved("lock_until");
}

inline void PassTheKit(const OpenDatabase& open, db::LeaseTableOptions::Layout layout) {
  const absl::StatusOr<std::unique_ptr<db::Database>> clock = open();
  ASSERT_OK(clock);
  cron::LeaseStoreKit kit = {
      .open = [&]() -> absl::StatusOr<std::unique_ptr<cron::LeaseStore>> {
        BOBBIN_ASSIGN_OR_RETURN(std::unique_ptr<db::Database> database, open());
        return OwnStore::Open(std::move(database), layout);
      },
      .pass =
          [&](absl::Duration time) {
            const std::string sql = MoveBack((*clock)->dialect(), layout, time);
            EXPECT_OK((*clock)->Execute(db::UncheckedSql(sql)));
            // So that what is written next is later than what was.
            EXPECT_OK(SleepFor(std::chrono::milliseconds(2)));
          },
      .unit = absl::Hours(1),
      .claims = Rounds(60)};
  for (const cron::LeaseStoreCheck& check : cron::LeaseStoreChecks()) {
    EXPECT_OK(check.run(kit)) << check.name;
  }
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_LEASE_KIT_H_
