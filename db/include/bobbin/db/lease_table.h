// SPDX-License-Identifier: Apache-2.0
//
// LeaseTable: leases of cron jobs as rows of a table, in SQLite, PostgreSQL or MySQL.
//
// Each step is one statement that compares with the database's own clock, so that nothing depends
// on what the clocks of the processes say. (SQLite's is its machine's, which all its users share.)
// A row that somebody has deleted is one that nobody holds. Nothing is kept in the process.
//
// The table is made, if there is none. Its layout is that of others who lock jobs so, so that a
// fleet can share its rows; they need the names and types below, and no more. What they do not have
// is `token`, which is added to a table that lacks it: it grows with the claims that are made here.
//
//   Layout::kMillis      name text primary key, lock_until bigint, locked_at bigint (milliseconds
//                        since 1970), locked_by text
//   Layout::kTimestamps  as ShedLock's: name varchar primary key, lock_until timestamp,
//                        locked_at timestamp (in UTC), locked_by varchar; in SQLite, texts
//
//   Called from   what the database can be called from.
//   Suspends      while the database answers.
//   Cancellation  as Database; whether a claim was made is then not known: it ends by itself.
//   Errors        as LeaseStore, and those of the database. INVALID_ARGUMENT: a table's name that
//                 is none.
//   Lifetime      The database must outlive it.
//   Cost          a statement for each call; on MySQL two for a claim and an extension. Times are
//                 whole milliseconds.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto leases, bobbin::db::LeaseTable::Open(pool));
//   scheduler.Add({.name = "nightly-report", .lease = {.store = &leases}, ...}, SendReport);

#ifndef BOBBIN_DB_LEASE_TABLE_H_
#define BOBBIN_DB_LEASE_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <bobbin/cron/lease.h>
#include <bobbin/db/database.h>

namespace bobbin::db {

struct LeaseTableOptions {
  enum class Layout : uint8_t { kMillis, kTimestamps };

  // Letters, digits, underscores; a schema's name and a point may stand before it.
  std::string table = "scheduler_lock";
  Layout layout = Layout::kMillis;
};

class LeaseTable final : public cron::LeaseStore {
 public:
  // Makes the table, if there is none.
  static absl::StatusOr<LeaseTable> Open(Database& database, LeaseTableOptions options = {});

  absl::StatusOr<std::optional<cron::Lease>> Claim(const cron::LeaseTerms& terms) override;
  absl::StatusOr<cron::Lease> Extend(const cron::Lease& lease, absl::Duration at_most) override;
  absl::Status Release(const cron::Lease& lease) override;
  absl::StatusOr<std::vector<cron::Lease>> List() override;

 private:
  explicit LeaseTable(Database& database) : database_(&database) {}
  // Runs a claim or an extension. Returns the row that the lease then has, if it was granted.
  absl::StatusOr<Rows> Take(const std::string& sql, const cron::Lease& lease,
                            absl::Duration at_most);

  Database* database_;
  // The statements.
  std::string claim_;
  std::string extend_;
  std::string release_;
  std::string list_;
  std::string held_;  // Empty, where a claim returns the row itself.
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_LEASE_TABLE_H_
