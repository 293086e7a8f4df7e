// SPDX-License-Identifier: Apache-2.0
//
// SQLite: a database that virtual threads use as if it did not block.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/db/row.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/sched/runtime.h>

namespace {

// [open]
absl::StatusOr<bobbin::db::Sqlite> OpenBank() {
  BOBBIN_ASSIGN_OR_RETURN(auto bank, bobbin::db::Sqlite::Open({.path = ":memory:"}));
  BOBBIN_RETURN_IF_ERROR(bank.ExecuteScript(
      "create table account(id integer primary key, owner text not null, cents integer not null)"
      " strict;"
      "insert into account values (1, 'ada', 10000), (2, 'grace', 500)"));
  return bank;
}
// [/open]

// [query]
absl::Status PrintRich(bobbin::db::Sqlite& bank, int64_t more_than_cents) {
  BOBBIN_ASSIGN_OR_RETURN(
      bobbin::db::Rows rows,
      bank.Query("select owner, cents from account where cents > ?1", more_than_cents));
  for (auto [owner, cents] : rows.As<std::string_view, int64_t>()) {
    fmt::print("{} has {}\n", owner, cents);
  }
  return absl::OkStatus();
}
// [/query]

// [only]
absl::StatusOr<int64_t> BalanceOf(bobbin::db::Sqlite& bank, int64_t id) {
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::Rows rows,
                          bank.Query("select cents from account where id = ?1", id));
  return rows.Only<int64_t>();  // NOT_FOUND where there is no such account.
}
// [/only]

// [transaction]
absl::Status Transfer(bobbin::db::Sqlite& bank, int64_t from, int64_t to, int64_t cents) {
  return bank.Transact([&](bobbin::db::SqliteTransaction& transaction) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(
        int64_t debited,
        transaction.Execute("update account set cents = cents - ?2 where id = ?1 and cents >= ?2",
                            from, cents));
    if (debited == 0) return absl::FailedPreconditionError("transfer: not enough money");
    return transaction.Execute("update account set cents = cents + ?2 where id = ?1", to, cents)
        .status();
  });  // OK commits. Anything else, a deadline included, rolls back.
}
// [/transaction]

// [batch]
absl::Status AddAll(bobbin::db::Sqlite& bank, const std::vector<std::string>& owners) {
  return bank.TransactBlocking([&](bobbin::db::SqliteTransaction& transaction) -> absl::Status {
    for (const std::string& owner : owners) {  // The whole loop is on the platform thread.
      BOBBIN_RETURN_IF_ERROR(
          transaction.Execute("insert into account(owner, cents) values (?1, 0)", owner).status());
    }
    return absl::OkStatus();
  });
}
// [/batch]

// [backup]
absl::Status BackUp(bobbin::db::Sqlite& bank, const std::string& path) {
  const bobbin::DeadlineScope scope(std::chrono::minutes(5));
  return bank.Backup({.path = path}, [](const bobbin::db::SqliteBackupProgress& progress) {
    fmt::print("{} of {} pages\n", progress.pages_done, progress.pages_total);
    return absl::OkStatus();  // An error ends the backup.
  });
}
// [/backup]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::Sqlite bank, OpenBank());
  BOBBIN_RETURN_IF_ERROR(Transfer(bank, 1, 2, 2500));
  if (!absl::IsFailedPrecondition(Transfer(bank, 2, 1, 1'000'000))) {
    return absl::InternalError("nobody is that rich");
  }
  BOBBIN_RETURN_IF_ERROR(AddAll(bank, {"barbara", "edsger", "tony"}));
  BOBBIN_RETURN_IF_ERROR(PrintRich(bank, 1000));
  const std::string copy =
      std::filesystem::temp_directory_path() / fmt::format("bank-{}.db", ::getpid());
  BOBBIN_RETURN_IF_ERROR(BackUp(bank, copy));
  std::filesystem::remove(copy);
  BOBBIN_ASSIGN_OR_RETURN(const int64_t cents, BalanceOf(bank, 2));
  return cents == 3000 ? bank.Close() : absl::InternalError("the money is somewhere else");
}

}  // namespace

int main() { return bobbin::Run(Main); }
