// SPDX-License-Identifier: Apache-2.0
//
// SqliteBackup: a copy of a database, made step by step while the database is used.
//
// The connection that reads keeps a snapshot from the first step to the last, so nothing that
// others write makes it begin again, and the copy is of one moment. What is written goes to a name
// of its own, and gets the one that was asked for when it is whole: whoever finds a file under that
// name finds all of it.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      for each step, and while another has the connection.
//   Cancellation  between two steps; what was written is removed.

#ifndef BOBBIN_DB_SRC_SQLITE_BACKUP_H_
#define BOBBIN_DB_SRC_SQLITE_BACKUP_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include <bobbin/db/sqlite.h>

#include "db/src/sqlite_connection.h"

struct sqlite3_backup;

namespace bobbin::db::internal {

class SqliteCore;

// One backup, in the hands of whoever has a session of the connection that is copied.
class SqliteBackup {
 public:
  explicit SqliteBackup(std::string path);
  SqliteBackup(const SqliteBackup&) = delete;
  SqliteBackup& operator=(const SqliteBackup&) = delete;
  // Removes what neither was finished nor could be left, because the pool is gone.
  ~SqliteBackup();

  absl::Status Begin(SqliteSession& source);
  absl::Status Step(int pages);
  // Gives the whole copy its name. REQUIRES: is_whole().
  absl::Status Finish(SqliteSession& source);
  // Removes what there is, and lets go of the source.
  void Leave(SqliteSession& source);

  bool is_whole() const { return is_whole_; }
  const SqliteBackupProgress& progress() const { return progress_; }

 private:
  struct CloseDatabase {
    void operator()(sqlite3* database) const;
  };

  void Close();
  void Discard();
  absl::Status Failure(int code) const;

  const std::string path_;
  const std::string partial_path_;
  std::unique_ptr<sqlite3, CloseDatabase> copy_;
  sqlite3_backup* backup_ = nullptr;
  SqliteBackupProgress progress_;
  bool is_begun_ = false;  // There is a file of ours under the other name.
  bool is_whole_ = false;
};

absl::Status BackUpSqlite(SqliteCore& core, const SqliteBackupOptions& options,
                          absl::FunctionRef<absl::Status(const SqliteBackupProgress&)> on_step);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_SQLITE_BACKUP_H_
