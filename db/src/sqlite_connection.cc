// SPDX-License-Identifier: Apache-2.0

#include "db/src/sqlite_connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <sqlite3.h>

#include <bobbin/core/check.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>

#include "db/src/limits.h"
#include "db/src/rows_builder.h"
#include "db/src/sqlite_status.h"
#include "db/src/text.h"

namespace bobbin::db::internal {

namespace {

// What is left of `text` without what separates statements. Comments stay: SQLite knows them
// better.
std::string_view SkipSeparators(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n\f;");
  return at == text.npos ? std::string_view() : text.substr(at);
}

int OpenFlags(const SqliteOptions& options, SqliteRole role) {
  // Each connection has one thread at a time, so SQLite need not lock it.
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (options.access == SqliteAccess::kReadOnly) return flags | SQLITE_OPEN_READONLY;
  // A reader of a write-ahead log writes to its index; that it writes nothing else is a pragma.
  const bool may_create =
      options.access == SqliteAccess::kReadWriteCreate && role == SqliteRole::kWriter;
  return flags | SQLITE_OPEN_READWRITE | (may_create ? SQLITE_OPEN_CREATE : 0);
}

// A path stays a path: SQLite may be built to take "file:..." for an address.
std::string PathOf(const SqliteOptions& options) {
  return options.path.starts_with("file:") ? "./" + options.path : options.path;
}

// The index of the value for place `place`, counted from 0. SQLite takes `$2` for a name, and
// numbers names as they come.
int ValueOfPlace(const char* name, int place) {
  if (name == nullptr || name[0] != '$') return place;
  const std::string_view digits(name + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  return error == std::errc() && end == digits.end() && number > 0 ? number - 1 : place;
}

struct BindTo {
  sqlite3_stmt* statement;
  int index;

  int operator()(std::nullptr_t) const { return sqlite3_bind_null(statement, index); }
  int operator()(bool value) const { return sqlite3_bind_int(statement, index, value ? 1 : 0); }
  int operator()(int64_t value) const { return sqlite3_bind_int64(statement, index, value); }
  // What SQLite has no type for.
  int operator()(uint64_t) const { return SQLITE_MISMATCH; }
  int operator()(const ParamArray&) const { return SQLITE_MISMATCH; }
  // Kept as texts, which its own functions understand.
  int operator()(const Uuid& uuid) const { return BindCopy(uuid.Text()); }
  int operator()(absl::Time time) const { return BindCopy(TimeText(time)); }
  int operator()(absl::CivilDay day) const { return BindCopy(DayText(day)); }
  int BindCopy(const std::string& text) const {
    return sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  }
  int operator()(double value) const { return sqlite3_bind_double(statement, index, value); }
  // The caller waits, so nothing is copied. A null pointer would mean NULL.
  int operator()(std::string_view text) const {
    const char* const data = text.data() == nullptr ? "" : text.data();
    return sqlite3_bind_text64(statement, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  int operator()(std::span<const std::byte> blob) const {
    if (blob.empty()) return sqlite3_bind_zeroblob(statement, index, 0);
    return sqlite3_bind_blob64(statement, index, blob.data(), blob.size(), SQLITE_STATIC);
  }
};

void AddColumn(RowsBuilder& rows, sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return rows.AddInteger(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return rows.AddReal(sqlite3_column_double(statement, column));
    case SQLITE_TEXT: {
      const auto* const text =
          reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      return rows.AddBytes(CellKind::kText, std::string_view(text, bytes));
    }
    case SQLITE_BLOB: {
      const auto* const blob = static_cast<const char*>(sqlite3_column_blob(statement, column));
      const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      return rows.AddBytes(CellKind::kBlob, std::string_view(blob, bytes));
    }
    default:
      return rows.AddNull();
  }
}

}  // namespace

// --- SqliteConnection.

void SqliteConnection::CloseDatabase::operator()(sqlite3* database) const {
  BOBBIN_CHECK(sqlite3_close(database) == SQLITE_OK, "a connection is closed while it is in use");
}

void SqliteConnection::FinalizeStatement::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);  // What it returns is the last run's error, reported then.
}

int SqliteConnection::OnProgress(void* connection) {
  SqliteOperation* const operation = static_cast<SqliteConnection*>(connection)->operation_;
  return operation != nullptr && operation->ShouldStop() ? 1 : 0;
}

int SqliteConnection::OnBusy(void* connection, int attempts) {
  return static_cast<SqliteConnection*>(connection)->WaitWhileBusy(attempts) ? 1 : 0;
}

int SqliteConnection::OnCommit(void* connection, sqlite3*, const char*, int pages) {
  auto& self = *static_cast<SqliteConnection*>(connection);
  // relaxed: a figure that orders nothing.
  self.log_bytes_.store(pages * self.page_bytes_, std::memory_order_relaxed);
  return SQLITE_OK;
}

bool SqliteConnection::WaitWhileBusy(int attempts) {
  const MonotonicTime now = MonotonicNow();
  if (!busy_since_.has_value()) busy_since_ = now;
  if (now - *busy_since_ >= busy_wait_max_) return false;
  if (operation_ != nullptr && operation_->ShouldStop()) return false;
  const auto delay = std::min(kBusyDelayMin * (1 << std::min(attempts, 10)), kBusyDelayMax);
  return SleepFor(delay).ok();
}

// --- SqliteSession: begin and end.

SqliteSession::SqliteSession(SqliteConnection& connection, SqliteOperation* operation)
    : connection_(connection) {
  CheckMayBlock("SQLite");
  // The acquire pairs with the release in the destructor.
  const bool is_taken = connection_.is_in_session_.exchange(true, std::memory_order_acquire);
  BOBBIN_CHECK(!is_taken, "two threads use one SQLite connection");
  connection_.operation_ = operation;
  connection_.busy_since_.reset();
  connection_.busy_wait_max_ = connection_.options_.busy_wait_max;
}

SqliteSession::~SqliteSession() {
  connection_.operation_ = nullptr;
  // Pairs with the acquire in the constructor.
  connection_.is_in_session_.store(false, std::memory_order_release);
}

absl::Status SqliteSession::MakeReady() {
  if (database() == nullptr) BOBBIN_RETURN_IF_ERROR(Open());
  if (IsInTransaction()) RollBack();  // Its owner could not reach the pool to do it.
  return absl::OkStatus();
}

absl::Status SqliteSession::Open() {
  const SqliteOptions& options = connection_.options_;
  if (options.path.find('\0') != options.path.npos) {
    return Invalid({}, "the path holds a zero byte");
  }
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(PathOf(options).c_str(), &opened,
                                   OpenFlags(options, connection_.role_), nullptr);
  connection_.database_.reset(opened);  // There is one also when it failed, to hold the message.
  absl::Status status = code == SQLITE_OK ? Configure() : Failure(code, {});
  if (!status.ok()) Close();
  return status;
}

absl::Status SqliteSession::Configure() {
  const SqliteOptions& options = connection_.options_;
  sqlite3_busy_handler(database(), &SqliteConnection::OnBusy, &connection_);
  sqlite3_progress_handler(database(), kProgressSteps, &SqliteConnection::OnProgress, &connection_);
  if (connection_.role_ == SqliteRole::kReader) return RunOwn("pragma query_only = true");

  // Also finds out whether it is a database at all, and whether it has a log: a checkpoint on a
  // connection that does not know does nothing.
  BOBBIN_RETURN_IF_ERROR(RunOwn("pragma schema_version"));
  if (connection_.role_ == SqliteRole::kUpkeep) return RunOwn("pragma query_only = true");
  BOBBIN_RETURN_IF_ERROR(CheckFile());
  BOBBIN_RETURN_IF_ERROR(RunOwn(options.enforces_foreign_keys ? "pragma foreign_keys = true"
                                                              : "pragma foreign_keys = false"));
  BOBBIN_RETURN_IF_ERROR(RunOwn(options.durability == SqliteDurability::kEveryCommit
                                    ? "pragma synchronous = full"
                                    : "pragma synchronous = normal"));
  if (options.access == SqliteAccess::kReadOnly || !IsInFile()) return absl::OkStatus();
  BOBBIN_RETURN_IF_ERROR(RunOwn("pragma journal_mode = wal"));
  BOBBIN_ASSIGN_OR_RETURN(const SqliteAnswer page,
                          Run("pragma page_size", {}, SqliteWanted::kRows));
  BOBBIN_ASSIGN_OR_RETURN(connection_.page_bytes_, page.rows.Only<int64_t>());
  connection_.restart_bytes_ = options.log_bytes_max;
  // In the place of SQLite's own way, which copies in the middle of a commit.
  sqlite3_wal_hook(database(), &SqliteConnection::OnCommit, &connection_);
  return RunOwn(fmt::format("pragma journal_size_limit = {}", kJournalBytesKept));
}

absl::Status SqliteSession::CheckFile() {
  const SqliteCheck check = connection_.options_.check;
  if (check == SqliteCheck::kNone) return absl::OkStatus();
  BOBBIN_ASSIGN_OR_RETURN(
      const SqliteAnswer found,
      Run(check == SqliteCheck::kPages ? "pragma quick_check(1)" : "pragma integrity_check(1)", {},
          SqliteWanted::kRows));
  BOBBIN_ASSIGN_OR_RETURN(const std::string text, found.rows.Only<std::string>());
  if (text == "ok") return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kDataLoss,
                    fmt::format("{}: the file is damaged: {}", Describe({}), text));
}

void SqliteSession::Close() {
  connection_.statement_of_.clear();
  connection_.statements_.clear();
  connection_.database_.reset();
}

bool SqliteSession::IsInTransaction() const { return sqlite3_get_autocommit(database()) == 0; }

bool SqliteSession::IsInFile() const {
  const char* const name = sqlite3_db_filename(database(), "main");
  return name != nullptr && name[0] != '\0';
}

// --- Preparing.

class SqliteSession::Use {
 public:
  explicit Use(sqlite3_stmt* statement) : statement_(statement) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    sqlite3_reset(statement_);  // What it returns is the last step's error, reported then.
    sqlite3_clear_bindings(statement_);
  }

 private:
  sqlite3_stmt* const statement_;
};

absl::StatusOr<SqliteConnection::StatementHandle> SqliteSession::Compile(std::string_view sql,
                                                                         std::string_view* rest,
                                                                         bool is_kept) {
  sqlite3_stmt* compiled = nullptr;
  const char* tail = nullptr;
  int code = SQLITE_OK;
  int attempts = 0;
  do {
    code = sqlite3_prepare_v3(database(), sql.data(), static_cast<int>(sql.size()),
                              is_kept ? SQLITE_PREPARE_PERSISTENT : 0, &compiled, &tail);
  } while (IsOfKind(code, SQLITE_BUSY) && connection_.WaitWhileBusy(attempts++));
  SqliteConnection::StatementHandle handle(compiled);
  if (code != SQLITE_OK) return Failure(code, sql);
  *rest = sql.substr(static_cast<size_t>(tail - sql.data()));
  return handle;
}

absl::Status SqliteSession::CheckText(std::string_view sql) const {
  if (SkipSeparators(sql).empty()) return Invalid(sql, "there is no statement in it");
  if (sql.size() > kSqlBytesMax) return Invalid(sql, "the text is too long");
  if (sql.find('\0') != sql.npos) return Invalid(sql, "the text holds a zero byte");
  return absl::OkStatus();
}

absl::StatusOr<sqlite3_stmt*> SqliteSession::Prepare(std::string_view sql) {
  auto& statements = connection_.statements_;
  if (const auto found = connection_.statement_of_.find(sql);
      found != connection_.statement_of_.end()) {
    statements.splice(statements.begin(), statements, found->second);
    return statements.front().handle.get();
  }

  BOBBIN_RETURN_IF_ERROR(CheckText(sql));
  std::string_view rest;
  BOBBIN_ASSIGN_OR_RETURN(SqliteConnection::StatementHandle handle, Compile(sql, &rest, true));
  if (handle == nullptr) return Invalid(sql, "there is no statement in it");
  // What follows may be a comment: then it compiles to nothing.
  rest = SkipSeparators(rest);
  if (!rest.empty()) {
    std::string_view end;
    const auto second = Compile(rest, &end, false);
    if (!second.ok() || *second != nullptr || !SkipSeparators(end).empty()) {
      return Invalid(sql, "it holds more than one statement; ExecuteScript takes several");
    }
  }

  while (statements.size() >= std::max<size_t>(connection_.options_.statements_kept_max, 1)) {
    connection_.statement_of_.erase(statements.back().text);
    statements.pop_back();
  }
  statements.push_front({std::string(sql), std::move(handle)});
  connection_.statement_of_[statements.front().text] = statements.begin();
  return statements.front().handle.get();
}

absl::Status SqliteSession::Bind(sqlite3_stmt* statement, std::string_view sql,
                                 std::span<const Param> params) {
  const int wanted = sqlite3_bind_parameter_count(statement);
  if (static_cast<size_t>(wanted) != params.size()) {
    return Invalid(sql,
                   fmt::format("it takes {} values, but {} were given", wanted, params.size()));
  }
  for (int i = 0; i < wanted; ++i) {
    const int value = ValueOfPlace(sqlite3_bind_parameter_name(statement, i + 1), i);
    if (value >= wanted) {
      return Invalid(sql, fmt::format("it takes {} values, but ${} is one", wanted, value + 1));
    }
    const Param::Content& content = params[static_cast<size_t>(value)].content();
    const int code = std::visit(BindTo{statement, i + 1}, content);
    if (code == SQLITE_OK) continue;
    if (const auto* const large = std::get_if<uint64_t>(&content)) {
      return Invalid(sql,
                     fmt::format("value {} is {}, above the largest integer", value + 1, *large));
    }
    if (std::holds_alternative<ParamArray>(content)) {
      return Invalid(sql,
                     fmt::format("value {} is an array, which SQLite does not have", value + 1));
    }
    return Failure(code, sql);
  }
  return absl::OkStatus();
}

// --- Running.

absl::StatusOr<SqliteAnswer> SqliteSession::Run(std::string_view sql, std::span<const Param> params,
                                                SqliteWanted wanted) {
  BOBBIN_ASSIGN_OR_RETURN(sqlite3_stmt* const statement, Prepare(sql));
  SqliteAnswer answer;
  if (connection_.role_ != SqliteRole::kWriter && sqlite3_stmt_readonly(statement) == 0) {
    answer.needs_writer = true;
    return answer;
  }
  const Use use(statement);
  BOBBIN_RETURN_IF_ERROR(Bind(statement, sql, params));
  // The count of the last statement that changed anything would be a past one's.
  const sqlite3_int64 before = sqlite3_total_changes64(database());
  BOBBIN_RETURN_IF_ERROR(Step(statement, sql, wanted, answer));
  if (sqlite3_total_changes64(database()) != before) {
    answer.changes = sqlite3_changes64(database());
  }
  return answer;
}

absl::Status SqliteSession::Step(sqlite3_stmt* statement, std::string_view sql, SqliteWanted wanted,
                                 SqliteAnswer& answer) {
  RowsBuilder rows;
  const int columns = sqlite3_column_count(statement);
  if (wanted == SqliteWanted::kRows) {
    for (int i = 0; i < columns; ++i) rows.AddColumn(sqlite3_column_name(statement, i));
  }
  const bool may_retry = !IsInTransaction();
  bool has_rows = false;
  int attempts = 0;
  while (true) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) break;
    if (code == SQLITE_ROW) {
      has_rows = true;
      if (wanted != SqliteWanted::kRows) continue;
      for (int i = 0; i < columns; ++i) AddColumn(rows, statement, i);
      if (rows.bytes() <= connection_.options_.result_bytes_max) continue;
      return MakeStatus(absl::StatusCode::kResourceExhausted,
                        fmt::format("{}: the result is larger than {} bytes", Describe(sql),
                                    connection_.options_.result_bytes_max));
    }
    // Some locks are not waited for by SQLite itself. Nothing has been done yet.
    if (IsOfKind(code, SQLITE_BUSY) && may_retry && !has_rows &&
        connection_.WaitWhileBusy(attempts++)) {
      sqlite3_reset(statement);
      continue;
    }
    return Failure(code, sql);
  }
  answer.rows = std::move(rows).Build();
  return absl::OkStatus();
}

absl::StatusOr<SqliteAnswer> SqliteSession::RunAlone(std::string_view sql,
                                                     std::span<const Param> params,
                                                     SqliteWanted wanted) {
  absl::StatusOr<SqliteAnswer> answer = Run(sql, params, wanted);
  if (!IsInTransaction()) return answer;
  RollBack();
  return Invalid(sql, "it leaves a transaction open; Transact keeps one");
}

absl::Status SqliteSession::RunOwn(std::string_view sql) {
  return Run(sql, {}, SqliteWanted::kChanges).status();
}

absl::Status SqliteSession::RunScript(std::string_view script) {
  BOBBIN_RETURN_IF_ERROR(CheckText(script));
  BOBBIN_RETURN_IF_ERROR(Begin());
  const absl::Status status = [&]() -> absl::Status {
    for (std::string_view rest = script; !rest.empty();) {
      const std::string_view sql = rest;
      BOBBIN_ASSIGN_OR_RETURN(const SqliteConnection::StatementHandle handle,
                              Compile(sql, &rest, false));
      if (handle == nullptr) continue;  // A comment, or white space.
      if (sqlite3_bind_parameter_count(handle.get()) != 0) {
        return Invalid(sql, "a script takes no values");
      }
      SqliteAnswer answer;
      BOBBIN_RETURN_IF_ERROR(Step(handle.get(), sql, SqliteWanted::kChanges, answer));
      if (!IsInTransaction()) return Invalid(sql, "it ends the transaction that a script is");
    }
    return Commit();
  }();
  if (!status.ok()) RollBack();
  return status;
}

absl::Status SqliteSession::Checkpoint() {
  const int code =
      sqlite3_wal_checkpoint_v2(database(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code != SQLITE_OK) return Failure(code, {});
  // relaxed: a figure that orders nothing.
  connection_.log_bytes_.store(0, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status SqliteSession::CheckpointAside() {
  const int code =
      sqlite3_wal_checkpoint_v2(database(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  // Another process is at it.
  return code == SQLITE_OK || IsOfKind(code, SQLITE_BUSY) ? absl::OkStatus() : Failure(code, {});
}

void SqliteSession::TendLog() {
  const int64_t bytes_max = connection_.options_.log_bytes_max;
  if (connection_.role_ != SqliteRole::kWriter || bytes_max == 0 || database() == nullptr) return;
  const int64_t bytes = connection_.log_bytes();
  if (bytes < bytes_max) connection_.restart_bytes_ = bytes_max;
  if (bytes < connection_.restart_bytes_ || IsInTransaction()) return;
  // What was read from the log before is waited for; who reads from now on reads the database.
  connection_.busy_since_.reset();
  connection_.busy_wait_max_ = kLogWaitMax;
  int code = SQLITE_OK;
  int attempts = 0;
  do {
    code =
        sqlite3_wal_checkpoint_v2(database(), nullptr, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
    // SQLite does not wait for another checkpoint, such as the one aside.
  } while (IsOfKind(code, SQLITE_BUSY) && connection_.WaitWhileBusy(attempts++));
  if (code == SQLITE_OK) {
    connection_.restarts_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count.
    // relaxed: a figure that orders nothing.
    connection_.log_bytes_.store(0, std::memory_order_relaxed);
    connection_.restart_bytes_ = bytes_max;
  } else {
    // Somebody reads for long. Not every commit is to wait for him.
    connection_.restart_bytes_ = bytes + bytes_max / 2;
  }
}

absl::Status SqliteSession::Begin() { return RunOwn("begin immediate"); }

absl::Status SqliteSession::BeginSnapshot() {
  BOBBIN_RETURN_IF_ERROR(RunOwn("begin"));
  return RunOwn("pragma schema_version");  // The first that reads.
}

absl::Status SqliteSession::Commit() { return RunOwn("commit"); }

void SqliteSession::RollBack() {
  if (database() == nullptr || !IsInTransaction()) return;
  // Not to be cut short by the stop that has led here.
  SqliteOperation* const operation = std::exchange(connection_.operation_, nullptr);
  const absl::Status status = RunOwn("rollback");
  connection_.operation_ = operation;
  // It fails only when SQLite has rolled back by itself.
  BOBBIN_CHECK(!IsInTransaction(), MessageOf(status));
}

// --- Errors.

absl::Status SqliteSession::Failure(int code, std::string_view sql) const {
  const absl::StatusCode stop = connection_.operation_ == nullptr
                                    ? absl::StatusCode::kOk
                                    : connection_.operation_->StopCode();
  if (stop != absl::StatusCode::kOk &&
      (IsOfKind(code, SQLITE_INTERRUPT) || IsOfKind(code, SQLITE_BUSY))) {
    return MakeStatus(stop, Describe(sql) + ": interrupted");
  }
  const char* const text =
      database() == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database());
  const int error_number = database() == nullptr ? 0 : sqlite3_system_errno(database());
  return SqliteStatus(code, error_number, Describe(sql), text);
}

absl::Status SqliteSession::Invalid(std::string_view sql, std::string_view cause) const {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    fmt::format("{}: {}", Describe(sql), cause));
}

std::string SqliteSession::Describe(std::string_view sql) const {
  std::string text = fmt::format("sqlite {}", connection_.options_.path);
  if (sql.empty()) return text;
  return fmt::format("{} \"{}\"", text, ShownSql(sql));
}

}  // namespace bobbin::db::internal
