// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <string>

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>
#include <bobbin/db/sqlite.h>

#include "bench/compare/random.h"
#include "bench/compare/units.h"
#include "bench/compare/workload.h"

namespace bobbin::compare {
namespace {

constexpr uint64_t kAccounts = 10'000;

// One operation in so many writes; the others read.
constexpr uint64_t kOperationsPerWrite = 8;

absl::StatusOr<db::Sqlite> OpenBank(const std::string& directory) {
  // Waiting for the disk at each commit would hide all else.
  BOBBIN_ASSIGN_OR_RETURN(db::Sqlite bank, db::Sqlite::Open({
                                               .path = directory + "/bank.db",
                                               .durability = db::SqliteDurability::kSinceCheckpoint,
                                           }));
  BOBBIN_RETURN_IF_ERROR(
      bank.ExecuteScript("create table account(id integer primary key, cents integer not null)"));
  BOBBIN_RETURN_IF_ERROR(bank.Execute("insert into account with recursive number(id) as "
                                      "(select 0 union all select id + 1 from number limit ?1) "
                                      "select id, 0 from number",
                                      kAccounts)
                             .status());
  return bank;
}

absl::Status UseBank(db::Sqlite& bank, size_t unit, Measurement& measurement) {
  Random random(unit);
  while (true) {
    const uint64_t account = random.Below(kAccounts);
    const MonotonicTime begun = MonotonicNow();
    if (random.Below(kOperationsPerWrite) == 0) {
      BOBBIN_RETURN_IF_ERROR(
          bank.Execute("update account set cents = cents + 1 where id = ?1", account).status());
    } else {
      BOBBIN_ASSIGN_OR_RETURN(const db::Rows rows,
                              bank.Query("select cents from account where id = ?1", account));
      BOBBIN_RETURN_IF_ERROR(rows.Only<int64_t>().status());
    }
    const MonotonicTime now = MonotonicNow();
    if (!measurement.Record(now, now - begun)) return absl::OkStatus();
  }
}

absl::StatusOr<Figures> Run(const Trial& trial) {
  BOBBIN_ASSIGN_OR_RETURN(db::Sqlite bank, OpenBank(trial.directory));
  BOBBIN_ASSIGN_OR_RETURN(const Figures figures,
                          MeasureUnits(trial, [&bank](size_t unit, Measurement& measurement) {
                            return UseBank(bank, unit, measurement);
                          }));
  BOBBIN_RETURN_IF_ERROR(bank.Close());
  return figures;
}

}  // namespace

const Workload kSqliteWorkload = {
    .name = "sqlite",
    .title = "every thread reads a row by its key, or one time in eight writes one",
    .latency = "that of both",
    // A handful of connections serves them all; the rest is queueing.
    .concurrency_max = 1000,
    .run = Run,
};

}  // namespace bobbin::compare
