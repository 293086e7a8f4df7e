// SPDX-License-Identifier: Apache-2.0
//
// MySqlPool: connections to a MySQL or MariaDB server, for virtual threads. MySqlTransaction:
// several statements as one.
//
// Nothing of it blocks a carrier: who waits for the server, or for a connection, is parked. It is
// libmariadb's own client, by the half of it that does not wait, so that it speaks to both servers
// and to what stands before them. Connections are made when they are needed, up to
// `connections_max`; who wants one beyond waits in turn. One that is not provably clean, because it
// was lost, or its server did not end a statement in time, is closed and never given to anybody
// else. Before an idle one is given away the pool looks whether the server is still there, so that
// after a restart of the server statements go to new connections. A statement that may have reached
// the server is never sent twice.
//
// Statements. Texts number the places of values: `$1`, not `?`. Each is prepared on its connection,
// and kept. What a column of the server's types is read as:
//
//   integers, year, bool       an integer; bit(n) too
//   float, double              a double
//   decimal                    a text: none of its digits is lost
//   char, text, enum, json     a text, in UTF-8
//   binary, blob               a blob
//   datetime, timestamp        a text that is an absl::Time, in UTC; date one that is a CivilDay
//
// Sessions are in UTC and strict: a value that does not fit is an error. An update counts the rows
// that it finds, also those that are as they should be. Values go with types of their own; an
// absl::Time loses what is shorter than a microsecond.
//
// What belongs to a session - variables, locks by name, temporary tables - does not stay for who
// gets the connection next: it is reset when a statement's text lets it be seen that there may be
// something. A function or a trigger that sets a variable is not seen, and what an insert leaves
// for last_insert_id() stays: ask for it in the transaction of the insert.
//
// In a transaction a table that is created or altered ends the transaction: so does it here, with
// an error.
//
// A nested call takes a second connection, and may wait for ever for it when all are held by
// threads that do the same: inside a transaction, use the transaction. When no connection becomes
// free within `acquire_wait_max`, the error names who holds them.
//
// libmariadb has the process ignore SIGPIPE, when the first connection is made.
//
//   Called from   virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block. A transaction: one thread at a time.
//   Suspends      everything but the constructors and Statistics.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED: while it waits for a connection or connects, at
//                 once. While its statement runs: the server is asked, on a connection of its own,
//                 to kill the statement, and waited for up to MySqlServer::cancel_wait_max. One
//                 that changes something and was done all the same is reported as done. Close may
//                 be called again; commit and rollback are not cut short.
//   Errors        as Database, and of the server's own as MySqlError. RESOURCE_EXHAUSTED: too many
//                 wait, or no connection became free in time. UNAVAILABLE: no server, or the
//                 connection was lost: whether the statement took effect is then not known.
//   Order         First come, first served. The connection that was used last is given first.
//   Lifetime      Must outlive every call.
//   Cost          A statement: a send, a wait and a receive on the caller's carrier, and two looks
//                 at the clock; twice that for a text that is new to its connection. A transaction
//                 of n statements: n + 2 of them. 256 KiB of address space a connection.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto pool, bobbin::db::MySqlPool::Open({.server = {.host = "db",
//       .user = "app", .password = secret, .database = "main"}}));
//   bobbin::DeadlineScope scope(2s);  // Includes waiting for a free connection.
//   absl::Status moved = pool.Transact([&](bobbin::db::MySqlTransaction& tx) -> absl::Status {
//     BOBBIN_RETURN_IF_ERROR(tx.Execute("update t set n = n - 1 where id = $1", from).status());
//     return tx.Execute("update t set n = n + 1 where id = $1", to).status();
//   });

#ifndef BOBBIN_DB_MYSQL_POOL_H_
#define BOBBIN_DB_MYSQL_POOL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/db/database.h>
#include <bobbin/db/internal/retry_pause.h>
#include <bobbin/db/internal/transaction_hooks.h>
#include <bobbin/db/mysql_error.h>
#include <bobbin/db/mysql_server.h>
#include <bobbin/db/pool_statistics.h>
#include <bobbin/db/row.h>
#include <bobbin/db/value.h>

namespace bobbin::db {

namespace internal {
class MySqlConnection;
class MySqlLease;
class MySqlPoolCore;
}  // namespace internal

struct MySqlPoolOptions {
  MySqlServer server = {};
  // From 1 to some thousands. More than a few for each of the server's CPUs only wait there.
  size_t connections_max = 8;
  // Who may wait for one; more are refused.
  size_t waiters_max = 10'000;
  std::chrono::nanoseconds acquire_wait_max = std::chrono::seconds(30);
  // A connection is replaced when it is so old, give or take a tenth, so that not all are at once.
  std::chrono::nanoseconds lifetime_max = std::chrono::minutes(30);
  // One that nobody has used for so long is closed, when the pool is next used.
  std::chrono::nanoseconds idle_max = std::chrono::minutes(10);
};

enum class MySqlIsolation : uint8_t { kDefault, kReadCommitted, kRepeatableRead, kSerializable };
enum class MySqlAccess : uint8_t { kReadWrite, kReadOnly };

struct MySqlTransactOptions {
  MySqlIsolation isolation = MySqlIsolation::kDefault;
  MySqlAccess access = MySqlAccess::kReadWrite;
  // How often the whole transaction is tried while the server ends it because of a deadlock, or
  // because it has waited too long for a lock; between two tries there is a short, growing pause.
  int attempts_max = 1;
};

// A statement that fails is undone by itself, and the transaction goes on; but one that fails
// because of a conflict with others, as IsMySqlConflict tells, has rolled all of it back.
class MySqlTransaction final : public Transaction {
 private:
  friend class MySqlPool;
  friend class internal::TransactionCourse;

  MySqlTransaction(internal::MySqlPoolCore& core, internal::TransactionHooks& hooks,
                   const MySqlTransactOptions& options);
  // Rolls back, unless it was committed, and gives the connection back.
  ~MySqlTransaction();

  absl::Status Begin();
  absl::Status Commit();
  void RollBack() noexcept;

  absl::StatusOr<Rows> QuerySpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<int64_t> ExecuteSpan(Sql sql, std::span<const Param> params) override;
  // Calls `use` with the connection, if the transaction may be used here and now.
  absl::Status UseConnection(absl::FunctionRef<absl::Status(internal::MySqlConnection&)> use);

  internal::MySqlPoolCore& core_;
  const MySqlTransactOptions options_;
  std::unique_ptr<internal::MySqlLease> lease_;
  bool is_open_ = false;  // Begun, and neither committed nor rolled back.
  // Set by the thread that uses it, against a second.
  bobbin::internal::Atomic<bool> is_in_use_{false};
};

class MySqlPool final : public Database {
 public:
  // Makes a first connection: an address or a password that is wrong is found here.
  static absl::StatusOr<MySqlPool> Open(MySqlPoolOptions options);
  MySqlPool(MySqlPool&&) noexcept;
  MySqlPool& operator=(MySqlPool&&) noexcept;
  // Closes it, if that has not been done.
  ~MySqlPool() override;

  Dialect dialect() const override { return Dialect::kMySql; }
  // Statements on tables are all undone if one fails; those that make or change a table are not: so
  // are these servers.
  absl::Status ExecuteScript(Sql script) override;

  // As Database::Transact. With `attempts_max` above 1 the body may be called several times; hooks
  // are called for each time.
  template <typename F>
  auto Transact(const MySqlTransactOptions& options, F&& body)
      -> std::invoke_result_t<F&, MySqlTransaction&> {
    for (int attempt = 1;; ++attempt) {
      auto result = TransactOnce(options, body);
      if (attempt >= options.attempts_max || !IsMySqlConflict(internal::StatusIn(result))) {
        return result;
      }
      BOBBIN_RETURN_IF_ERROR(internal::PauseBeforeRetry(attempt));
    }
  }
  template <typename F>
  auto Transact(F&& body) -> std::invoke_result_t<F&, MySqlTransaction&> {
    return TransactOnce(MySqlTransactOptions{}, body);
  }

  PoolStatistics Statistics() const;

  // As Database::Close.
  absl::Status Close() override;

 private:
  explicit MySqlPool(std::unique_ptr<internal::MySqlPoolCore> core);

  template <typename F>
  auto TransactOnce(const MySqlTransactOptions& options, F& body)
      -> std::invoke_result_t<F&, MySqlTransaction&> {
    internal::TransactionHooks hooks;
    MySqlTransaction transaction(*core_, hooks, options);
    return internal::TransactionCourse::Run(transaction, body);
  }

  absl::StatusOr<Rows> QuerySpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<int64_t> ExecuteSpan(Sql sql, std::span<const Param> params) override;
  absl::Status TransactErased(absl::FunctionRef<absl::Status(Transaction&)> body) override;

  std::unique_ptr<internal::MySqlPoolCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_MYSQL_POOL_H_
