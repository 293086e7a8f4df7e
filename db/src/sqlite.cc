// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/cleanup/cleanup.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/db/sqlite.h>

#include "db/src/sqlite_backup.h"
#include "db/src/sqlite_connection.h"
#include "db/src/sqlite_core.h"
#include "db/src/sqlite_operation.h"

namespace bobbin::db {

using internal::SqliteAnswer;
using internal::SqliteConnection;
using internal::SqliteCore;
using internal::SqliteOperation;
using internal::SqliteSession;
using internal::SqliteWanted;

namespace {

absl::Status Misuse(std::string_view cause) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "sqlite transaction: " + std::string(cause));
}

}  // namespace

// --- Sqlite.

Sqlite::Sqlite(std::unique_ptr<SqliteCore> core) : core_(std::move(core)) {}
Sqlite::Sqlite(Sqlite&&) noexcept = default;
Sqlite& Sqlite::operator=(Sqlite&&) noexcept = default;
Sqlite::~Sqlite() = default;

absl::StatusOr<Sqlite> Sqlite::Open(SqliteOptions options) {
  auto core = std::make_unique<SqliteCore>(std::move(options));
  BOBBIN_RETURN_IF_ERROR(core->Open());
  return Sqlite(std::move(core));
}

absl::StatusOr<Rows> Sqlite::QuerySpan(Sql sql, std::span<const Param> params) {
  BOBBIN_ASSIGN_OR_RETURN(SqliteAnswer answer,
                          core_->RunStatement(sql.text(), params, SqliteWanted::kRows));
  return std::move(answer.rows);
}

absl::StatusOr<int64_t> Sqlite::ExecuteSpan(Sql sql, std::span<const Param> params) {
  BOBBIN_ASSIGN_OR_RETURN(const SqliteAnswer answer,
                          core_->RunStatement(sql.text(), params, SqliteWanted::kChanges));
  return answer.changes;
}

absl::Status Sqlite::ExecuteScript(Sql script) {
  return core_->RunOnWriter(
      [&](SqliteSession& session) { return session.RunScript(script.text()); });
}

absl::Status Sqlite::Checkpoint() {
  return core_->RunOnWriter([](SqliteSession& session) { return session.Checkpoint(); });
}

absl::Status Sqlite::Backup(const SqliteBackupOptions& options,
                            absl::FunctionRef<absl::Status(const SqliteBackupProgress&)> on_step) {
  return internal::BackUpSqlite(*core_, options, on_step);
}

absl::Status Sqlite::Backup(const SqliteBackupOptions& options) {
  return Backup(options, [](const SqliteBackupProgress&) { return absl::OkStatus(); });
}

SqliteStatistics Sqlite::Statistics() const { return core_->Statistics(); }

absl::Status Sqlite::TransactErased(absl::FunctionRef<absl::Status(Transaction&)> body) {
  return Transact([&](SqliteTransaction& transaction) { return body(transaction); });
}

absl::Status Sqlite::Close() { return core_->Close(); }

// --- SqliteTransaction.

SqliteTransaction::SqliteTransaction(SqliteCore& core, internal::TransactionHooks& hooks)
    : Transaction(hooks), core_(core) {}

SqliteTransaction::~SqliteTransaction() {
  RollBack();
  if (connection_ != nullptr) core_.writer().Release(*connection_);
}

absl::Status SqliteTransaction::Acquire() {
  BOBBIN_ASSIGN_OR_RETURN(connection_, core_.writer().Acquire());
  return absl::OkStatus();
}

absl::Status SqliteTransaction::Begin() {
  SqliteOperation operation(outer_);
  BOBBIN_RETURN_IF_ERROR(
      core_.Run(*connection_, operation, [](SqliteSession& session) -> absl::Status {
        BOBBIN_RETURN_IF_ERROR(session.MakeReady());
        return session.Begin();
      }));
  is_open_ = true;
  return absl::OkStatus();
}

absl::Status SqliteTransaction::Commit() {
  if (!is_open_) return lost_;
  // Once it has begun, a commit is not cut short: its outcome would be unknown.
  if (outer_ != nullptr && outer_->ShouldStop()) return absl::Status(outer_->StopCode(), "");
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  BOBBIN_RETURN_IF_ERROR(
      core_.RunAlways(*connection_, [](SqliteSession& session) { return session.Commit(); }));
  is_open_ = false;
  hooks().set_outcome(internal::Outcome::kCommitted);
  return absl::OkStatus();
}

void SqliteTransaction::RollBack() noexcept {
  if (!std::exchange(is_open_, false)) return;
  hooks().set_outcome(internal::Outcome::kRolledBack);
  // If the pool is gone, the connection's next user rolls back; or its end does.
  core_
      .RunAlways(*connection_,
                 [](SqliteSession& session) {
                   session.RollBack();
                   return absl::OkStatus();
                 })
      .IgnoreError();
}

absl::Status SqliteTransaction::RunInside(absl::FunctionRef<absl::Status(SqliteSession&)> work) {
  // The acquire pairs with the release below.
  if (is_in_use_.exchange(true, std::memory_order_acquire)) {
    return Misuse("two threads use it at the same time");
  }
  const absl::Cleanup done = [this] {
    is_in_use_.store(false, std::memory_order_release);  // Pairs with the acquire above.
  };
  if (!is_open_) return lost_.ok() ? Misuse("it is over") : lost_;

  SqliteOperation operation(outer_);
  bool is_lost = false;
  absl::Status status = core_.Run(*connection_, operation, [&](SqliteSession& session) {
    absl::Status result = work(session);
    is_lost = !session.IsInTransaction();
    return result;
  });
  if (!is_lost) return status;
  // An error may make SQLite roll back everything; later statements must not run by themselves.
  is_open_ = false;
  hooks().set_outcome(internal::Outcome::kRolledBack);
  lost_ = status.ok() ? Misuse("a statement in it has ended it") : std::move(status);
  return lost_;
}

absl::StatusOr<Rows> SqliteTransaction::QuerySpan(Sql sql, std::span<const Param> params) {
  SqliteAnswer answer;
  BOBBIN_RETURN_IF_ERROR(RunInside([&](SqliteSession& session) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(answer, session.Run(sql.text(), params, SqliteWanted::kRows));
    return absl::OkStatus();
  }));
  return std::move(answer.rows);
}

absl::StatusOr<int64_t> SqliteTransaction::ExecuteSpan(Sql sql, std::span<const Param> params) {
  SqliteAnswer answer;
  BOBBIN_RETURN_IF_ERROR(RunInside([&](SqliteSession& session) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(answer, session.Run(sql.text(), params, SqliteWanted::kChanges));
    return absl::OkStatus();
  }));
  return answer.changes;
}

// --- Sqlite::BatchScope.

Sqlite::BatchScope::BatchScope(SqliteTransaction& transaction)
    : transaction_(transaction), operation_(std::make_unique<SqliteOperation>()) {
  transaction_.outer_ = operation_.get();
}

Sqlite::BatchScope::~BatchScope() {
  transaction_.outer_ = nullptr;
  transaction_.core_.writer().HandOverToCurrent(*transaction_.connection_);
}

PlatformPool& Sqlite::BatchScope::pool() const { return transaction_.core_.pool(); }

void Sqlite::BatchScope::operator()() const { operation_->RequestStop(); }

void Sqlite::BatchScope::Enter() const {
  transaction_.core_.writer().HandOverToCurrent(*transaction_.connection_);
}

}  // namespace bobbin::db
