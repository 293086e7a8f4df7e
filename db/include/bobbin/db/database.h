// SPDX-License-Identifier: Apache-2.0
//
// Database: what statements can be run on, whichever it is. Transaction: several statements as one.
//
// Code that is written against these two runs on Sqlite, on a PgPool and on a MySqlPool. What only
// one of them can do is in its own header. All number the places of values: `$1` is the first,
// wherever it stands.
//
//   Called from   virtual, platform and foreign threads. A transaction: one thread at a time.
//   Suspends      everything, until it is done.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED: while it waits for a connection, at once; while
//                 its statement runs, by having the database interrupt it. A statement that was
//                 done all the same is reported as done. Commit and rollback are not cut short.
//   Errors        ALREADY_EXISTS: a unique constraint; FAILED_PRECONDITION: another one, or misuse;
//                 INVALID_ARGUMENT: the text or its values; ABORTED: try the transaction again;
//                 UNAVAILABLE: the database is out of reach, or closed. The databases' own headers
//                 have the rest, and ways to the original codes.
//   Lifetime      Must outlive every call.
//   Cost          a virtual call, beside the statement.
//
// Example:
//   absl::Status Credit(bobbin::db::Database& bank, int64_t id, int64_t cents) {
//     return bank.Transact([&](bobbin::db::Transaction& transaction) -> absl::Status {
//       transaction.AfterCommit([id] { Announce(id); });
//       return transaction.Execute("update account set cents = cents + $2 where id = $1",
//                                  id, cents).status();
//     });
//   }

#ifndef BOBBIN_DB_DATABASE_H_
#define BOBBIN_DB_DATABASE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/db/internal/transaction_hooks.h>
#include <bobbin/db/row.h>
#include <bobbin/db/value.h>
#include <bobbin/sched/lifecycle.h>

namespace bobbin::db {

// What takes statements, one at a time.
class Statements {
 public:
  // The rows of one statement.
  template <Bindable... Args>
  absl::StatusOr<Rows> Query(Sql sql, const Args&... args) {
    return QuerySpan(sql, std::array<Param, sizeof...(Args)>{Param(args)...});
  }
  // How many rows one statement has inserted, updated or deleted. Rows that it returns are dropped.
  template <Bindable... Args>
  absl::StatusOr<int64_t> Execute(Sql sql, const Args&... args) {
    return ExecuteSpan(sql, std::array<Param, sizeof...(Args)>{Param(args)...});
  }

 protected:
  Statements() = default;
  Statements(Statements&&) = default;
  Statements& operator=(Statements&&) = default;
  ~Statements() = default;

 private:
  virtual absl::StatusOr<Rows> QuerySpan(Sql sql, std::span<const Param> params) = 0;
  virtual absl::StatusOr<int64_t> ExecuteSpan(Sql sql, std::span<const Param> params) = 0;
};

// Statements that take effect together or not at all.
class Transaction : public Statements {
 public:
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Has `hook` called when the transaction has been committed, or rolled back; in the order of
  // these calls, on the thread of the transaction, after it has given back its connection. Neither
  // kind is called where a lost connection leaves open which it was. A hook must not throw.
  void AfterCommit(absl::AnyInvocable<void()> hook) { hooks_.OnCommit(std::move(hook)); }
  void AfterRollback(absl::AnyInvocable<void()> hook) { hooks_.OnRollback(std::move(hook)); }

 protected:
  explicit Transaction(internal::TransactionHooks& hooks) : hooks_(hooks) {}
  ~Transaction() = default;

  internal::TransactionHooks& hooks() { return hooks_; }

 private:
  internal::TransactionHooks& hooks_;
};

// What of SQL a database speaks, where there is more than one way.
enum class Dialect : uint8_t { kSqlite, kPostgres, kMySql };

class Database : public Statements {
 public:
  virtual ~Database() = default;

  virtual Dialect dialect() const = 0;

  // Any number of statements without values, such as a schema: all of them or none.
  virtual absl::Status ExecuteScript(Sql script) = 0;

  // Calls `body(transaction)` on the calling thread. Commits if it returns OK. Anything else rolls
  // back: an error, an exception, or that the caller is to stop. Returns what the body returns
  // (absl::Status, or a StatusOr), or why it could not begin or commit.
  template <typename F>
  auto Transact(F&& body) -> std::invoke_result_t<F&, Transaction&> {
    std::optional<std::invoke_result_t<F&, Transaction&>> result;
    absl::Status done = TransactErased([&](Transaction& transaction) {
      result.emplace(body(transaction));
      return internal::StatusIn(*result);
    });
    // What the body has returned says more than its status.
    if (result.has_value() && internal::StatusIn(*result) == done) return *std::move(result);
    return done;
  }

  // Refuses new calls, ends those that wait for a connection with UNAVAILABLE, and waits for the
  // others. Interrupted, it may be called again.
  virtual absl::Status Close() = 0;
  // Has it closed when the program stops, among the resources: after all that may use it, but for
  // hooks of resources that were registered later. From then on it must not be moved; the hook must
  // go before it does.
  StopHook StopWith(Lifecycle& life) {
    const char* const name = dialect() == Dialect::kSqlite     ? "sqlite"
                             : dialect() == Dialect::kPostgres ? "postgres"
                                                               : "mysql";
    return life.OnStop({.phase = StopPhase::kResources, .name = name}, [this] { return Close(); });
  }

 protected:
  Database() = default;
  Database(Database&&) = default;
  Database& operator=(Database&&) = default;

 private:
  virtual absl::Status TransactErased(absl::FunctionRef<absl::Status(Transaction&)> body) = 0;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_DATABASE_H_
