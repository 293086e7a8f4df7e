// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"

#include <bobbin/db/mysql_pool.h>

#include "db/src/mysql_connection.h"
#include "db/src/mysql_pool_core.h"

namespace bobbin::db {

using internal::MySqlAnswer;
using internal::MySqlConnection;
using internal::MySqlLease;
using internal::MySqlPhase;
using internal::MySqlPoolCore;
using internal::MySqlWanted;

namespace {

absl::Status Misuse(std::string_view cause) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "mysql transaction: " + std::string(cause));
}

// What is run by itself leaves no transaction open.
absl::StatusOr<MySqlAnswer> RunAlone(MySqlConnection& connection, Sql sql,
                                     std::span<const Param> params, MySqlWanted wanted) {
  absl::StatusOr<MySqlAnswer> answer = connection.Run(sql.text(), params, wanted);
  if (connection.phase() != MySqlPhase::kInTransaction) return answer;
  connection.RollBack();
  if (!answer.ok()) return answer;
  return Misuse("it has no end; use Transact");
}

std::string BeginTextOf(const MySqlTransactOptions& options) {
  std::string text;
  switch (options.isolation) {
    case MySqlIsolation::kDefault:
      break;
    case MySqlIsolation::kReadCommitted:
      text = "set transaction isolation level read committed; ";
      break;
    case MySqlIsolation::kRepeatableRead:
      text = "set transaction isolation level repeatable read; ";
      break;
    case MySqlIsolation::kSerializable:
      text = "set transaction isolation level serializable; ";
      break;
  }
  text += "start transaction";
  if (options.access == MySqlAccess::kReadOnly) text += " read only";
  return text;
}

}  // namespace

// --- MySqlPool.

MySqlPool::MySqlPool(std::unique_ptr<MySqlPoolCore> core) : core_(std::move(core)) {}
MySqlPool::MySqlPool(MySqlPool&&) noexcept = default;
MySqlPool& MySqlPool::operator=(MySqlPool&&) noexcept = default;
MySqlPool::~MySqlPool() = default;

absl::StatusOr<MySqlPool> MySqlPool::Open(MySqlPoolOptions options) {
  auto core = std::make_unique<MySqlPoolCore>(std::move(options));
  BOBBIN_RETURN_IF_ERROR(core->Acquire().status());
  return MySqlPool(std::move(core));
}

absl::StatusOr<Rows> MySqlPool::QuerySpan(Sql sql, std::span<const Param> params) {
  BOBBIN_ASSIGN_OR_RETURN(const MySqlLease lease, core_->Acquire());
  BOBBIN_ASSIGN_OR_RETURN(MySqlAnswer answer,
                          RunAlone(lease.connection(), sql, params, MySqlWanted::kRows));
  return std::move(answer.rows);
}

absl::StatusOr<int64_t> MySqlPool::ExecuteSpan(Sql sql, std::span<const Param> params) {
  BOBBIN_ASSIGN_OR_RETURN(const MySqlLease lease, core_->Acquire());
  BOBBIN_ASSIGN_OR_RETURN(const MySqlAnswer answer,
                          RunAlone(lease.connection(), sql, params, MySqlWanted::kChanges));
  return answer.changes;
}

absl::Status MySqlPool::ExecuteScript(Sql script) {
  BOBBIN_ASSIGN_OR_RETURN(const MySqlLease lease, core_->Acquire());
  MySqlConnection& connection = lease.connection();
  BOBBIN_RETURN_IF_ERROR(connection.Begin(BeginTextOf({})));
  absl::Status status = connection.RunScript(script.text());
  bool is_unknown = false;
  if (status.ok()) status = connection.Commit(is_unknown);
  connection.RollBack();
  return status;
}

absl::Status MySqlPool::TransactErased(absl::FunctionRef<absl::Status(Transaction&)> body) {
  return Transact([&](MySqlTransaction& transaction) { return body(transaction); });
}

PoolStatistics MySqlPool::Statistics() const { return core_->Statistics(); }

absl::Status MySqlPool::Close() { return core_->Close(); }

// --- MySqlTransaction.

MySqlTransaction::MySqlTransaction(MySqlPoolCore& core, internal::TransactionHooks& hooks,
                                   const MySqlTransactOptions& options)
    : Transaction(hooks), core_(core), options_(options) {}

MySqlTransaction::~MySqlTransaction() { RollBack(); }

absl::Status MySqlTransaction::Begin() {
  BOBBIN_ASSIGN_OR_RETURN(MySqlLease lease, core_.Acquire());
  lease_ = std::make_unique<MySqlLease>(std::move(lease));
  BOBBIN_RETURN_IF_ERROR(lease_->connection().Begin(BeginTextOf(options_)));
  is_open_ = true;
  return absl::OkStatus();
}

absl::Status MySqlTransaction::Commit() {
  if (!is_open_) return Misuse("it is over");
  bool is_unknown = false;
  absl::Status status = lease_->connection().Commit(is_unknown);
  if (status.ok()) {
    is_open_ = false;
    hooks().set_outcome(internal::Outcome::kCommitted);
  } else if (is_unknown) {
    is_open_ = false;
    status = MakeStatus(absl::StatusCode::kUnknown,
                        "mysql transaction: whether it was committed is not known: " +
                            std::string(MessageOf(status)));
  } else {
    RollBack();
  }
  return status;
}

void MySqlTransaction::RollBack() noexcept {
  if (!std::exchange(is_open_, false)) return;
  // A server that has lost the connection rolls back by itself.
  lease_->connection().RollBack();
  hooks().set_outcome(internal::Outcome::kRolledBack);
}

absl::Status MySqlTransaction::UseConnection(
    absl::FunctionRef<absl::Status(MySqlConnection&)> use) {
  // The acquire pairs with the release below.
  if (is_in_use_.exchange(true, std::memory_order_acquire)) {
    return Misuse("two threads use it at the same time");
  }
  const absl::Cleanup done = [this] {
    is_in_use_.store(false, std::memory_order_release);  // Pairs with the acquire above.
  };
  if (!is_open_) return Misuse("it is over");
  MySqlConnection& connection = lease_->connection();
  absl::Status status = use(connection);
  // Later statements must not run by themselves: after a deadlock the server has nothing of it any
  // more, and after a wait for a lock it may have.
  if (IsMySqlConflict(status)) {
    RollBack();
  } else if (connection.phase() == MySqlPhase::kIdle) {
    is_open_ = false;
    if (status.ok()) return Misuse("a statement in it has ended it");
  }
  return status;
}

absl::StatusOr<Rows> MySqlTransaction::QuerySpan(Sql sql, std::span<const Param> params) {
  MySqlAnswer answer;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](MySqlConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(answer, connection.Run(sql.text(), params, MySqlWanted::kRows));
    return absl::OkStatus();
  }));
  return std::move(answer.rows);
}

absl::StatusOr<int64_t> MySqlTransaction::ExecuteSpan(Sql sql, std::span<const Param> params) {
  MySqlAnswer answer;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](MySqlConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(answer, connection.Run(sql.text(), params, MySqlWanted::kChanges));
    return absl::OkStatus();
  }));
  return answer.changes;
}

}  // namespace bobbin::db
