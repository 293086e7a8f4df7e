// SPDX-License-Identifier: Apache-2.0

#include "db/src/sqlite_core.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>

#include "db/src/limits.h"

namespace bobbin::db::internal {

namespace {

// Whether it is worth to ask a reader. A reader that is asked to write says so, and a writer can
// read: a wrong guess costs time only.
bool SeemsToRead(std::string_view sql) {
  const size_t begin = std::min(sql.find_first_not_of(" \t\r\n\f("), sql.size());
  const std::string_view text = sql.substr(begin);
  constexpr std::array<std::string_view, 6> kReading = {"select",  "with", "values",
                                                        "explain", "--",   "/*"};
  return std::any_of(kReading.begin(), kReading.end(), [&](std::string_view word) {
    return text.size() >= word.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [](char lower, char any) {
             return lower == std::tolower(static_cast<unsigned char>(any));
           });
  });
}

SqliteOptions Completed(SqliteOptions options) {
  options.readers = std::min(options.readers, kSqliteReadersMax);
  return options;
}

// A platform or foreign thread may do itself what a virtual thread needs the pool for: a way there
// and back would only cost it two wakes.
bool CallerMayBlock() {
  const Role role = CurrentRole();
  return role == Role::kPlatform || role == Role::kForeign;
}

// One trip to a platform thread.
struct Trip {
  static void Go(void* trip) {
    auto& self = *static_cast<Trip*>(trip);
    SqliteSession session(self.connection, self.operation);
    self.status = self.work(session);
    session.TendLog();
  }
  static void RequestStop(void* trip) { static_cast<Trip*>(trip)->operation->RequestStop(); }

  SqliteConnection& connection;
  SqliteOperation* operation;
  SqliteCore::Work work;
  absl::Status status = absl::OkStatus();
};

}  // namespace

SqliteCore::SqliteCore(SqliteOptions options)
    : options_(Completed(std::move(options))),
      writer_(options_.path),
      readers_(options_.path),
      upkeep_(options_.path) {
  if (options_.pool == nullptr) {
    // Who has a connection never waits for a thread.
    own_pool_.emplace(PlatformPoolOptions{.name = "sqlite", .threads = 2 + options_.readers});
  }
}

SqliteCore::~SqliteCore() {
  const CancelShield shield;
  const absl::Status status = Close();
  BOBBIN_CHECK(status.ok(), MessageOf(status));
}

absl::Status SqliteCore::Open() {
  writer_.Add(std::make_unique<SqliteConnection>(options_, SqliteRole::kWriter));
  bool is_in_file = false;
  BOBBIN_RETURN_IF_ERROR(RunOnWriter([&](SqliteSession& session) {
    is_in_file = session.IsInFile();
    return absl::OkStatus();
  }));
  // A database in memory is its connection's own. Readers open at their first use.
  const size_t readers = is_in_file ? options_.readers : 0;
  if (is_in_file) {
    upkeep_.Add(std::make_unique<SqliteConnection>(options_, SqliteRole::kUpkeep));
  }
  for (size_t i = 0; i < readers; ++i) {
    readers_.Add(std::make_unique<SqliteConnection>(options_, SqliteRole::kReader));
  }
  return absl::OkStatus();
}

absl::Status SqliteCore::Close() {
  writer_.Close();
  readers_.Close();
  upkeep_.Close();
  BOBBIN_RETURN_IF_ERROR(writer_.AwaitReturned());
  BOBBIN_RETURN_IF_ERROR(readers_.AwaitReturned());
  BOBBIN_RETURN_IF_ERROR(upkeep_.AwaitReturned());

  const MutexLock lock(close_mutex_);
  if (is_closed_) return absl::OkStatus();
  // The writer last: SQLite empties the log when its last connection closes.
  BOBBIN_RETURN_IF_ERROR(CloseAll(readers_));
  BOBBIN_RETURN_IF_ERROR(CloseAll(upkeep_));
  BOBBIN_RETURN_IF_ERROR(CloseAll(writer_));
  is_closed_ = true;
  return own_pool_.has_value() ? own_pool_->Shutdown() : absl::OkStatus();
}

absl::Status SqliteCore::CloseAll(SqliteLeases& leases) {
  for (size_t i = 0; i < leases.size(); ++i) {
    // What was never opened needs no thread: who gave up waiting for one need not wait here.
    if (!leases.connection(i).is_open()) continue;
    BOBBIN_RETURN_IF_ERROR(RunAlways(leases.connection(i), [](SqliteSession& session) {
      session.Close();
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

// --- Trips.

absl::Status SqliteCore::Run(SqliteConnection& connection, SqliteOperation& operation, Work work) {
  Trip trip{connection, &operation, work};
  if (CallerMayBlock()) {
    BOBBIN_RETURN_IF_ERROR(CheckStop());
    Trip::Go(&trip);
  } else {
    BOBBIN_RETURN_IF_ERROR(bobbin::internal::RunAndWait(
        pool().core(), {.run = &Trip::Go, .request_stop = &Trip::RequestStop, .argument = &trip}));
  }
  TendLog(connection);
  return std::move(trip.status);
}

absl::Status SqliteCore::RunAlways(SqliteConnection& connection, Work work) {
  const CancelShield shield;
  Trip trip{connection, nullptr, work};
  if (CallerMayBlock()) {
    Trip::Go(&trip);
  } else {
    BOBBIN_RETURN_IF_ERROR(bobbin::internal::RunAndWait(
        pool().core(),
        {.run = &Trip::Go, .argument = &trip, .admission = bobbin::internal::Admission::kAlways}));
  }
  TendLog(connection);
  return std::move(trip.status);
}

// --- Upkeep.

void SqliteCore::TendLog(const SqliteConnection& connection) {
  const int64_t bytes = connection.log_bytes();
  if (options_.checkpoint_bytes == 0 || bytes < options_.checkpoint_bytes) return;
  // Only the writer comes here. The log may have begun anew since.
  if (bytes < copied_bytes_) copied_bytes_ = 0;
  if (bytes - copied_bytes_ < options_.checkpoint_bytes) return;
  SqliteConnection* const upkeep = upkeep_.TryAcquire();
  if (upkeep == nullptr) return;  // It is under way, or the end is.
  if (!pool().Submit([this, upkeep] { CopyLog(*upkeep); }).ok()) {
    return upkeep_.Release(*upkeep);
  }
  copied_bytes_ = bytes;
}

void SqliteCore::CopyLog(SqliteConnection& connection) {
  const SqliteLease lease(upkeep_, connection);
  SqliteSession session(connection);
  absl::Status status = session.MakeReady();
  if (status.ok()) status = session.CheckpointAside();
  // What is wrong with the file, statements will say.
  if (status.ok()) checkpoints_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count.
}

SqliteStatistics SqliteCore::Statistics() {
  const SqliteConnection& writer = writer_.connection(0);
  return {.log_bytes = writer.log_bytes(),
          .checkpoints = checkpoints_.load(std::memory_order_relaxed),  // relaxed: a count.
          .restarts = writer.restarts()};
}

// --- Statements.

absl::Status SqliteCore::RunOnWriter(Work work) {
  BOBBIN_ASSIGN_OR_RETURN(SqliteConnection* const connection, writer_.Acquire());
  const SqliteLease lease(writer_, *connection);
  SqliteOperation operation;
  return Run(*connection, operation, [&](SqliteSession& session) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(session.MakeReady());
    return work(session);
  });
}

absl::StatusOr<SqliteAnswer> SqliteCore::RunStatementOn(SqliteLeases& leases, std::string_view sql,
                                                        std::span<const Param> params,
                                                        SqliteWanted wanted) {
  BOBBIN_ASSIGN_OR_RETURN(SqliteConnection* const connection, leases.Acquire());
  const SqliteLease lease(leases, *connection);
  SqliteOperation operation;
  SqliteAnswer answer;
  BOBBIN_RETURN_IF_ERROR(Run(*connection, operation, [&](SqliteSession& session) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(session.MakeReady());
    BOBBIN_ASSIGN_OR_RETURN(answer, session.RunAlone(sql, params, wanted));
    return absl::OkStatus();
  }));
  return answer;
}

absl::StatusOr<SqliteAnswer> SqliteCore::RunStatement(std::string_view sql,
                                                      std::span<const Param> params,
                                                      SqliteWanted wanted) {
  if (wanted == SqliteWanted::kRows && readers_.size() != 0 && SeemsToRead(sql)) {
    absl::StatusOr<SqliteAnswer> answer = RunStatementOn(readers_, sql, params, wanted);
    if (!answer.ok() || !answer->needs_writer) return answer;
  }
  return RunStatementOn(writer_, sql, params, wanted);
}

}  // namespace bobbin::db::internal
