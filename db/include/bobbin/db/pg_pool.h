// SPDX-License-Identifier: Apache-2.0
//
// PgPool: connections to a PostgreSQL server, for virtual threads. PgTransaction: several
// statements as one.
//
// Nothing of it blocks a carrier: who waits for the server, or for a connection, is parked.
// Connections are made when they are needed, up to `connections_max`; who wants one beyond waits in
// turn. One that is not provably clean, because it was lost, or its server did not end a statement
// in time, is closed and never given to anybody else. Before an idle one is given away the pool
// looks whether the server is still there, so that after a restart of the server statements go to
// new connections. A statement that may have reached the server is never sent twice.
//
// Statements. Texts number the places of values: `$1`. Values go as texts whose types the server
// chooses; where nothing in the statement tells, write `$1::int8`. A text that comes again is
// prepared on its connection, and kept. What belongs to a session - SET, temporary tables, advisory
// locks - stays with the connection, which others get next: use `set local` and the like, in a
// transaction. Numbers of arbitrary precision, JSON, and what has no type of its own in C++ come
// and go as texts.
//
// A nested call takes a second connection, and may wait for ever for it when all are held by
// threads that do the same: inside a transaction, use the transaction. When no connection becomes
// free within `acquire_wait_max`, the error names who holds them.
//
//   Called from   virtual threads of a runtime with an I/O poller (see io.h), platform and foreign
//                 threads; the last two block. A transaction: one thread at a time.
//   Suspends      everything but the constructors and Statistics.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED: while it waits for a connection or connects, at
//                 once. While its statement runs: the server is asked to cancel it, and waited for
//                 up to PgServer::cancel_wait_max. A statement that was done all the same is
//                 reported as done. Close may be called again; commit and rollback are not cut
//                 short.
//   Errors        as Database, and of the server's own as PgError. RESOURCE_EXHAUSTED: too many
//                 wait, or no connection became free in time. UNAVAILABLE: no server, or the
//                 connection was lost: whether the statement took effect is then not known.
//   Order         First come, first served. The connection that was used last is given first.
//   Lifetime      Must outlive every call.
//   Cost          A statement: a send, a wait and a receive on the caller's carrier, and two looks
//                 at the clock. A transaction of n statements: n + 2 of them.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto pool, bobbin::db::PgPool::Open(
//                                          {.server = {.conninfo = "postgresql://app@db/main"}}));
//   bobbin::DeadlineScope scope(2s);  // Includes waiting for a free connection.
//   absl::Status moved = pool.Transact([&](bobbin::db::PgTransaction& tx) -> absl::Status {
//     BOBBIN_RETURN_IF_ERROR(tx.Execute("update t set n = n - 1 where id = $1", from).status());
//     return tx.Execute("update t set n = n + 1 where id = $1", to).status();
//   });

#ifndef BOBBIN_DB_PG_POOL_H_
#define BOBBIN_DB_PG_POOL_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/db/database.h>
#include <bobbin/db/internal/retry_pause.h>
#include <bobbin/db/internal/transaction_hooks.h>
#include <bobbin/db/pg_copy.h>
#include <bobbin/db/pg_error.h>
#include <bobbin/db/pg_pipeline.h>
#include <bobbin/db/pg_server.h>
#include <bobbin/db/pg_stream.h>
#include <bobbin/db/pool_statistics.h>
#include <bobbin/db/row.h>
#include <bobbin/db/value.h>

namespace bobbin::db {

namespace internal {
class PgConnection;
class PgLease;
class PgPoolCore;
}  // namespace internal

struct PgPoolOptions {
  PgServer server = {};
  // From 1 to some thousands. More than a few for each of the server's CPUs only wait there.
  size_t connections_max = 8;
  // Who may wait for one; more are refused.
  size_t waiters_max = 10'000;
  std::chrono::nanoseconds acquire_wait_max = std::chrono::seconds(30);
  // A connection is replaced when it is so old, give or take a tenth, so that not all are at once.
  std::chrono::nanoseconds lifetime_max = std::chrono::minutes(30);
  // One that nobody has used for so long is closed. By a virtual thread of the pool's own; where
  // only OS threads use it, when the pool is next used. The same goes for one that is too old.
  std::chrono::nanoseconds idle_max = std::chrono::minutes(10);
};

enum class PgIsolation : uint8_t { kDefault, kReadCommitted, kRepeatableRead, kSerializable };
enum class PgAccess : uint8_t { kReadWrite, kReadOnly };

struct PgTransactOptions {
  PgIsolation isolation = PgIsolation::kDefault;
  PgAccess access = PgAccess::kReadWrite;
  // How often the whole transaction is tried while the server cannot serialize it with others, or
  // ends it because of a deadlock; between two tries there is a short, growing pause.
  int attempts_max = 1;
};

class PgTransaction final : public Transaction {
 public:
  // Statements that are sent together and are a part of the transaction; what each has
  // given. The error is that of the first that failed.
  absl::StatusOr<std::vector<PgAnswer>> RunPipeline(const PgPipeline& pipeline);
  // The rows of one statement, as they come.
  template <Bindable... Args>
  absl::StatusOr<PgStream> Stream(Sql sql, const Args&... args) {
    return StreamSpan(sql, std::array<Param, sizeof...(Args)>{Param(args)...});
  }
  // A `copy ... from stdin`, and a `copy ... to stdout`.
  absl::StatusOr<PgCopyIn> CopyIn(Sql sql);
  absl::StatusOr<PgCopyOut> CopyOut(Sql sql);

 private:
  friend class PgPool;
  friend class internal::TransactionCourse;

  PgTransaction(internal::PgPoolCore& core, internal::TransactionHooks& hooks,
                const PgTransactOptions& options);
  // Rolls back, unless it was committed, and gives the connection back.
  ~PgTransaction();

  absl::Status Begin();
  absl::Status Commit();
  void RollBack() noexcept;

  absl::StatusOr<Rows> QuerySpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<int64_t> ExecuteSpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<PgStream> StreamSpan(Sql sql, std::span<const Param> params);
  // Calls `use` with the connection, if the transaction may be used here and now.
  absl::Status UseConnection(absl::FunctionRef<absl::Status(internal::PgConnection&)> use);

  internal::PgPoolCore& core_;
  const PgTransactOptions options_;
  std::unique_ptr<internal::PgLease> lease_;
  bool is_open_ = false;  // Begun, and neither committed nor rolled back.
  // Set by the thread that uses it, against a second.
  bobbin::internal::Atomic<bool> is_in_use_{false};
};

class PgPool final : public Database {
 public:
  // Makes a first connection: an address or a password that is wrong is found here.
  static absl::StatusOr<PgPool> Open(PgPoolOptions options);
  PgPool(PgPool&&) noexcept;
  PgPool& operator=(PgPool&&) noexcept;
  // Closes it, if that has not been done.
  ~PgPool() override;

  Dialect dialect() const override { return Dialect::kPostgres; }
  absl::Status ExecuteScript(Sql script) override;

  // As Database::Transact. With `attempts_max` above 1 the body may be called several times; hooks
  // are called for each time.
  template <typename F>
  auto Transact(const PgTransactOptions& options, F&& body)
      -> std::invoke_result_t<F&, PgTransaction&> {
    for (int attempt = 1;; ++attempt) {
      auto result = TransactOnce(options, body);
      if (attempt >= options.attempts_max || !IsSerializationFailure(internal::StatusIn(result))) {
        return result;
      }
      BOBBIN_RETURN_IF_ERROR(internal::PauseBeforeRetry(attempt));
    }
  }
  template <typename F>
  auto Transact(F&& body) -> std::invoke_result_t<F&, PgTransaction&> {
    return TransactOnce(PgTransactOptions{}, body);
  }

  // Statements that are sent together and take effect together; what each has given. The error is
  // that of the first that failed.
  absl::StatusOr<std::vector<PgAnswer>> RunPipeline(const PgPipeline& pipeline);
  // The rows of one statement, as they come.
  template <Bindable... Args>
  absl::StatusOr<PgStream> Stream(Sql sql, const Args&... args) {
    return StreamSpan(sql, std::array<Param, sizeof...(Args)>{Param(args)...});
  }
  // A `copy ... from stdin`, and a `copy ... to stdout`.
  absl::StatusOr<PgCopyIn> CopyIn(Sql sql);
  absl::StatusOr<PgCopyOut> CopyOut(Sql sql);

  PoolStatistics Statistics() const;

  // As Database::Close.
  absl::Status Close() override;

 private:
  explicit PgPool(std::unique_ptr<internal::PgPoolCore> core);

  template <typename F>
  auto TransactOnce(const PgTransactOptions& options, F& body)
      -> std::invoke_result_t<F&, PgTransaction&> {
    internal::TransactionHooks hooks;
    PgTransaction transaction(*core_, hooks, options);
    return internal::TransactionCourse::Run(transaction, body);
  }

  absl::StatusOr<Rows> QuerySpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<int64_t> ExecuteSpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<PgStream> StreamSpan(Sql sql, std::span<const Param> params);
  absl::Status TransactErased(absl::FunctionRef<absl::Status(Transaction&)> body) override;

  std::unique_ptr<internal::PgPoolCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_PG_POOL_H_
