// SPDX-License-Identifier: Apache-2.0
//
// SqliteConnection: one connection to a SQLite database. SqliteSession: the right to use it.
//
// A connection does nothing by itself: whoever wants something of it begins a session, on a thread
// that may block, and ends it before another may. The lease (sqlite_leases.h) says whose turn it
// is; the session proves it.
//
//   Called from   SqliteSession: platform and foreign threads; a second one at the same time
//                 aborts.
//   Suspends      SQLite blocks the OS thread.
//   Cost          SQLite's.

#ifndef BOBBIN_DB_SRC_SQLITE_CONNECTION_H_
#define BOBBIN_DB_SRC_SQLITE_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/internal/thread.h>
#include <bobbin/db/row.h>
#include <bobbin/db/sqlite.h>

#include "db/src/sqlite_operation.h"

struct sqlite3;
struct sqlite3_stmt;

namespace bobbin::db::internal {

// One that keeps up the file reads, too.
enum class SqliteRole : uint8_t { kWriter, kReader, kUpkeep };

class SqliteConnection {
 public:
  SqliteConnection(const SqliteOptions& options, SqliteRole role)
      : options_(options), role_(role) {}
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  // Whether there is something to close. REQUIRES: nobody uses it.
  bool is_open() const { return database_ != nullptr; }

  // What the log held after the last commit of this connection.
  int64_t log_bytes() const {
    return log_bytes_.load(std::memory_order_relaxed);  // relaxed: a figure that orders nothing.
  }
  uint64_t restarts() const {
    return restarts_.load(std::memory_order_relaxed);  // relaxed: as above.
  }

 private:
  friend class SqliteLeases;
  friend class SqliteSession;

  struct CloseDatabase {
    void operator()(sqlite3* database) const;
  };
  struct FinalizeStatement {
    void operator()(sqlite3_stmt* statement) const;
  };
  using StatementHandle = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

  // A prepared text. The list is in the order of use, the last used first.
  struct KeptStatement {
    std::string text;
    StatementHandle handle;
  };

  // SQLite's calls for patience, on the thread of the session.
  static int OnProgress(void* connection);
  static int OnBusy(void* connection, int attempts);
  // And its news of a commit: so many pages are in the log now.
  static int OnCommit(void* connection, sqlite3* database, const char* name, int pages);
  bool WaitWhileBusy(int attempts);

  const SqliteOptions& options_;
  const SqliteRole role_;
  // Whose turn it is; guarded by the lock of the leases.
  const bobbin::internal::Thread* holder_ = nullptr;

  // Written by the thread of the session; read by a second one.
  bobbin::internal::Atomic<bool> is_in_session_{false};
  // The session's only.
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  std::list<KeptStatement> statements_;
  absl::flat_hash_map<std::string_view, std::list<KeptStatement>::iterator> statement_of_;
  SqliteOperation* operation_ = nullptr;
  std::optional<MonotonicTime> busy_since_;
  std::chrono::nanoseconds busy_wait_max_{0};  // Of the SqliteSession under way.
  int64_t page_bytes_ = 0;
  int64_t restart_bytes_ = 0;  // How large the log may be before it is to begin anew.

  // Written by the writer's session, read by anyone.
  bobbin::internal::Atomic<int64_t> log_bytes_{0};
  bobbin::internal::Atomic<uint64_t> restarts_{0};
};

// What a statement gave.
struct SqliteAnswer {
  Rows rows;
  int64_t changes = 0;
  bool needs_writer = false;  // It writes, and this connection does not: nothing was done.
};

// What of it is wanted.
enum class SqliteWanted : uint8_t { kRows, kChanges };

class SqliteSession {
 public:
  // `operation`, if there is one, can end statements early.
  explicit SqliteSession(SqliteConnection& connection, SqliteOperation* operation = nullptr);
  SqliteSession(const SqliteSession&) = delete;
  SqliteSession& operator=(const SqliteSession&) = delete;
  ~SqliteSession();

  // Opens the connection, if that has not been done, and rolls back what it may have been left
  // with.
  absl::Status MakeReady();
  void Close();

  // Runs one statement to its end. REQUIRES, as all below: MakeReady was called.
  absl::StatusOr<SqliteAnswer> Run(std::string_view sql, std::span<const Param> params,
                                   SqliteWanted wanted);
  // The same, and refuses a statement that leaves a transaction open.
  absl::StatusOr<SqliteAnswer> RunAlone(std::string_view sql, std::span<const Param> params,
                                        SqliteWanted wanted);
  // Runs statements without values, as one transaction.
  absl::Status RunScript(std::string_view script);
  absl::Status Checkpoint();
  // Copies what can be copied without waiting for anybody.
  absl::Status CheckpointAside();
  // Has the log begin anew if it has become too large.
  void TendLog();

  absl::Status Begin();
  absl::Status Commit();
  // Afterwards no transaction is open.
  void RollBack();
  bool IsInTransaction() const;
  // Whether the database is in a file, so that other connections see it.
  bool IsInFile() const;
  // Keeps what the connection sees as it is now, until a rollback.
  absl::Status BeginSnapshot();

 private:
  friend class SqliteBackup;

  // A statement in use: at its end it is reset, so that it holds no snapshot, and its values are
  // let go.
  class Use;

  absl::Status Open();
  absl::Status Configure();
  absl::Status CheckFile();
  // Runs a text of our own that gives no rows.
  absl::Status RunOwn(std::string_view sql);
  absl::Status CheckText(std::string_view sql) const;
  absl::StatusOr<sqlite3_stmt*> Prepare(std::string_view sql);
  absl::StatusOr<SqliteConnection::StatementHandle> Compile(std::string_view sql,
                                                            std::string_view* rest, bool is_kept);
  absl::Status Bind(sqlite3_stmt* statement, std::string_view sql, std::span<const Param> params);
  absl::Status Step(sqlite3_stmt* statement, std::string_view sql, SqliteWanted wanted,
                    SqliteAnswer& answer);
  // The status of the call that has just failed with `code`.
  absl::Status Failure(int code, std::string_view sql) const;
  absl::Status Invalid(std::string_view sql, std::string_view cause) const;
  std::string Describe(std::string_view sql) const;
  sqlite3* database() const { return connection_.database_.get(); }

  SqliteConnection& connection_;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQLITE_CONNECTION_H_
