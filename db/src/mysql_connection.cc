// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>

#include "db/src/mysql_params.h"
#include "db/src/mysql_result.h"
#include "db/src/mysql_text_query.h"
#include "db/src/text.h"

namespace bobbin::db::internal {

namespace {

absl::Status Invalid(const MySqlExchange& exchange, std::string_view cause) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format("{}: {}", exchange.Operation(), cause));
}

}  // namespace

// --- MySqlExchange.

std::string MySqlExchange::Operation() const { return fmt::format("mysql \"{}\"", ShownSql(sql_)); }

absl::Status MySqlExchange::Break(absl::Status why) {
  connection_.is_broken_ = true;
  return stop_.ok() ? std::move(why) : stop_;
}

absl::StatusOr<int> MySqlExchange::Await(int wants) {
  if (stop_.ok()) {
    absl::StatusOr<int> got = AwaitMySql(*connection_.handle_, wants);
    if (got.ok()) return got;
    stop_ = CheckStop();
    if (stop_.ok()) return Break(got.status());
    // The server has the statement only if all of it was sent.
    if ((wants & MYSQL_WAIT_WRITE) != 0) return Break(stop_);
    is_abandoned_ = true;
    give_up_ = MonotonicNow() + connection_.server_.cancel_wait_max;
    AskToEnd();
  }
  return AwaitEnd(wants);
}

// A statement that has not begun is not killed, so the server is asked again and again.
absl::StatusOr<int> MySqlExchange::AwaitEnd(int wants) {
  const CancelShield shield;
  while (!connection_.is_broken_) {
    absl::StatusOr<int> got = absl::CancelledError("");
    {
      const DeadlineScope patience(Deadline::At(std::min(ask_again_, give_up_)));
      got = AwaitMySql(*connection_.handle_, wants);
    }
    if (got.ok()) return got;
    if (got.status().code() != absl::StatusCode::kDeadlineExceeded || MonotonicNow() >= give_up_) {
      break;
    }
    AskToEnd();
  }
  return Break(stop_);
}

void MySqlExchange::AskToEnd() {
  const CancelShield shield;
  const DeadlineScope patience(Deadline::At(give_up_));
  const absl::Status asked = KillMySqlQuery(connection_.server_, connection_.thread_);
  ask_again_ = MonotonicNow() + ask_pause_;
  ask_pause_ *= 2;
  // Whether it was passed on is not known: it might hit the next statement.
  if (!asked.ok()) connection_.is_broken_ = true;
}

MySqlExchange::~MySqlExchange() {
  if (!is_abandoned_) return;
  const CancelShield shield;
  const DeadlineScope patience(Deadline::At(give_up_));
  while (!connection_.is_broken_) {
    const absl::Status nothing = connection_.RunOwn("do 0");
    if (nothing.ok()) return;
    const auto error = MySqlErrorOf(nothing);
    if (!error.has_value() || error->number != kMySqlInterrupted) connection_.is_broken_ = true;
  }
}

absl::Status MySqlExchange::Failed(const MySqlError& error) {
  if (EndsConnection(error)) connection_.is_broken_ = true;
  // It was killed because the caller was to stop.
  if (!stop_.ok() && (error.number == kMySqlInterrupted || connection_.is_broken_)) return stop_;
  return MySqlStatus(error, Operation());
}

absl::Status MySqlExchange::CheckRead() const { return is_abandoned_ ? stop_ : absl::OkStatus(); }

absl::StatusOr<Rows> MySqlExchange::Ask(std::string_view sql) {
  absl::StatusOr<Rows> rows = AskMySql(
      *connection_.handle_, [this](int wants) { return Await(wants); }, sql);
  if (rows.ok()) return rows;
  const auto error = MySqlErrorOf(rows.status());
  return error.has_value() ? Failed(*error) : Break(rows.status());
}

// --- MySqlConnection.

MySqlConnection::MySqlConnection(Passkey, const MySqlServer& server, MySqlLink link)
    : server_(server), handle_(std::move(link.handle)) {
  thread_.place = std::move(link.place);
  thread_.id = mysql_thread_id(handle_.get());
}

MySqlConnection::~MySqlConnection() {
  // Nothing is to be said on one that is broken, and nothing to be waited for.
  if (is_broken_) ShutMySql(*handle_);
  // Statements that have no connection any more close without a word.
  handle_.reset();
}

absl::StatusOr<std::unique_ptr<MySqlConnection>> MySqlConnection::Open(const MySqlServer& server) {
  auto opened = [&]() -> absl::StatusOr<std::unique_ptr<MySqlConnection>> {
    const DeadlineScope patience(server.connect_wait_max);
    BOBBIN_ASSIGN_OR_RETURN(MySqlLink link, ConnectMySql(server));
    auto connection = std::make_unique<MySqlConnection>(Passkey(), server, std::move(link));
    BOBBIN_RETURN_IF_ERROR(connection->Configure());
    BOBBIN_ASSIGN_OR_RETURN(connection->thread_.identity,
                            IdentityOf(*connection->handle_, connection->thread_.id));
    return connection;
  }();
  // The patience is the pool's, not the caller's.
  if (opened.status().code() == absl::StatusCode::kDeadlineExceeded && CheckStop().ok()) {
    return MakeStatus(
        absl::StatusCode::kUnavailable,
        fmt::format("connect mysql: no answer within {} ms",
                    std::chrono::ceil<std::chrono::milliseconds>(server.connect_wait_max).count()));
  }
  return opened;
}

// Times are read and written as UTC, and what does not fit is an error, whatever the server has as
// its defaults.
absl::Status MySqlConnection::Configure() {
  return RunOwn(
      "set names utf8mb4, time_zone = '+00:00', autocommit = 1, "
      "sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES')");
}

absl::Status MySqlConnection::RunOwn(std::string_view sql) {
  absl::Status status = AskMySql(*handle_, sql).status();
  const auto error = MySqlErrorOf(status);
  if (!status.ok() && (!error.has_value() || EndsConnection(*error))) is_broken_ = true;
  return status;
}

MySqlPhase MySqlConnection::phase() const {
  if (is_broken_) return MySqlPhase::kBroken;
  return (handle_->server_status & SERVER_STATUS_IN_TRANS) != 0 ? MySqlPhase::kInTransaction
                                                                : MySqlPhase::kIdle;
}

bool MySqlConnection::IsAlive() {
  // A server says nothing to who is silent, but a last word.
  char byte = 0;
  const ssize_t seen = ::recv(mysql_get_socket(handle_.get()), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return seen < 0 && errno == EAGAIN && phase() == MySqlPhase::kIdle;
}

// --- Prepared statements.

absl::Status MySqlConnection::Drop(MySqlExchange& exchange, KeptStatements::iterator kept) {
  MYSQL_STMT* const handle = kept->handle.release();
  statement_of_.erase(kept->sql);
  statements_.erase(kept);
  // It is freed whatever becomes of the word to the server.
  return exchange.Call(&mysql_stmt_close_start, &mysql_stmt_close_cont, *handle).status();
}

absl::Status MySqlConnection::DropAllBut(MySqlExchange& exchange, size_t count) {
  while (statements_.size() > count) {
    BOBBIN_RETURN_IF_ERROR(Drop(exchange, std::prev(statements_.end())));
  }
  return absl::OkStatus();
}

absl::StatusOr<MySqlConnection::KeptStatement*> MySqlConnection::Prepare(MySqlExchange& exchange,
                                                                         std::string_view sql) {
  if (const auto found = statement_of_.find(sql); found != statement_of_.end()) {
    statements_.splice(statements_.begin(), statements_, found->second);
    return &statements_.front();
  }
  BOBBIN_RETURN_IF_ERROR(
      DropAllBut(exchange, std::max<size_t>(server_.statements_kept_max, 1) - 1));
  const bool has_escapes = (handle_->server_status & SERVER_STATUS_NO_BACKSLASH_ESCAPES) == 0;
  KeptStatement statement = {
      .sql = std::string(sql),
      .text =
          TranslateMySql(sql, has_escapes ? Backslashes::kEscape : Backslashes::kMeanThemselves),
      .handle = StatementHandle(mysql_stmt_init(handle_.get()))};
  const my_bool yes = 1;
  if (statement.handle == nullptr ||
      mysql_stmt_attr_set(statement.handle.get(), STMT_ATTR_UPDATE_MAX_LENGTH, &yes) != 0) {
    return MakeStatus(absl::StatusCode::kResourceExhausted, exchange.Operation() + ": no memory");
  }
  BOBBIN_RETURN_IF_ERROR(exchange.CallOrFail(
      &mysql_stmt_prepare_start, &mysql_stmt_prepare_cont, *statement.handle,
      statement.text.text.c_str(), static_cast<unsigned long>(statement.text.text.size())));
  statements_.push_front(std::move(statement));
  statement_of_[statements_.front().sql] = statements_.begin();
  return &statements_.front();
}

// --- Statements.

absl::StatusOr<MySqlAnswer> MySqlConnection::ReadAnswer(MySqlExchange& exchange,
                                                        KeptStatement& statement,
                                                        MySqlWanted wanted) {
  MYSQL_STMT& handle = *statement.handle;
  MySqlAnswer answer;
  bool has_rows = false;
  bool is_read = false;
  while (true) {
    if (mysql_stmt_field_count(&handle) == 0) {
      answer.changes = static_cast<int64_t>(mysql_stmt_affected_rows(&handle));
    } else {
      BOBBIN_RETURN_IF_ERROR(exchange.CallOrFail(&mysql_stmt_store_result_start,
                                                 &mysql_stmt_store_result_cont, handle));
      is_read = !statement.text.is_change;
      if (!is_read) {
        answer.changes = static_cast<int64_t>(mysql_stmt_num_rows(&handle));
      }
      // A procedure may have several results, and the first one is its answer.
      if (wanted == MySqlWanted::kRows && !std::exchange(has_rows, true)) {
        BOBBIN_ASSIGN_OR_RETURN(answer.rows, RowsOf(handle));
      }
    }
    if (mysql_stmt_more_results(&handle) == 0) break;
    BOBBIN_RETURN_IF_ERROR(
        exchange.CallOrFail(&mysql_stmt_next_result_start, &mysql_stmt_next_result_cont, handle));
  }
  mysql_stmt_free_result(&handle);
  if (is_read) BOBBIN_RETURN_IF_ERROR(exchange.CheckRead());
  return answer;
}

absl::StatusOr<MySqlAnswer> MySqlConnection::RunOnce(MySqlExchange& exchange,
                                                     KeptStatement& statement,
                                                     std::span<const Param> params,
                                                     MySqlWanted wanted) {
  const MySqlText& text = statement.text;
  if (text.value_count != params.size()) {
    return Invalid(exchange, fmt::format("it has {} places, but {} values were given",
                                         text.value_count, params.size()));
  }
  if (mysql_stmt_param_count(statement.handle.get()) != text.values.size()) {
    return Invalid(exchange, "a place is written $1, not ?");
  }
  MySqlParams values;
  BOBBIN_RETURN_IF_ERROR(values.Bind(params, text.values));
  if (!text.values.empty() && mysql_stmt_bind_param(statement.handle.get(), values.binds()) != 0) {
    return exchange.Failed(ErrorOf(*statement.handle));
  }
  residue_ = std::max(residue_, text.residue);
  // libmariadb takes a changed number of columns for an error, unless it knows of none.
  if (text.has_star) statement.handle->field_count = 0;
  BOBBIN_RETURN_IF_ERROR(
      exchange.CallOrFail(&mysql_stmt_execute_start, &mysql_stmt_execute_cont, *statement.handle));
  return ReadAnswer(exchange, statement, wanted);
}

absl::StatusOr<MySqlAnswer> MySqlConnection::RunIn(MySqlExchange& exchange, std::string_view sql,
                                                   std::span<const Param> params,
                                                   MySqlWanted wanted) {
  BOBBIN_ASSIGN_OR_RETURN(KeptStatement* const statement, Prepare(exchange, sql));
  return RunOnce(exchange, *statement, params, wanted);
}

absl::StatusOr<MySqlAnswer> MySqlConnection::Run(std::string_view sql,
                                                 std::span<const Param> params,
                                                 MySqlWanted wanted) {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  if (is_broken_) {
    return MakeStatus(absl::StatusCode::kUnavailable, "mysql: the connection is lost");
  }
  if (params.size() > kMySqlValuesMax) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("mysql: {} values, where {} are the most of one statement",
                                  params.size(), kMySqlValuesMax));
  }
  MySqlExchange exchange(*this, sql);
  absl::StatusOr<MySqlAnswer> answer = RunIn(exchange, sql, params, wanted);
  if (answer.ok() || is_broken_) return answer;
  const auto error = MySqlErrorOf(answer.status());
  if (!error.has_value()) return answer;
  // What was prepared may not be there any more: the server says so before it does anything.
  if ((error->number == kMySqlToBePrepared || error->number == kMySqlUnknownStatement) &&
      phase() == MySqlPhase::kIdle) {
    BOBBIN_RETURN_IF_ERROR(DropAllBut(exchange, 0));
    return RunIn(exchange, sql, params, wanted);
  }
  // Some servers prepare only some kinds of statements.
  if (error->number == kMySqlNotPreparable && params.empty()) {
    residue_ = std::max(residue_, Residue::kSession);
    BOBBIN_ASSIGN_OR_RETURN(Rows rows, exchange.Ask(sql));
    return MySqlAnswer{.rows = std::move(rows)};
  }
  return answer;
}

absl::Status MySqlConnection::RunScript(std::string_view script) {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  residue_ = std::max(residue_, TranslateMySql(script, Backslashes::kEscape).residue);
  MySqlExchange exchange(*this, script);
  return exchange.Ask(script).status();
}

// --- Transactions, and the end of a use.

absl::Status MySqlConnection::Begin(std::string_view sql) {
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  absl::Status status;
  {
    MySqlExchange exchange(*this, sql);
    status = exchange.Ask(sql).status();
  }
  // It may have begun all the same.
  if (!status.ok()) RollBack();
  return status;
}

void MySqlConnection::RollBack() noexcept {
  if (phase() != MySqlPhase::kInTransaction) return;
  const CancelShield shield;
  const DeadlineScope patience(server_.finish_wait_max);
  if (!RunOwn("rollback").ok()) is_broken_ = true;
}

absl::Status MySqlConnection::Commit(bool& is_unknown) {
  is_unknown = false;
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  const CancelShield shield;
  const DeadlineScope patience(server_.finish_wait_max);
  absl::Status status = RunOwn("commit");
  // The server may have got it.
  is_unknown = is_broken_;
  return status;
}

absl::Status MySqlConnection::Reset() {
  int failed = 0;
  BOBBIN_RETURN_IF_ERROR(DriveMySql(
      *handle_, [&](int wants) { return AwaitMySql(*handle_, wants); },
      [&] { return mysql_reset_connection_start(&failed, handle_.get()); },
      [&](int got) { return mysql_reset_connection_cont(&failed, handle_.get(), got); }));
  if (failed != 0) return MySqlStatus(ErrorOf(*handle_), "mysql reset");
  // The server has forgotten them.
  statement_of_.clear();
  statements_.clear();
  return Configure();
}

void MySqlConnection::EndUse() noexcept {
  if (is_broken_ || residue_ == Residue::kNone) return;
  const CancelShield shield;
  const DeadlineScope patience(server_.finish_wait_max);
  if (residue_ == Residue::kDatabase || !Reset().ok()) is_broken_ = true;
  residue_ = Residue::kNone;
}

}  // namespace bobbin::db::internal
