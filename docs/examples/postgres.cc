// SPDX-License-Identifier: Apache-2.0
//
// PostgreSQL: a pool of connections that virtual threads share. Its argument is a libpq conninfo of
// a database in which it may make temporary things.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/db/database.h>
#include <bobbin/db/pg_error.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>

using std::chrono::seconds;

namespace {

// [open]
absl::StatusOr<bobbin::db::PgPool> OpenBank(const std::string& conninfo) {
  return bobbin::db::PgPool::Open({.server = {.conninfo = conninfo}, .connections_max = 8});
}
// [/open]

// [query]
absl::Status PrintRich(bobbin::db::PgPool& bank, int64_t more_than_cents) {
  BOBBIN_ASSIGN_OR_RETURN(
      bobbin::db::Rows rows,
      bank.Query("select owner, cents from bank.account where cents > $1", more_than_cents));
  for (auto [owner, cents] : rows.As<std::string_view, int64_t>()) {
    fmt::print("{} has {}\n", owner, cents);
  }
  return absl::OkStatus();
}
// [/query]

// [deadline]
absl::StatusOr<int64_t> SlowTotal(bobbin::db::PgPool& bank) {
  bobbin::DeadlineScope scope(seconds(2));  // For the connection, the statement, everything.
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::Rows rows,
                          bank.Query("select sum(cents)::int8 from bank.account"));
  return rows.Only<int64_t>();
}
// [/deadline]

// [transaction]
absl::Status Transfer(bobbin::db::PgPool& bank, int64_t from, int64_t to, int64_t cents) {
  return bank.Transact(
      {.isolation = bobbin::db::PgIsolation::kSerializable, .attempts_max = 5},
      [&](bobbin::db::PgTransaction& transaction) -> absl::Status {
        BOBBIN_ASSIGN_OR_RETURN(int64_t debited,
                                transaction.Execute("update bank.account set cents = cents - $2 "
                                                    "where id = $1 and cents >= $2",
                                                    from, cents));
        if (debited == 0) return absl::FailedPreconditionError("transfer: not enough money");
        transaction.AfterCommit([=] { fmt::print("{} to {}: {}\n", from, to, cents); });
        return transaction
            .Execute("update bank.account set cents = cents + $2 where id = $1", to, cents)
            .status();
      });  // OK commits. Anything else, a deadline included, rolls back.
}
// [/transaction]

// [error]
absl::Status Open(bobbin::db::PgPool& bank, int64_t id, std::string_view owner) {
  absl::Status opened =
      bank.Execute("insert into bank.account values ($1, $2, 0)", id, owner).status();
  const auto error = bobbin::db::PgErrorOf(opened);
  if (error && error->constraint == "one_each") return absl::AlreadyExistsError("has one already");
  return opened;
}
// [/error]

// [either]
absl::StatusOr<int64_t> CountPoor(bobbin::db::Database& bank, int64_t below_cents) {
  BOBBIN_ASSIGN_OR_RETURN(
      bobbin::db::Rows rows,
      bank.Query("select count(*) from bank.account where cents < $1", below_cents));
  return rows.Only<int64_t>();
}
// [/either]

absl::Status Expect(bool holds, std::string_view what) {
  return holds ? absl::OkStatus()
               : bobbin::MakeStatus(absl::StatusCode::kInternal, fmt::format("not so: {}", what));
}

absl::Status Main(const std::string& conninfo) {
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::PgPool bank, OpenBank(conninfo));
  BOBBIN_RETURN_IF_ERROR(bank.ExecuteScript(
      "drop schema if exists bank cascade; create schema bank;"
      "create table bank.account(id int8 primary key, owner text constraint one_each unique,"
      "                          cents int8 not null);"
      "insert into bank.account values (1, 'ada', 10000), (2, 'grace', 500)"));
  BOBBIN_RETURN_IF_ERROR(PrintRich(bank, 100));
  BOBBIN_RETURN_IF_ERROR(Transfer(bank, 1, 2, 5000));
  BOBBIN_RETURN_IF_ERROR(
      Expect(Transfer(bank, 1, 2, 50'000).code() == absl::StatusCode::kFailedPrecondition,
             "nobody spends what he has not"));
  BOBBIN_RETURN_IF_ERROR(
      Expect(Open(bank, 3, "ada").code() == absl::StatusCode::kAlreadyExists, "one each"));
  BOBBIN_ASSIGN_OR_RETURN(const int64_t total, SlowTotal(bank));
  BOBBIN_ASSIGN_OR_RETURN(const int64_t poor, CountPoor(bank, 5001));
  BOBBIN_RETURN_IF_ERROR(Expect(total == 10'500 && poor == 1, "the money is where it belongs"));
  return bank.ExecuteScript("drop schema bank cascade");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string conninfo = argc > 1 ? argv[1] : "";
  return bobbin::Run([&] { return Main(conninfo); }, {.poller = bobbin::io::AutoPoller()});
}
