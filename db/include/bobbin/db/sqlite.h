// SPDX-License-Identifier: Apache-2.0
//
// Sqlite: a SQLite database, for virtual threads. SqliteTransaction: several statements as one.
//
// SQLite blocks, so a virtual thread's statements run on a platform thread: the caller parks, its
// carrier goes on with others. A platform or foreign thread, which may block, runs its own. One
// connection writes, several read (the file is kept in WAL mode, in which
// readers and the writer do not wait for each other); each is used by one thread at a time, and who
// wants one that is in use waits for it in turn. An in-memory database has one connection for
// everything.
//
// Statements. Query goes to a reader, if the statement only reads, and sees what was committed
// before. Execute goes to the writer, and is a transaction by itself. A result is read to its end
// at once, so that a caller who takes his time holds neither a connection nor a snapshot. Texts are
// prepared once for each connection and kept. What belongs to a connection - temporary tables,
// ATTACH, most pragmas - is seen by the statements of one transaction only.
//
// Transactions begin with BEGIN IMMEDIATE, so that what they read stays true until they write;
// writers of this process queue for the one connection, and locks of other processes are waited for
// up to `busy_wait_max`. A nested call of the same Sqlite inside a transaction would wait for
// itself: it is refused. Use the transaction.
//
// Upkeep. What is committed is in a write-ahead log first. When that holds `checkpoint_bytes`, what
// it holds is copied into the database aside, by a connection of its own, while others read and
// write. Readers that overlap without end keep the log from beginning anew all the same: so whose
// commit makes it `log_bytes_max` large waits a little for the statements that read by then, and
// only writers wait with him. Backup copies the database while it is used.
//
//   Called from   virtual, platform and foreign threads. A transaction: one thread at a time.
//   Suspends      everything but the constructors and Statistics, until it is done.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED: while it waits for a connection, at once; while
//                 its statement runs, by interrupting that statement, and only it. A statement that
//                 was done all the same is reported as done. Close may be called again; commit,
//                 rollback and the destructor are not cut short.
//   Errors        ALREADY_EXISTS: a unique constraint; FAILED_PRECONDITION: another one, or misuse;
//                 INVALID_ARGUMENT: the text or its values; NOT_FOUND, PERMISSION_DENIED: the file;
//                 RESOURCE_EXHAUSTED: disk, memory, a result above its limit; UNAVAILABLE: locked
//                 by another process for too long, or closed; ABORTED: try the transaction again;
//                 DATA_LOSS: not a database, or a broken one. SqliteCodeOf has SQLite's own code.
//   Order         First come, first served, for the writer and for the readers.
//   Lifetime      Must outlive every call. A pool of the user's must outlive it.
//   Cost          A statement: a round trip to a platform thread (some 10 to 20 us) and SQLite's
//                 work. A transaction of n statements: n + 2 of them. TransactBlocking: one.
//
// Example:
//   BOBBIN_ASSIGN_OR_RETURN(auto db, bobbin::db::Sqlite::Open({.path = "cache.db"}));
//   BOBBIN_ASSIGN_OR_RETURN(int64_t changed,
//                           db.Execute("update page set body = ?2 where url = ?1", url, body));
//   absl::Status moved = db.Transact([&](bobbin::db::SqliteTransaction& tx) -> absl::Status {
//     BOBBIN_RETURN_IF_ERROR(tx.Execute("update t set n = n - 1 where id = ?1", from).status());
//     return tx.Execute("update t set n = n + 1 where id = ?1", to).status();
//   });

#ifndef BOBBIN_DB_SQLITE_H_
#define BOBBIN_DB_SQLITE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/db/database.h>
#include <bobbin/db/internal/transaction_hooks.h>
#include <bobbin/db/row.h>
#include <bobbin/db/value.h>
#include <bobbin/sched/platform_pool.h>

namespace bobbin::db {

namespace internal {
class SqliteConnection;
class SqliteCore;
class SqliteOperation;
class SqliteSession;
}  // namespace internal

// What may be done with the file.
enum class SqliteAccess : uint8_t { kReadWriteCreate, kReadWrite, kReadOnly };

// What is looked at when a file is opened: that no page, or moreover no entry of an index, is
// damaged. Both read the whole file; the second takes several times as long.
enum class SqliteCheck : uint8_t { kNone, kPages, kAll };

// What a power failure may take (a crash of the program takes nothing).
enum class SqliteDurability : uint8_t {
  kEveryCommit,      // Nothing that was committed: each commit waits for the disk.
  kSinceCheckpoint,  // The latest commits; the database stays whole.
};

struct SqliteOptions {
  // A file; ":memory:" for a database in memory.
  std::string path;
  // How many connections read, beside the one that writes. 0: the writer reads, too.
  size_t readers = 3;
  // Where SQLite runs. Null: a pool of its own, named "sqlite", of a thread for each connection.
  PlatformPool* pool = nullptr;
  SqliteAccess access = SqliteAccess::kReadWriteCreate;
  SqliteDurability durability = SqliteDurability::kEveryCommit;
  SqliteCheck check = SqliteCheck::kNone;
  bool enforces_foreign_keys = true;
  // How long a lock of another process is waited for.
  std::chrono::nanoseconds busy_wait_max = std::chrono::seconds(5);
  // How large the log may grow before it is copied into the database. 0: Checkpoint does it.
  int64_t checkpoint_bytes = int64_t{4} << 20;
  // How large it may grow before a commit waits until it can begin anew. 0: without limit.
  int64_t log_bytes_max = int64_t{16} << 20;
  // Prepared texts that each connection keeps; at least 1.
  size_t statements_kept_max = 64;
  // What one result may take up in memory.
  size_t result_bytes_max = size_t{256} << 20;
};

struct SqliteStatistics {
  int64_t log_bytes = 0;     // What the write-ahead log held after the last commit.
  uint64_t checkpoints = 0;  // How often it was copied into the database aside...
  uint64_t restarts = 0;     // ...and how often a commit has had it begin anew.
};

struct SqliteBackupOptions {
  // A file that does not exist yet.
  std::string path = {};
  // Between two steps others get their turn on the threads, and the caller is told.
  int pages_a_step = 1024;
};

struct SqliteBackupProgress {
  int64_t pages_done = 0;
  int64_t pages_total = 0;
};

// SQLite's extended result code in a status of this module, such as 2067 for a unique constraint; 0
// if there is none.
int SqliteCodeOf(const absl::Status& status);

// Statements on the writing connection that take effect together or not at all.
class SqliteTransaction final : public Transaction {
 private:
  friend class Sqlite;
  friend class internal::TransactionCourse;

  SqliteTransaction(internal::SqliteCore& core, internal::TransactionHooks& hooks);
  // Rolls back, unless it was committed.
  ~SqliteTransaction();

  // Waits for the writer.
  absl::Status Acquire();
  absl::Status Begin();
  absl::Status Commit();
  void RollBack() noexcept;

  absl::StatusOr<Rows> QuerySpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<int64_t> ExecuteSpan(Sql sql, std::span<const Param> params) override;
  // Runs `work` on a platform thread, if the transaction may be used here and now.
  absl::Status RunInside(absl::FunctionRef<absl::Status(internal::SqliteSession&)> work);

  internal::SqliteCore& core_;
  internal::SqliteConnection* connection_ = nullptr;  // While the writer is ours.
  internal::SqliteOperation* outer_ = nullptr;        // Of TransactBlocking.
  bool is_open_ = false;  // Begun, and neither committed nor rolled back.
  absl::Status lost_;     // Why SQLite has rolled it back by itself.
  // Set by the thread that uses it, against a second.
  bobbin::internal::Atomic<bool> is_in_use_{false};
};

class Sqlite final : public Database {
 public:
  // Opens the file, and makes it if `access` says so.
  static absl::StatusOr<Sqlite> Open(SqliteOptions options);
  Sqlite(Sqlite&&) noexcept;
  Sqlite& operator=(Sqlite&&) noexcept;
  // Closes it, if that has not been done.
  ~Sqlite() override;

  Dialect dialect() const override { return Dialect::kSqlite; }
  absl::Status ExecuteScript(Sql script) override;

  // As Database::Transact; each of the statements goes to a platform thread and back.
  template <typename F>
  auto Transact(F&& body) -> std::invoke_result_t<F&, SqliteTransaction&> {
    internal::TransactionHooks hooks;
    SqliteTransaction transaction(*core_, hooks);
    BOBBIN_RETURN_IF_ERROR(transaction.Acquire());
    return internal::TransactionCourse::Run(transaction, body);
  }
  // The same, but the whole body runs on the platform thread, in one trip: for batches of small
  // statements. The body must not need a virtual thread of its own.
  template <typename F>
  auto TransactBlocking(F&& body) -> std::invoke_result_t<F&, SqliteTransaction&> {
    internal::TransactionHooks hooks;
    SqliteTransaction transaction(*core_, hooks);
    BOBBIN_RETURN_IF_ERROR(transaction.Acquire());
    const BatchScope batch(transaction);
    return batch.pool().RunBlocking({.request_stop = batch.request_stop()}, [&] {
      batch.Enter();
      return internal::TransactionCourse::Run(transaction, body);
    });
  }

  // Copies what the write-ahead log holds into the database file and empties the log. Waits for the
  // writer, and for the statements that read by then; no reader waits for it.
  absl::Status Checkpoint();

  // Copies the database, as it is at the beginning, to a file; others read and write meanwhile, and
  // the log grows with what they write. Checkpoints and other backups wait until it is done; a
  // database in memory is held for so long. After each step `on_step` is called on the calling
  // thread; an error of its ends the backup. The file appears under its name when it is whole, and
  // not at all otherwise; a process that is killed may leave "<path>.partial". ALREADY_EXISTS:
  // one of the two is there.
  absl::Status Backup(const SqliteBackupOptions& options,
                      absl::FunctionRef<absl::Status(const SqliteBackupProgress&)> on_step);
  absl::Status Backup(const SqliteBackupOptions& options);

  SqliteStatistics Statistics() const;

  // As Database::Close; then closes the file.
  absl::Status Close() override;

 private:
  // What a TransactBlocking tells its statements: that the caller is to stop.
  class BatchScope {
   public:
    explicit BatchScope(SqliteTransaction& transaction);
    BatchScope(const BatchScope&) = delete;
    BatchScope& operator=(const BatchScope&) = delete;
    ~BatchScope();

    PlatformPool& pool() const;
    absl::FunctionRef<void()> request_stop() const { return *this; }
    void operator()() const;
    // On the platform thread: from now on it is the one that holds the writer.
    void Enter() const;

   private:
    SqliteTransaction& transaction_;
    std::unique_ptr<internal::SqliteOperation> operation_;
  };

  explicit Sqlite(std::unique_ptr<internal::SqliteCore> core);

  absl::StatusOr<Rows> QuerySpan(Sql sql, std::span<const Param> params) override;
  absl::StatusOr<int64_t> ExecuteSpan(Sql sql, std::span<const Param> params) override;
  absl::Status TransactErased(absl::FunctionRef<absl::Status(Transaction&)> body) override;

  std::unique_ptr<internal::SqliteCore> core_;
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_SQLITE_H_
