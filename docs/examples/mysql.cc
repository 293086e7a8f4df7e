// SPDX-License-Identifier: Apache-2.0
//
// MySQL: a pool of connections that virtual threads share. Its argument is the address of a
// database in which it may make a table.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/db/mysql_error.h>
#include <bobbin/db/mysql_pool.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>

using std::chrono::seconds;

namespace {

// [open]
absl::StatusOr<bobbin::db::MySqlPool> OpenBank(std::string_view address) {
  // Such as mysql://app:secret@db/bank; its parts can also be set one by one.
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::MySqlServer server, bobbin::db::MySqlServer::Parse(address));
  return bobbin::db::MySqlPool::Open({.server = server, .connections_max = 8});
}
// [/open]

// [transaction]
absl::Status Transfer(bobbin::db::MySqlPool& bank, int64_t from, int64_t to, int64_t cents) {
  bobbin::DeadlineScope scope(seconds(2));  // For the connection, the statements, everything.
  // Two who pay each other at the same time may each hold what the other one wants: the server ends
  // one of them, and it is tried again.
  return bank.Transact(
      {.attempts_max = 5}, [&](bobbin::db::MySqlTransaction& transaction) -> absl::Status {
        BOBBIN_ASSIGN_OR_RETURN(int64_t debited,
                                transaction.Execute("update account set cents = cents - $2 "
                                                    "where id = $1 and cents >= $2",
                                                    from, cents));
        if (debited == 0) return absl::FailedPreconditionError("transfer: not enough money");
        return transaction.Execute("update account set cents = cents + $2 where id = $1", to, cents)
            .status();
      });
}
// [/transaction]

// [error]
absl::Status Open(bobbin::db::MySqlPool& bank, int64_t id, std::string_view owner) {
  absl::Status opened = bank.Execute("insert into account values ($1, $2, 0)", id, owner).status();
  const auto error = bobbin::db::MySqlErrorOf(opened);
  if (error && error->constraint == "one_each") return absl::AlreadyExistsError("has one already");
  return opened;
}
// [/error]

absl::Status Expect(bool holds, std::string_view what) {
  return holds ? absl::OkStatus()
               : bobbin::MakeStatus(absl::StatusCode::kInternal, fmt::format("not so: {}", what));
}

absl::Status Main(std::string_view address) {
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::MySqlPool bank, OpenBank(address));
  BOBBIN_RETURN_IF_ERROR(bank.ExecuteScript(
      "drop table if exists account;"
      "create table account(id bigint primary key, owner varchar(80), cents bigint not null,"
      "                     unique key one_each (owner));"
      "insert into account values (1, 'ada', 10000), (2, 'grace', 500)"));
  BOBBIN_RETURN_IF_ERROR(Transfer(bank, 1, 2, 5000));
  BOBBIN_RETURN_IF_ERROR(
      Expect(Transfer(bank, 1, 2, 50'000).code() == absl::StatusCode::kFailedPrecondition,
             "nobody spends what he has not"));
  BOBBIN_RETURN_IF_ERROR(
      Expect(Open(bank, 3, "ada").code() == absl::StatusCode::kAlreadyExists, "one each"));
  BOBBIN_ASSIGN_OR_RETURN(const bobbin::db::Rows rows,
                          bank.Query("select cents from account where id = $1", 2));
  BOBBIN_ASSIGN_OR_RETURN(const int64_t cents, rows.Only<int64_t>());
  BOBBIN_RETURN_IF_ERROR(Expect(cents == 5500, "the money is where it belongs"));
  return bank.ExecuteScript("drop table account");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string address = argc > 1 ? argv[1] : "mysql://";
  return bobbin::Run([&] { return Main(address); }, {.poller = bobbin::io::AutoPoller()});
}
