// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"

#include <bobbin/db/pg_pool.h>

#include "db/src/pg_connection.h"
#include "db/src/pg_pool_core.h"
#include "db/src/pg_use.h"

namespace bobbin::db {

using internal::PgConnection;
using internal::PgExchange;
using internal::PgLease;
using internal::PgPhase;
using internal::PgPoolCore;
using internal::PgUse;
using internal::PgWanted;

namespace {

absl::Status Misuse(std::string_view cause) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "postgres transaction: " + std::string(cause));
}

// What is run by itself leaves no transaction open.
template <typename T>
absl::StatusOr<T> CheckAlone(PgConnection& connection, absl::StatusOr<T> answer) {
  if (connection.phase() == PgPhase::kIdle || connection.phase() == PgPhase::kBroken) return answer;
  connection.RollBack();
  if (!answer.ok()) return answer;
  return Misuse("it has no end; use Transact");
}

absl::StatusOr<PgAnswer> RunAlone(PgConnection& connection, std::string_view sql,
                                  std::span<const Param> params, PgWanted wanted) {
  return CheckAlone(connection, connection.Run(sql, params, wanted));
}

// Begins an exchange that goes on after this call.
template <typename Begin>
absl::StatusOr<std::unique_ptr<PgUse>> BeginUse(PgLease lease, PgConnection& connection, Sql sql,
                                                Begin begin) {
  BOBBIN_RETURN_IF_ERROR(connection.CheckFree());
  auto use = std::make_unique<PgUse>(std::move(lease), connection, sql.text());
  if (absl::Status begun = begin(use->exchange()); !begun.ok()) {
    use->set_is_over();
    return begun;
  }
  return use;
}

absl::StatusOr<std::unique_ptr<PgUse>> BeginStream(PgLease lease, PgConnection& connection, Sql sql,
                                                   std::span<const Param> params) {
  return BeginUse(std::move(lease), connection, sql, [&](PgExchange& exchange) {
    return connection.BeginStream(exchange, sql.text(), params);
  });
}

absl::StatusOr<std::unique_ptr<PgUse>> BeginCopy(PgLease lease, PgConnection& connection, Sql sql,
                                                 ExecStatusType kind) {
  return BeginUse(std::move(lease), connection, sql, [&](PgExchange& exchange) {
    return connection.BeginCopy(exchange, sql.text(), kind);
  });
}

std::string BeginOf(const PgTransactOptions& options) {
  std::string text = "begin";
  switch (options.isolation) {
    case PgIsolation::kDefault:
      break;
    case PgIsolation::kReadCommitted:
      text += " isolation level read committed";
      break;
    case PgIsolation::kRepeatableRead:
      text += " isolation level repeatable read";
      break;
    case PgIsolation::kSerializable:
      text += " isolation level serializable";
      break;
  }
  if (options.access == PgAccess::kReadOnly) text += " read only";
  return text;
}

}  // namespace

// --- PgPool.

PgPool::PgPool(std::unique_ptr<PgPoolCore> core) : core_(std::move(core)) {}
PgPool::PgPool(PgPool&&) noexcept = default;
PgPool& PgPool::operator=(PgPool&&) noexcept = default;
PgPool::~PgPool() = default;

absl::StatusOr<PgPool> PgPool::Open(PgPoolOptions options) {
  auto core = std::make_unique<PgPoolCore>(std::move(options));
  BOBBIN_RETURN_IF_ERROR(core->Acquire().status());
  return PgPool(std::move(core));
}

absl::StatusOr<Rows> PgPool::QuerySpan(Sql sql, std::span<const Param> params) {
  BOBBIN_ASSIGN_OR_RETURN(const PgLease lease, core_->Acquire());
  BOBBIN_ASSIGN_OR_RETURN(PgAnswer answer,
                          RunAlone(lease.connection(), sql.text(), params, PgWanted::kRows));
  return std::move(answer.rows);
}

absl::StatusOr<int64_t> PgPool::ExecuteSpan(Sql sql, std::span<const Param> params) {
  BOBBIN_ASSIGN_OR_RETURN(const PgLease lease, core_->Acquire());
  BOBBIN_ASSIGN_OR_RETURN(const PgAnswer answer,
                          RunAlone(lease.connection(), sql.text(), params, PgWanted::kChanges));
  return answer.changes;
}

absl::Status PgPool::ExecuteScript(Sql script) {
  BOBBIN_ASSIGN_OR_RETURN(const PgLease lease, core_->Acquire());
  absl::Status status = lease.connection().RunScript(script.text());
  lease.connection().RollBack();
  return status;
}

absl::Status PgPool::TransactErased(absl::FunctionRef<absl::Status(Transaction&)> body) {
  return Transact([&](PgTransaction& transaction) { return body(transaction); });
}

absl::StatusOr<std::vector<PgAnswer>> PgPool::RunPipeline(const PgPipeline& pipeline) {
  BOBBIN_ASSIGN_OR_RETURN(const PgLease lease, core_->Acquire());
  return CheckAlone(lease.connection(), lease.connection().RunPipeline(pipeline));
}

absl::StatusOr<PgStream> PgPool::StreamSpan(Sql sql, std::span<const Param> params) {
  BOBBIN_ASSIGN_OR_RETURN(PgLease lease, core_->Acquire());
  PgConnection& connection = lease.connection();
  BOBBIN_ASSIGN_OR_RETURN(auto use, BeginStream(std::move(lease), connection, sql, params));
  return PgStream(std::move(use));
}

absl::StatusOr<PgCopyIn> PgPool::CopyIn(Sql sql) {
  BOBBIN_ASSIGN_OR_RETURN(PgLease lease, core_->Acquire());
  PgConnection& connection = lease.connection();
  BOBBIN_ASSIGN_OR_RETURN(auto use, BeginCopy(std::move(lease), connection, sql, PGRES_COPY_IN));
  return PgCopyIn(std::move(use));
}

absl::StatusOr<PgCopyOut> PgPool::CopyOut(Sql sql) {
  BOBBIN_ASSIGN_OR_RETURN(PgLease lease, core_->Acquire());
  PgConnection& connection = lease.connection();
  BOBBIN_ASSIGN_OR_RETURN(auto use, BeginCopy(std::move(lease), connection, sql, PGRES_COPY_OUT));
  return PgCopyOut(std::move(use));
}

PoolStatistics PgPool::Statistics() const { return core_->Statistics(); }

absl::Status PgPool::Close() { return core_->Close(); }

// --- PgTransaction.

PgTransaction::PgTransaction(PgPoolCore& core, internal::TransactionHooks& hooks,
                             const PgTransactOptions& options)
    : Transaction(hooks), core_(core), options_(options) {}

PgTransaction::~PgTransaction() { RollBack(); }

absl::Status PgTransaction::Begin() {
  BOBBIN_ASSIGN_OR_RETURN(PgLease lease, core_.Acquire());
  lease_ = std::make_unique<PgLease>(std::move(lease));
  BOBBIN_RETURN_IF_ERROR(lease_->connection().RunScript(BeginOf(options_)));
  is_open_ = true;
  return absl::OkStatus();
}

absl::Status PgTransaction::Commit() {
  if (!is_open_) return Misuse("it is over");
  bool is_unknown = false;
  absl::Status status = lease_->connection().Commit(is_unknown);
  if (status.ok()) {
    is_open_ = false;
    hooks().set_outcome(internal::Outcome::kCommitted);
  } else if (is_unknown) {
    is_open_ = false;
    status = MakeStatus(absl::StatusCode::kUnknown,
                        "postgres transaction: whether it was committed is not known: " +
                            std::string(MessageOf(status)));
  } else {
    RollBack();
  }
  return status;
}

void PgTransaction::RollBack() noexcept {
  if (!std::exchange(is_open_, false)) return;
  // A server that has lost the connection rolls back by itself.
  lease_->connection().RollBack();
  hooks().set_outcome(internal::Outcome::kRolledBack);
}

absl::Status PgTransaction::UseConnection(absl::FunctionRef<absl::Status(PgConnection&)> use) {
  // The acquire pairs with the release below.
  if (is_in_use_.exchange(true, std::memory_order_acquire)) {
    return Misuse("two threads use it at the same time");
  }
  const absl::Cleanup done = [this] {
    is_in_use_.store(false, std::memory_order_release);  // Pairs with the acquire above.
  };
  if (!is_open_) return Misuse("it is over");
  PgConnection& connection = lease_->connection();
  absl::Status status = use(connection);
  if (connection.phase() == PgPhase::kIdle) {
    // Later statements must not run by themselves.
    is_open_ = false;
    return status.ok() ? Misuse("a statement in it has ended it") : status;
  }
  return status;
}

absl::StatusOr<Rows> PgTransaction::QuerySpan(Sql sql, std::span<const Param> params) {
  PgAnswer answer;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](PgConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(answer, connection.Run(sql.text(), params, PgWanted::kRows));
    return absl::OkStatus();
  }));
  return std::move(answer.rows);
}

absl::StatusOr<int64_t> PgTransaction::ExecuteSpan(Sql sql, std::span<const Param> params) {
  PgAnswer answer;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](PgConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(answer, connection.Run(sql.text(), params, PgWanted::kChanges));
    return absl::OkStatus();
  }));
  return answer.changes;
}

absl::StatusOr<std::vector<PgAnswer>> PgTransaction::RunPipeline(const PgPipeline& pipeline) {
  std::vector<PgAnswer> answers;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](PgConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(answers, connection.RunPipeline(pipeline));
    return absl::OkStatus();
  }));
  return answers;
}

absl::StatusOr<PgStream> PgTransaction::StreamSpan(Sql sql, std::span<const Param> params) {
  std::unique_ptr<PgUse> use;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](PgConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(use, BeginStream(PgLease(), connection, sql, params));
    return absl::OkStatus();
  }));
  return PgStream(std::move(use));
}

absl::StatusOr<PgCopyIn> PgTransaction::CopyIn(Sql sql) {
  std::unique_ptr<PgUse> use;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](PgConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(use, BeginCopy(PgLease(), connection, sql, PGRES_COPY_IN));
    return absl::OkStatus();
  }));
  return PgCopyIn(std::move(use));
}

absl::StatusOr<PgCopyOut> PgTransaction::CopyOut(Sql sql) {
  std::unique_ptr<PgUse> use;
  BOBBIN_RETURN_IF_ERROR(UseConnection([&](PgConnection& connection) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(use, BeginCopy(PgLease(), connection, sql, PGRES_COPY_OUT));
    return absl::OkStatus();
  }));
  return PgCopyOut(std::move(use));
}

}  // namespace bobbin::db
