// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/readiness.h>

#include "db/src/limits.h"
#include "db/src/pg_cancel.h"
#include "db/src/pg_error.h"
#include "db/src/text.h"

namespace bobbin::db::internal {

namespace {

// Waits until a socket is ready for the one or the other. An epoll that holds it is readable then.
absl::Status WaitReadableOrWritable(int fd) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return ErrnoStatus(errno, "wait for postgres");
  const absl::Cleanup close = [epoll] { ::close(epoll); };
  epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data = {.fd = fd}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoStatus(errno, "wait for postgres");
  }
  return io::WaitReadable(epoll);
}

std::string ConnectionError(PGconn& connection) {
  std::string text = PQerrorMessage(&connection);
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? "the connection is lost" : text;
}

}  // namespace

// --- PgExchange.

std::string PgExchange::Operation() const { return fmt::format("postgres \"{}\"", ShownSql(sql_)); }

absl::Status PgExchange::Break(absl::Status why) {
  connection_.is_broken_ = true;
  return stop_.ok() ? std::move(why) : stop_;
}

absl::Status PgExchange::Send(int is_sent) {
  PGconn* const handle = connection_.handle_.get();
  if (is_sent == 0) {
    return Break(MakeStatus(absl::StatusCode::kUnavailable,
                            fmt::format("{}: {}", Operation(), ConnectionError(*handle))));
  }
  return Flush();
}

absl::Status PgExchange::Flush() {
  PGconn* const handle = connection_.handle_.get();
  while (true) {
    const int left = PQflush(handle);
    if (left == 0) break;
    // A connection that is lost may have said why: that comes as a result.
    if (left < 0) break;
    BOBBIN_RETURN_IF_ERROR(Await([&] { return WaitReadableOrWritable(PQsocket(handle)); }));
    if (PQconsumeInput(handle) == 0) break;
  }
  is_sent_ = true;
  return absl::OkStatus();
}

absl::Status PgExchange::Await(absl::FunctionRef<absl::Status()> wait) {
  if (stop_.ok()) {
    absl::Status waited = wait();
    if (waited.ok()) return waited;
    stop_ = CheckStop();
    if (stop_.ok()) return Break(std::move(waited));
    // The server has the statement only if all of it was sent.
    if (!is_sent_) return Break(stop_);
    Abandon();
  }
  return AwaitEnd(wait);
}

// The server ignores a request that comes before the statement has begun, so it is asked again and
// again.
absl::Status PgExchange::AwaitEnd(absl::FunctionRef<absl::Status()> wait) {
  const CancelShield shield;
  while (!connection_.is_broken_) {
    absl::Status waited;
    {
      const DeadlineScope patience(Deadline::At(std::min(ask_again_, give_up_)));
      waited = wait();
    }
    if (waited.ok()) return waited;
    if (waited.code() != absl::StatusCode::kDeadlineExceeded || MonotonicNow() >= give_up_) break;
    AskToEnd();
  }
  return Break(absl::DeadlineExceededError(""));
}

void PgExchange::Abandon() {
  if (std::exchange(is_abandoned_, true)) return;
  give_up_ = MonotonicNow() + connection_.server_.cancel_wait_max;
  AskToEnd();
}

void PgExchange::AskToEnd() {
  const CancelShield shield;
  const DeadlineScope patience(Deadline::At(give_up_));
  const absl::Status asked =
      connection_.cancel_key_.has_value()
          ? CancelPg(PQsocket(connection_.handle_.get()), connection_.process(),
                     *connection_.cancel_key_)
          : MakeStatus(absl::StatusCode::kUnimplemented, "the server takes no such requests");
  // Whether it was passed on is not known: it might hit the next statement.
  if (!asked.ok()) connection_.is_broken_ = true;
  ask_again_ = MonotonicNow() + ask_pause_;
  ask_pause_ *= 2;
}

absl::StatusOr<PgResult> PgExchange::Next() {
  PGconn* const handle = connection_.handle_.get();
  while (PQisBusy(handle) != 0) {
    BOBBIN_RETURN_IF_ERROR(Await([&] { return io::WaitReadable(PQsocket(handle)); }));
    if (PQconsumeInput(handle) == 0) {
      connection_.is_broken_ = true;
      break;  // What is known about it comes as a result.
    }
  }
  return PgResult(PQgetResult(handle));
}

absl::Status PgExchange::Finish() {
  absl::Status status;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const PgResult result, Next());
    if (result == nullptr) return status;
    status.Update(StatusOf(*result));
  }
}

absl::Status PgExchange::StatusOf(const PGresult& result) const {
  switch (PQresultStatus(&result)) {
    case PGRES_FATAL_ERROR:
    case PGRES_NONFATAL_ERROR:
    case PGRES_BAD_RESPONSE: {
      PgError error = ErrorOf(result);
      // It was ended because the caller was to stop.
      if (error.sqlstate == kQueryCanceled && !stop_.ok()) return stop_;
      return PgStatus(error, Operation());
    }
    case PGRES_PIPELINE_ABORTED:
      return MakeStatus(absl::StatusCode::kAborted,
                        Operation() + ": it did not run, because one before it has failed");
    default:
      return absl::OkStatus();
  }
}

// --- PgConnection.

PgConnection::PgConnection(Passkey, const PgServer& server, PgLink link)
    : server_(server), handle_(std::move(link.handle)), cancel_key_(link.cancel_key) {
  PQsetNoticeReceiver(handle_.get(), &OnNotice, this);
}

PgConnection::~PgConnection() = default;

void PgConnection::OnNotice(void* connection, const PGresult* result) {
  auto& self = *static_cast<PgConnection*>(connection);
  // The last words of a server that ends an idle connection.
  const char* const severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity != nullptr &&
      (severity == std::string_view("FATAL") || severity == std::string_view("PANIC"))) {
    self.is_broken_ = true;
  }
  if (self.server_.on_notice != nullptr) self.server_.on_notice(ErrorOf(*result));
}

absl::StatusOr<std::unique_ptr<PgConnection>> PgConnection::Open(const PgServer& server) {
  BOBBIN_ASSIGN_OR_RETURN(PgLink link, ConnectPg(server));
  auto connection = std::make_unique<PgConnection>(Passkey(), server, std::move(link));
  BOBBIN_RETURN_IF_ERROR(connection->Configure());
  return connection;
}

// Times and blobs are read as they are written by default; a role or a database may have others.
absl::Status PgConnection::Configure() {
  const char* const style = PQparameterStatus(handle_.get(), "DateStyle");
  if (style != nullptr && std::string_view(style).starts_with("ISO")) return absl::OkStatus();
  return RunOwn("set datestyle = iso");
}

PgPhase PgConnection::phase() const {
  if (is_broken_) return PgPhase::kBroken;
  switch (PQtransactionStatus(handle_.get())) {
    case PQTRANS_IDLE:
      return PgPhase::kIdle;
    case PQTRANS_INTRANS:
      return PgPhase::kInTransaction;
    case PQTRANS_INERROR:
      return PgPhase::kInFailedTransaction;
    case PQTRANS_ACTIVE:
    case PQTRANS_UNKNOWN:
      break;
  }
  return PgPhase::kBroken;
}

bool PgConnection::IsAlive() {
  // As long as there is something to read; a server that keeps talking is one that is there.
  for (int i = 0; i < kPgReadsOfIdleMax; ++i) {
    char byte = 0;
    const ssize_t seen = ::recv(PQsocket(handle_.get()), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (seen < 0) return errno == EAGAIN && phase() == PgPhase::kIdle;
    if (seen == 0 || PQconsumeInput(handle_.get()) == 0) return false;
    // Looks at what has come, too.
    while (PGnotify* const notify = PQnotifies(handle_.get())) PQfreemem(notify);
  }
  return phase() == PgPhase::kIdle;
}

absl::Status PgConnection::RunOwn(const std::string& sql) {
  PgExchange exchange(*this, sql);
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  BOBBIN_RETURN_IF_ERROR(exchange.Send(PQsendQuery(handle_.get(), sql.c_str())));
  return exchange.Finish();
}

absl::Status PgConnection::RunScript(std::string_view script) {
  // Several statements in one text are a transaction, for the server.
  return RunOwn(std::string(script));
}

// --- Prepared statements. A text is prepared when it comes for the second time.

std::string PgConnection::KeyOf(std::string_view sql, const PgParams& params) {
  std::string key(sql);
  if (const std::string_view signature = params.Signature(); !signature.empty()) {
    key += '\0';
    key += signature;
  }
  return key;
}

void PgConnection::Forget(std::string_view sql, const PgParams& params) {
  const auto found = statement_of_.find(KeyOf(sql, params));
  if (found == statement_of_.end()) return;
  const KeptStatements::iterator kept = found->second;
  statement_of_.erase(found);
  statements_.erase(kept);
}

absl::StatusOr<std::string> PgConnection::Prepare(std::string_view sql, const PgParams& params) {
  if (server_.statements_kept_max == 0) return std::string();
  std::string key = KeyOf(sql, params);
  const auto found = statement_of_.find(key);
  if (found == statement_of_.end()) {
    if (statements_.size() >= server_.statements_kept_max) {
      const KeptStatement& oldest = statements_.back();
      if (!oldest.name.empty()) BOBBIN_RETURN_IF_ERROR(RunOwn("deallocate " + oldest.name));
      statement_of_.erase(oldest.key);
      statements_.pop_back();
    }
    statements_.push_front({.key = std::move(key), .name = {}});
    statement_of_[statements_.front().key] = statements_.begin();
    return std::string();
  }
  statements_.splice(statements_.begin(), statements_, found->second);
  KeptStatement& kept = statements_.front();
  if (!kept.name.empty()) return kept.name;

  const std::string name = fmt::format("bobbin_{}", ++names_);
  const PgParams::Lists lists = params.MakeLists();
  PgExchange exchange(*this, sql);
  BOBBIN_RETURN_IF_ERROR(exchange.Send(PQsendPrepare(
      handle_.get(), name.c_str(), std::string(sql).c_str(), params.size(), lists.types.data())));
  BOBBIN_RETURN_IF_ERROR(exchange.Finish());
  kept.name = name;
  return name;
}

absl::StatusOr<PgAnswer> PgConnection::RunOnce(std::string_view sql, const PgParams& params,
                                               PgWanted wanted, std::string_view name) {
  const PgParams::Lists lists = params.MakeLists();
  PgExchange exchange(*this, sql);
  const int is_sent =
      name.empty()
          ? PQsendQueryParams(handle_.get(), std::string(sql).c_str(), params.size(),
                              lists.types.data(), lists.values.data(), lists.lengths.data(),
                              lists.formats.data(), 0)
          : PQsendQueryPrepared(handle_.get(), std::string(name).c_str(), params.size(),
                                lists.values.data(), lists.lengths.data(), lists.formats.data(), 0);
  BOBBIN_RETURN_IF_ERROR(exchange.Send(is_sent));
  PgAnswer answer;
  absl::Status status;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const PgResult result, exchange.Next());
    if (result == nullptr) break;
    status.Update(exchange.StatusOf(*result));
    switch (PQresultStatus(result.get())) {
      case PGRES_TUPLES_OK:
        if (wanted == PgWanted::kRows) {
          PgRows rows;
          rows.Add(*result);
          answer.rows = std::move(rows).Build();
        }
        answer.changes = ChangesOf(*result);
        break;
      case PGRES_COMMAND_OK:
        answer.changes = ChangesOf(*result);
        break;
      case PGRES_COPY_IN:
      case PGRES_COPY_OUT:
      case PGRES_COPY_BOTH:
        is_broken_ = true;
        return MakeStatus(absl::StatusCode::kInvalidArgument,
                          exchange.Operation() + ": use CopyIn or CopyOut");
      default:
        break;
    }
  }
  if (!status.ok()) return status;
  return answer;
}

absl::StatusOr<PgAnswer> PgConnection::Run(std::string_view sql, std::span<const Param> params,
                                           PgWanted wanted) {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  if (sql.find('\0') != sql.npos) {
    return MakeStatus(absl::StatusCode::kInvalidArgument, "postgres: a zero in the text");
  }
  BOBBIN_ASSIGN_OR_RETURN(const PgParams values, PgParams::Of(params));
  BOBBIN_ASSIGN_OR_RETURN(const std::string name, Prepare(sql, values));
  absl::StatusOr<PgAnswer> answer = RunOnce(sql, values, wanted, name);
  if (answer.ok() || name.empty()) return answer;
  // What was prepared may not fit any more, as after ALTER TABLE: the server says so before it does
  // anything.
  const auto error = PgErrorOf(answer.status());
  if (!error.has_value() || (error->sqlstate != "0A000" && error->sqlstate != "26000")) {
    return answer;
  }
  Forget(sql, values);
  if (phase() != PgPhase::kIdle) return answer;
  return RunOnce(sql, values, wanted, {});
}

// --- Ends of transactions.

void PgConnection::RollBack() noexcept {
  if (phase() != PgPhase::kInTransaction && phase() != PgPhase::kInFailedTransaction) return;
  const CancelShield shield;
  const DeadlineScope patience(server_.finish_wait_max);
  if (const absl::Status status = RunOwn("rollback"); !status.ok()) is_broken_ = true;
}

absl::Status PgConnection::Commit(bool& is_unknown) {
  is_unknown = false;
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  const CancelShield shield;
  const DeadlineScope patience(server_.finish_wait_max);
  constexpr std::string_view kCommit = "commit";
  PgExchange exchange(*this, kCommit);
  // From here on the server may have got it.
  is_unknown = true;
  BOBBIN_RETURN_IF_ERROR(exchange.Send(PQsendQuery(handle_.get(), kCommit.data())));
  BOBBIN_ASSIGN_OR_RETURN(const PgResult result, exchange.Next());
  absl::Status status = result == nullptr ? absl::OkStatus() : exchange.StatusOf(*result);
  status.Update(exchange.Finish());
  if (is_broken_) return status;
  is_unknown = false;
  // A transaction in which a statement has failed is rolled back by COMMIT, without an error.
  if (status.ok() && result != nullptr &&
      std::string_view(PQcmdStatus(result.get())) == "ROLLBACK") {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "postgres transaction: it is rolled back, because a statement in it failed");
  }
  return status;
}

}  // namespace bobbin::db::internal
