// SPDX-License-Identifier: Apache-2.0

#include "db/src/sqlite_backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include <sqlite3.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/status.h>

#include "db/src/sqlite_core.h"
#include "db/src/sqlite_operation.h"
#include "db/src/sqlite_status.h"

namespace bobbin::db::internal {

SqliteBackup::SqliteBackup(std::string path)
    : path_(std::move(path)), partial_path_(path_ + ".partial") {}

SqliteBackup::~SqliteBackup() { Discard(); }

void SqliteBackup::Discard() {
  Close();
  if (std::exchange(is_begun_, false)) ::unlink(partial_path_.c_str());
}

void SqliteBackup::Close() {
  if (backup_ != nullptr) sqlite3_backup_finish(std::exchange(backup_, nullptr));
  copy_.reset();
}

void SqliteBackup::CloseDatabase::operator()(sqlite3* database) const {
  BOBBIN_CHECK(sqlite3_close(database) == SQLITE_OK, "a copy is closed while it is in use");
}

absl::Status SqliteBackup::Failure(int code) const {
  const int error_number = copy_ == nullptr ? 0 : sqlite3_system_errno(copy_.get());
  return SqliteStatus(code, error_number, "back up sqlite to " + path_, sqlite3_errstr(code));
}

absl::Status SqliteBackup::Begin(SqliteSession& source) {
  // Two backups to one name must not write to one file: this finds out, and claims it.
  const int fd = ::open(partial_path_.c_str(), O_CREAT | O_EXCL | O_CLOEXEC | O_WRONLY, 0644);
  if (fd < 0) return ErrnoStatus(errno, "back up sqlite to " + partial_path_);
  ::close(fd);
  is_begun_ = true;
  if (::access(path_.c_str(), F_OK) == 0) return ErrnoStatus(EEXIST, "back up sqlite to " + path_);

  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(partial_path_.c_str(), &opened,
                      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READWRITE, nullptr);
  copy_.reset(opened);
  if (code != SQLITE_OK) return Failure(code);
  BOBBIN_RETURN_IF_ERROR(source.BeginSnapshot());
  backup_ = sqlite3_backup_init(copy_.get(), "main", source.database(), "main");
  return backup_ == nullptr ? Failure(sqlite3_extended_errcode(copy_.get())) : absl::OkStatus();
}

absl::Status SqliteBackup::Step(int pages) {
  const int code = sqlite3_backup_step(backup_, std::max(pages, 1));
  progress_.pages_total = sqlite3_backup_pagecount(backup_);
  progress_.pages_done = progress_.pages_total - sqlite3_backup_remaining(backup_);
  is_whole_ = code == SQLITE_DONE;
  return is_whole_ || code == SQLITE_OK ? absl::OkStatus() : Failure(code);
}

void SqliteBackup::Leave(SqliteSession& source) {
  Discard();
  source.RollBack();
}

absl::Status SqliteBackup::Finish(SqliteSession& source) {
  Close();
  source.RollBack();
  if (::renameat2(AT_FDCWD, partial_path_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) !=
      0) {
    return ErrnoStatus(errno, "back up sqlite to " + path_);
  }
  is_begun_ = false;
  return absl::OkStatus();
}

absl::Status BackUpSqlite(SqliteCore& core, const SqliteBackupOptions& options,
                          absl::FunctionRef<absl::Status(const SqliteBackupProgress&)> on_step) {
  SqliteLeases& leases = core.upkeep();
  BOBBIN_ASSIGN_OR_RETURN(SqliteConnection* const connection, leases.Acquire());
  const SqliteLease lease(leases, *connection);
  SqliteBackup backup(options.path);
  // After an error, or an exception of the user's.
  absl::Cleanup leave = [&] {
    core.RunAlways(*connection,
                   [&](SqliteSession& session) {
                     backup.Leave(session);
                     return absl::OkStatus();
                   })
        .IgnoreError();
  };

  SqliteOperation operation;
  const auto run = [&](SqliteCore::Work work) { return core.Run(*connection, operation, work); };
  BOBBIN_RETURN_IF_ERROR(run([&](SqliteSession& session) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(session.MakeReady());
    return backup.Begin(session);
  }));
  while (!backup.is_whole()) {
    BOBBIN_RETURN_IF_ERROR(CheckStop());
    BOBBIN_RETURN_IF_ERROR(run([&](SqliteSession&) { return backup.Step(options.pages_a_step); }));
    BOBBIN_RETURN_IF_ERROR(on_step(backup.progress()));
  }
  std::move(leave).Cancel();
  return core.RunAlways(*connection,
                        [&](SqliteSession& session) { return backup.Finish(session); });
}

}  // namespace bobbin::db::internal
