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
#include <bobbin/sched/sleep.h>

#include "db/src/limits.h"
#include "db/src/pg_cancel.h"
#include "db/src/pg_error.h"
#include "db/src/pg_statement.h"
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

// libpq takes texts that end at their first zero.
absl::Status CheckText(std::string_view sql) {
  if (sql.find('\0') == sql.npos) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kInvalidArgument, "postgres: a zero in the text");
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

absl::Status PgExchange::Queue(int is_sent) {
  if (is_sent != 0) return absl::OkStatus();
  return Break(
      MakeStatus(absl::StatusCode::kUnavailable,
                 fmt::format("{}: {}", Operation(), ConnectionError(*connection_.handle_))));
}

absl::Status PgExchange::Send(int is_sent) {
  BOBBIN_RETURN_IF_ERROR(Queue(is_sent));
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
  ask_again_ = MonotonicNow() + ask_pause_;
  ask_pause_ *= 2;
  // A server that reads a COPY is told in the place of data.
  if (is_copy_in_) {
    PQputCopyEnd(connection_.handle_.get(), "the client has given up");
    is_copy_in_ = false;
    PQflush(connection_.handle_.get());
    return;
  }
  const absl::Status asked =
      connection_.cancel_key_.has_value()
          ? CancelPg(PQsocket(connection_.handle_.get()), connection_.process(),
                     *connection_.cancel_key_)
          : MakeStatus(absl::StatusCode::kUnimplemented, "the server takes no such requests");
  // Whether it was passed on is not known: it might hit the next statement.
  if (!asked.ok()) connection_.is_broken_ = true;
}

bool PgExchange::HasNext() const { return PQisBusy(connection_.handle_.get()) == 0; }

void PgExchange::Drop() noexcept {
  if (connection_.is_broken_) return;
  Abandon();
  stop_ = absl::CancelledError("");  // From here on the server's patience counts.
  if (!Flush().ok()) return;
  while (true) {
    const absl::StatusOr<std::string> row = NextCopyData();
    if (!row.ok() || row->empty()) break;
  }
  Finish().IgnoreError();
}

// --- COPY.

absl::Status PgExchange::SendCopyData(std::string_view data) {
  PGconn* const handle = connection_.handle_.get();
  while (true) {
    const int taken = PQputCopyData(handle, data.data(), static_cast<int>(data.size()));
    if (taken < 0) {
      connection_.is_broken_ = true;
      return MakeStatus(absl::StatusCode::kUnavailable,
                        Operation() + ": " + ConnectionError(*handle));
    }
    if (taken > 0) unsent_bytes_ += data.size();
    // libpq sends by itself what it can, and keeps the rest.
    if (taken == 0 || unsent_bytes_ >= kPgCopyBytesMax) {
      BOBBIN_RETURN_IF_ERROR(Flush());
      unsent_bytes_ = 0;
      if (!stop_.ok()) return stop_;
      // A server that keeps up is never waited for.
      YieldIfDue();
    }
    if (taken > 0) return absl::OkStatus();
  }
}

absl::Status PgExchange::RefuseCopy() {
  connection_.is_broken_ = true;
  return MakeStatus(absl::StatusCode::kInvalidArgument, Operation() + ": use CopyIn or CopyOut");
}

absl::Status PgExchange::SendCopyEnd() {
  is_copy_in_ = false;
  return Send(PQputCopyEnd(connection_.handle_.get(), nullptr) > 0 ? 1 : 0);
}

absl::StatusOr<std::string> PgExchange::NextCopyData() {
  PGconn* const handle = connection_.handle_.get();
  while (true) {
    char* data = nullptr;
    const int size = PQgetCopyData(handle, &data, 1);
    if (size > 0) {
      std::string row(data, static_cast<size_t>(size));
      PQfreemem(data);
      return row;
    }
    if (size < 0) return std::string();  // At its end, or broken: Next tells.
    BOBBIN_RETURN_IF_ERROR(Await([&] { return io::WaitReadable(PQsocket(handle)); }));
    if (PQconsumeInput(handle) == 0) {
      connection_.is_broken_ = true;
      return std::string();
    }
  }
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

PgConnection::~PgConnection() {
  BOBBIN_CHECK(!is_lent_, "a stream or a copy outlives its transaction");
}

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

absl::Status PgConnection::CheckFree() const {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  if (!is_lent_) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "postgres: a stream or a copy of the same connection has not come to its end");
}

absl::Status PgConnection::RunOwn(const std::string& sql) {
  BOBBIN_RETURN_IF_ERROR(CheckFree());
  PgExchange exchange(*this, sql);
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

PgConnection::KeptStatement* PgConnection::Find(std::string_view sql, const PgParams& params) {
  // Few statements have blobs: the text alone is the key of the others.
  const auto found =
      params.Signature().empty() ? statement_of_.find(sql) : statement_of_.find(KeyOf(sql, params));
  if (found == statement_of_.end()) return nullptr;
  statements_.splice(statements_.begin(), statements_, found->second);
  return &statements_.front();
}

void PgConnection::Forget(std::string_view sql, const PgParams& params) {
  const auto found = statement_of_.find(KeyOf(sql, params));
  if (found == statement_of_.end()) return;
  const KeptStatements::iterator kept = found->second;
  statement_of_.erase(found);
  statements_.erase(kept);
}

// Forgets so many texts that `count` more can be kept.
absl::Status PgConnection::MakeRoom(size_t count) {
  const size_t kept_max = server_.statements_kept_max;
  while (!statements_.empty() && statements_.size() + std::min(count, kept_max) > kept_max) {
    const KeptStatement& oldest = statements_.back();
    if (!oldest.name.empty()) BOBBIN_RETURN_IF_ERROR(RunOwn("deallocate " + oldest.name));
    statement_of_.erase(oldest.key);
    statements_.pop_back();
  }
  return absl::OkStatus();
}

void PgConnection::Remember(std::string_view sql, const PgParams& params) {
  if (statements_.size() >= server_.statements_kept_max) return;
  statements_.push_front({.key = KeyOf(sql, params), .name = {}});
  statement_of_[statements_.front().key] = statements_.begin();
}

std::string PgConnection::NewName() { return fmt::format("bobbin_{}", ++names_); }

absl::StatusOr<const char*> PgConnection::Prepare(std::string_view sql, const PgParams& params) {
  KeptStatement* const kept = Find(sql, params);
  if (kept == nullptr) {
    BOBBIN_RETURN_IF_ERROR(MakeRoom(1));
    Remember(sql, params);
    return "";
  }
  if (kept->name.empty()) {
    std::string name = NewName();
    const PgParams::Lists lists = params.MakeLists();
    PgExchange exchange(*this, sql);
    BOBBIN_RETURN_IF_ERROR(exchange.Send(PQsendPrepare(
        handle_.get(), name.c_str(), std::string(sql).c_str(), params.size(), lists.types.data())));
    BOBBIN_RETURN_IF_ERROR(exchange.Finish());
    kept->name = std::move(name);
  }
  return kept->name.c_str();
}

int PgConnection::SendStatement(std::string_view sql, int count, const PgParams::Lists& lists,
                                const char* name) {
  return *name == 0
             ? PQsendQueryParams(handle_.get(), std::string(sql).c_str(), count, lists.types.data(),
                                 lists.values.data(), lists.lengths.data(), lists.formats.data(), 0)
             : PQsendQueryPrepared(handle_.get(), name, count, lists.values.data(),
                                   lists.lengths.data(), lists.formats.data(), 0);
}

void PgConnection::TakeAnswer(const PGresult& result, PgWanted wanted, PgAnswer& answer) {
  const ExecStatusType kind = PQresultStatus(&result);
  if (kind == PGRES_TUPLES_OK && wanted == PgWanted::kRows) {
    PgRows rows;
    rows.Add(result);
    answer.rows = std::move(rows).Build();
  }
  if (kind == PGRES_TUPLES_OK || kind == PGRES_COMMAND_OK) answer.changes = ChangesOf(result);
}

absl::StatusOr<PgAnswer> PgConnection::RunOnce(std::string_view sql, const PgParams& params,
                                               PgWanted wanted, const char* name) {
  PgExchange exchange(*this, sql);
  BOBBIN_RETURN_IF_ERROR(
      exchange.Send(SendStatement(sql, params.size(), params.MakeLists(), name)));
  PgAnswer answer;
  absl::Status status;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const PgResult result, exchange.Next());
    if (result == nullptr) break;
    status.Update(exchange.StatusOf(*result));
    if (IsCopy(PQresultStatus(result.get()))) return exchange.RefuseCopy();
    TakeAnswer(*result, wanted, answer);
  }
  if (!status.ok()) return status;
  return answer;
}

absl::StatusOr<PgAnswer> PgConnection::Run(std::string_view sql, std::span<const Param> params,
                                           PgWanted wanted) {
  BOBBIN_RETURN_IF_ERROR(CheckFree());
  BOBBIN_RETURN_IF_ERROR(CheckText(sql));
  BOBBIN_ASSIGN_OR_RETURN(const PgParams values, PgParams::Of(params));
  BOBBIN_ASSIGN_OR_RETURN(const char* const name, Prepare(sql, values));
  absl::StatusOr<PgAnswer> answer = RunOnce(sql, values, wanted, name);
  if (answer.ok() || *name == 0) return answer;
  // What was prepared may not fit any more, as after ALTER TABLE: the server says so before it does
  // anything.
  const auto error = PgErrorOf(answer.status());
  if (!error.has_value() || (error->sqlstate != "0A000" && error->sqlstate != "26000")) {
    return answer;
  }
  Forget(sql, values);
  if (phase() != PgPhase::kIdle) return answer;
  return RunOnce(sql, values, wanted, "");
}

// --- Pipelines.

absl::Status PgConnection::SendPipeline(PgExchange& exchange, const PgPipeline& pipeline,
                                        std::vector<Sent>& sent) {
  for (size_t i = 0; i < pipeline.statements_.size(); ++i) {
    const PgStatement& statement = pipeline.statements_[i];
    const PgParams& params = *statement.params;
    const PgParams::Lists lists = params.MakeLists();
    exchange.set_sql(statement.sql);
    // Nothing is forgotten in the middle: that would be a statement of its own.
    KeptStatement* const kept = Find(statement.sql, params);
    std::string name = kept == nullptr ? std::string() : kept->name;
    for (const Sent& before : sent) {
      if (before.prepares != nullptr && before.prepares == kept) name = before.name;
    }
    if (kept != nullptr && name.empty()) {
      name = NewName();
      sent.push_back({i, kept, name});
      BOBBIN_RETURN_IF_ERROR(exchange.Queue(PQsendPrepare(
          handle_.get(), name.c_str(), statement.sql.c_str(), params.size(), lists.types.data())));
    }
    sent.push_back({i});
    BOBBIN_RETURN_IF_ERROR(
        exchange.Queue(SendStatement(statement.sql, params.size(), lists, name.c_str())));
    if (kept == nullptr) Remember(statement.sql, params);
  }
  return exchange.Send(PQpipelineSync(handle_.get()));
}

absl::StatusOr<std::vector<PgAnswer>> PgConnection::RunPipeline(const PgPipeline& pipeline) {
  BOBBIN_RETURN_IF_ERROR(CheckFree());
  for (const PgStatement& statement : pipeline.statements_) {
    BOBBIN_RETURN_IF_ERROR(CheckText(statement.sql));
    BOBBIN_RETURN_IF_ERROR(statement.params.status());
  }
  std::vector<PgAnswer> answers(pipeline.size());
  if (answers.empty()) return answers;
  BOBBIN_RETURN_IF_ERROR(MakeRoom(answers.size()));
  PgExchange exchange(*this, {});
  if (PQenterPipelineMode(handle_.get()) == 0) return exchange.Send(0);
  std::vector<Sent> sent;
  BOBBIN_RETURN_IF_ERROR(SendPipeline(exchange, pipeline, sent));

  absl::Status status;
  for (const Sent& each : sent) {
    exchange.set_sql(pipeline.statements_[each.statement].sql);
    while (true) {
      BOBBIN_ASSIGN_OR_RETURN(const PgResult result, exchange.Next());
      if (result == nullptr) break;
      absl::Status one = exchange.StatusOf(*result);
      if (IsCopy(PQresultStatus(result.get()))) one = exchange.RefuseCopy();
      if (one.ok() && each.prepares != nullptr) each.prepares->name = each.name;
      if (one.ok() && each.prepares == nullptr) {
        TakeAnswer(*result, PgWanted::kRows, answers[each.statement]);
      }
      status.Update(one);
      if (is_broken_) return status;
    }
  }
  // Behind all of them is the answer to the end of the pipeline.
  BOBBIN_ASSIGN_OR_RETURN(const PgResult end, exchange.Next());
  if (end == nullptr || PQresultStatus(end.get()) != PGRES_PIPELINE_SYNC ||
      PQexitPipelineMode(handle_.get()) == 0) {
    is_broken_ = true;
    status.Update(MakeStatus(absl::StatusCode::kUnavailable,
                             "postgres pipeline: " + ConnectionError(*handle_)));
  }
  if (!status.ok()) return status;
  return answers;
}

// --- What goes on between calls.

absl::Status PgConnection::BeginStream(PgExchange& exchange, std::string_view sql,
                                       std::span<const Param> params) {
  BOBBIN_RETURN_IF_ERROR(CheckText(sql));
  BOBBIN_ASSIGN_OR_RETURN(const PgParams values, PgParams::Of(params));
  const int is_sent = SendStatement(sql, values.size(), values.MakeLists(), "");
  if (is_sent != 0) PQsetSingleRowMode(handle_.get());
  return exchange.Send(is_sent);
}

absl::Status PgConnection::BeginCopy(PgExchange& exchange, std::string_view sql,
                                     ExecStatusType kind) {
  BOBBIN_RETURN_IF_ERROR(CheckText(sql));
  BOBBIN_RETURN_IF_ERROR(exchange.Send(PQsendQuery(handle_.get(), std::string(sql).c_str())));
  BOBBIN_ASSIGN_OR_RETURN(const PgResult result, exchange.Next());
  const ExecStatusType actual =
      result == nullptr ? PGRES_EMPTY_QUERY : PQresultStatus(result.get());
  if (actual == kind) {
    if (kind == PGRES_COPY_IN) exchange.BeginCopyIn();
    return absl::OkStatus();
  }
  if (IsCopy(actual)) return exchange.RefuseCopy();
  absl::Status status = result == nullptr ? absl::OkStatus() : exchange.StatusOf(*result);
  if (result != nullptr) status.Update(exchange.Finish());
  status.Update(MakeStatus(absl::StatusCode::kInvalidArgument,
                           exchange.Operation() + ": it is no COPY of this kind"));
  return status;
}

absl::Status PgConnection::Listen(std::span<const std::string> channels) {
  for (const std::string& channel : channels) {
    char* const quoted = PQescapeIdentifier(handle_.get(), channel.data(), channel.size());
    if (quoted == nullptr) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        "postgres listen: " + ConnectionError(*handle_));
    }
    const std::string sql = std::string("listen ") + quoted;
    PQfreemem(quoted);
    BOBBIN_RETURN_IF_ERROR(RunOwn(sql));
  }
  return absl::OkStatus();
}

absl::StatusOr<PgNotification> PgConnection::AwaitNotification() {
  while (true) {
    if (PGnotify* const notify = PQnotifies(handle_.get())) {
      PgNotification notification = {.kind = PgEvent::kNotified,
                                     .channel = notify->relname,
                                     .payload = notify->extra,
                                     .process = notify->be_pid};
      PQfreemem(notify);
      return notification;
    }
    if (phase() != PgPhase::kIdle) break;
    BOBBIN_RETURN_IF_ERROR(io::WaitReadable(PQsocket(handle_.get())));
    if (PQconsumeInput(handle_.get()) == 0) break;
  }
  is_broken_ = true;
  return MakeStatus(absl::StatusCode::kUnavailable,
                    "postgres listen: " + ConnectionError(*handle_));
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
